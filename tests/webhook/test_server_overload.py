"""More calls than can be answered: each is answered or turned away soon, and afterwards all is well again."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.reviews import body_of
from tests.support.server import TIMEOUT_S, Server, running
from tests.support.traffic import Client, post, wait_until

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

MESSAGE = post(body_of("mutate-create-pods-soft-910b3.json"))
LARGE = post(body_of("mutate-create-pods-soft-910b3.json").ljust(1_000_000))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with running(temporary=tmp_path) as started:
        yield started


def at_once(server: Server, clients: int, message: bytes, rounds: int) -> list[tuple[int, float]]:
    """Statuses and times of calls that many clients make all together."""
    context = server.trust()
    found: list[tuple[int, float]] = []
    together = threading.Barrier(clients)

    def call() -> None:
        with connected(server, context) as client:
            together.wait(TIMEOUT_S)
            for _ in range(rounds):
                start = time.monotonic()
                status, again = client.call(message)
                found.append((status, time.monotonic() - start))
                if not again:
                    return

    threads = [threading.Thread(target=call) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_S)
    return found


def connected(server: Server, context: ssl.SSLContext) -> Client:
    """A connection; who is turned away comes again."""
    while True:
        with suppress(OSError):
            return Client(server.address, context)


def test_large_reviews_wait_for_a_thread_or_are_turned_away(server: Server) -> None:
    found = at_once(server, 100, LARGE, 3)
    statuses = {status for status, _ in found}
    assert statuses == {200, 503}, "some are answered, and some are told to ask again"
    assert len(found) >= 100
    busy = sum(status == 503 for status, _ in found)
    assert busy == sum(server.metric(f'vnpu_webhook_shed_total{{reason="{why}"}}') for why in ("busy", "memory"))
    wait_until(lambda: bool(server.said("too much to do")), "a line about it")
    with Client(server.address, server.trust()) as client:
        assert client.call(LARGE)[0] == 200, "it has recovered by itself"


def test_small_ones_are_answered_or_turned_away(server: Server) -> None:
    found = at_once(server, 100, MESSAGE, 10)
    assert {status for status, _ in found} <= {200, 503}
    assert len(found) == 1000
    with Client(server.address, server.trust()) as client:
        assert client.call(MESSAGE)[0] == 200


def test_what_is_turned_away_may_be_asked_again_over_the_same_connection(server: Server) -> None:
    """Many questions at once over one connection cost a turn of the loop each, and others their patience."""
    with server.connect() as client:
        client.send(MESSAGE * 2000)
        statuses = {client.answer()[0] for _ in range(2000)}
    assert statuses == {200}, "one turn each: nobody is turned away who is alone"


def test_memory_is_bounded(server: Server) -> None:
    (worker,) = server.workers()
    at_once(server, 30, LARGE, 1)
    before = resident(worker)
    for _ in range(2):
        at_once(server, 100, LARGE, 1)
    assert resident(worker) < before + 100 * 2**20


def resident(pid: int) -> int:
    """Bytes of a process that are in memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096
