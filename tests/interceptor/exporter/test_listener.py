"""Whoever is slow at the port does not keep Prometheus away."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING, Any

import requests

from interceptor.exporter import listener
from interceptor.exporter.listener import Handler, Listener
from tests.support.containers import PATIENCE_S, eventually

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest


def _app(_environ: Any, start_response: Any) -> Iterable[bytes]:
    start_response("200 OK", [])
    return [b"figures"]


def test_a_connection_ends_in_time_though_it_is_never_silent_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "_WHOLE_S", 0.2)
    monkeypatch.setattr(Handler, "timeout", 10 * PATIENCE_S)  # as for those who always send a byte before
    server = Listener(("127.0.0.1", 0))
    server.set_app(_app)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    slow = []
    try:
        for _ in range(listener._MOST_REQUESTS):
            connection = socket.create_connection(("127.0.0.1", server.server_port))
            connection.sendall(b"G")
            slow.append(connection)

        def answered() -> bool:
            try:
                return requests.get(f"http://127.0.0.1:{server.server_port}/", timeout=PATIENCE_S).ok
            except requests.ConnectionError:
                return False

        assert eventually(answered)
    finally:
        server.shutdown()
        serving.join(PATIENCE_S)
        server.server_close()
        for connection in slow:
            connection.close()
