"""Clients that say nothing, or say it slowly, cost the others nothing."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from tests.support.server import Server, running
from tests.support.slow_clients import BODY, HEAD, dripping, silent
from tests.support.traffic import traffic, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MESSAGE = HEAD + BODY


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(temporary=tmp_path_factory.mktemp("server")) as started:
        yield started


def test_500_silent_and_50_slow_ones_delay_no_review(server: Server) -> None:
    context = server.trust()

    def calls_in(seconds: float) -> float:
        with traffic(server.address, lambda: context, MESSAGE, kept=1, new=1, pause_s=0.005) as calls:
            time.sleep(seconds)
        assert calls.failures == []
        assert set(calls.statuses) == {200}
        return calls.percentile(0.5)

    quiet = calls_in(1)
    with silent(server, 500), dripping(server, 17, 17, 16, every_s=0.5):
        wait_until(lambda: server.metric("vnpu_webhook_connections") >= 550, "all of them")
        crowded = calls_in(2)
    # The 99th percentile is for `make bench`: here it would measure who else uses the machine.
    assert crowded < quiet + 0.1


def test_they_are_closed_in_the_end_and_patient_ones_are_not(server: Server) -> None:
    names = {f'vnpu_webhook_timeouts_total{{what="{what}"}}' for what in ("handshake", "head", "body", "reading")}
    before = {name: server.metric(name) for name in names}
    with server.connect() as ahead, dripping(server, 1, 1, 1, every_s=0.3), deaf(server):
        wait_until(lambda: all(server.metric(name) > before[name] for name in names), "the end of all slow clients")
        ahead.send(MESSAGE)
        assert ahead.answer()[0] == 200, "a connection may be opened long before it is used"


@contextmanager
def deaf(server: Server) -> Iterator[None]:
    """A client that asks and asks, and reads no answer."""
    with socket.socket() as plain:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        plain.settimeout(0.5)
        plain.connect(server.address)
        with server.trust().wrap_socket(plain, server_hostname="localhost") as connection:
            asked = b"GET /metrics HTTP/1.1\r\nHost: webhook\r\n\r\n" * 200
            with suppress(TimeoutError):
                for _ in range(100):
                    connection.sendall(asked)
            yield


def test_more_connections_than_are_held(tmp_path: Path) -> None:
    with running(temporary=tmp_path) as server, ExitStack() as stack:
        kept = stack.enter_context(server.connect())

        def numbers() -> tuple[float, float, float]:
            """Connections that are open, made room, and were closed for their silence: all that ever were."""
            kept.send(b"GET /metrics HTTP/1.1\r\nHost: webhook\r\n\r\n")
            text = kept.answer()[2].decode()  # silent ones make room first
            names = ("connections", 'shed_total{reason="connections"}', 'timeouts_total{what="handshake"}')
            values = dict(line.rsplit(" ", 1) for line in text.splitlines())
            opened, shed, late = (float(values[f"vnpu_webhook_{name}"]) for name in names)
            assert opened <= 1000
            return opened, shed, late

        stack.enter_context(silent(server, 1200))
        wait_until(lambda: sum(numbers()) == 1201, "the last of them")
        assert sum(numbers()[1:]) >= 201, "the longest silent ones went"


def test_bodies_that_do_not_end_are_bounded(tmp_path: Path) -> None:
    piece = b" " * 2**20
    with running(temporary=tmp_path) as server, ExitStack() as stack:
        large = [stack.enter_context(server.connect()) for _ in range(12)]
        for client in large:
            client.send(HEAD.replace(str(len(BODY)).encode(), str(8 * 2**20).encode()))
        for client in large:
            with suppress(OSError):
                for _ in range(7):
                    client.send(piece)
        wait_until(lambda: server.metric('vnpu_webhook_shed_total{reason="memory"}') >= 1, "the bound")
        with server.connect() as other:
            other.send(MESSAGE)
            assert other.answer()[0] == 200
