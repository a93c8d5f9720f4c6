"""Where a server finds itself, and what it compares."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.mounts import authority, serving
from webhook import reload, tls
from webhook.board import Flag
from webhook.metrics import Metrics
from webhook.readiness import Readiness, callable_address
from webhook.reload import Reloader, Watch

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.mark.parametrize(
    ("address", "called"),
    [
        (("0.0.0.0", 1), ("127.0.0.1", 1)),
        (("::", 1, 0, 0), ("::1", 1)),
        (("::1", 1, 0, 0), ("::1", 1)),
        (("10.1.2.3", 1), ("10.1.2.3", 1)),
    ],
)
def test_where_it_can_be_called(address: tuple[Any, ...], called: tuple[str, int]) -> None:
    assert callable_address(address) == called


def identity() -> tls.Identity:
    pair = serving(authority())
    return tls.identity(pair.certificate, pair.key, "test")


class Served:
    """A server that shakes hands with one pair and says nothing."""

    def __init__(self, served: tls.Identity) -> None:
        self.served = served
        self.listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                plain, _ = self.listener.accept()
                self.served.context.wrap_socket(plain, server_side=True).close()
            except OSError:
                return

    def end(self) -> None:
        with suppress(OSError):  # ended already
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


@pytest.fixture
def served() -> Iterator[Served]:
    server = Served(identity())
    yield server
    server.end()


def readiness(served: Served, should: list[tls.Identity]) -> tuple[Readiness, Reloader, Flag]:
    settings: Any = SimpleNamespace(poll=lambda: False)
    reloader = Reloader(settings, Watch((), lambda: should[-1]), None, Metrics())
    flag = Flag()
    return Readiness(served.listener.getsockname(), reloader, flag), reloader, flag


def test_what_is_served_is_what_should_be(served: Served) -> None:
    found, _, flag = readiness(served, [served.served])
    assert found.unready() == ""
    flag.raise_()
    assert "draining" in found.unready()


def test_another_certificate_is_served(served: Served) -> None:
    found, _, _ = readiness(served, [identity()])
    assert "another certificate" in found.unready()


def test_nobody_answers(served: Served) -> None:
    found, _, _ = readiness(served, [served.served])
    served.end()
    assert "a new connection failed" in found.unready()


def test_workers_may_take_a_moment_for_a_new_pair(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    new = identity()
    found, reloader, _ = readiness(served, [served.served])
    before, now = reloader.certificate.value, [time.monotonic()]
    monkeypatch.setattr(reload.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(reloader.certificate, "poll", lambda: setattr(reloader.certificate, "value", new) or True)
    reloader.poll()
    assert found.unready() == "", "the old one, for now"
    assert reloader.may_serve(before.leaf)
    now[0] += 11
    assert not reloader.may_serve(before.leaf)
    assert reloader.may_serve(new.leaf)
    assert "another certificate" in found.unready()
