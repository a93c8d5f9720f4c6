"""What a Service does: new connections go to servers that are ready, those that stand go on."""

from __future__ import annotations

import itertools
import selectors
import socket
import threading
from typing import TYPE_CHECKING, Self

import requests

from tests.support.traffic import TIMEOUT_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.server import Server

_LOOK_S = 0.2
"""How often readiness is looked at; an endpoint that is no longer ready is called for as long."""


def is_ready(server: Server) -> bool:
    """What a kubelet finds."""
    with server.session() as session:
        try:
            return session.get(f"{server.url}/readyz", timeout=TIMEOUT_S).status_code == 200
        except requests.ConnectionError:
            return False


class Switch:
    """A forwarder of TCP connections on a port of its own."""

    def __init__(self, ready: Callable[[], list[tuple[str, int]]]) -> None:
        """Forward to the addresses that ``ready`` tells, in turns; it is asked again and again."""
        self._ready = ready
        self._addresses = ready()
        self._turn = itertools.count()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._end = threading.Event()
        self._threads = [threading.Thread(target=self._look), threading.Thread(target=self._forward)]

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._listener.getsockname()
        return host, port

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _look(self) -> None:
        while not self._end.wait(_LOOK_S):
            self._addresses = self._ready() or self._addresses

    def _forward(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            while not self._end.is_set():
                for key, _ in selector.select(0.05):
                    if key.data is None:
                        self._connect(selector)
                    else:
                        self._pass_on(selector, key)
            for key in list(selector.get_map().values()):
                if key.data is not None:
                    key.fileobj.close()  # type: ignore[union-attr]

    def _connect(self, selector: selectors.BaseSelector) -> None:
        client, _ = self._listener.accept()
        addresses = self._addresses
        server = socket.create_connection(addresses[next(self._turn) % len(addresses)])
        for one, other in ((client, server), (server, client)):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            selector.register(one, selectors.EVENT_READ, other)

    def _pass_on(self, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
        one, other = key.fileobj, key.data
        assert isinstance(one, socket.socket)
        try:
            data = one.recv(65536)
            if data:
                other.sendall(data)
                return
        except OSError:
            pass
        for end in (one, other):
            if end.fileno() >= 0:
                selector.unregister(end)
                end.close()
