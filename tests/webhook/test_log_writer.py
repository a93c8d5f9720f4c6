"""Lines wait for whoever reads them, and nobody waits for that."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

from webhook.log_writer import Writer

if TYPE_CHECKING:
    from collections.abc import Iterator

LINE = b"x" * 99 + b"\n"


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)
    os.close(writing)


def lost(lines: int) -> bytes:
    return b"lost %d\n" % lines


def read_until(reading: int, end: bytes) -> bytes:
    received = b""
    while not received.endswith(end):
        received += os.read(reading, 65536)
    return received


def test_lines_come_in_order(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    writer = Writer(writing, lost)
    lines = [b"%d\n" % number for number in range(1000)]
    for line in lines:
        writer.put(line)
    writer.close(30)
    assert read_until(reading, b"\n999\n") == b"".join(lines)


def test_what_finds_no_room_is_dropped_and_counted(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    writer = Writer(writing, lost, most=100_000)
    for _ in range(10_000):  # ten times what pipe and queue take
        writer.put(LINE)
    received = b""
    while not received.rpartition(b"lost ")[2].endswith(b"\n") or b"lost " not in received:
        received += os.read(reading, 65536)
    *lines, _ = received.split(b"\n")
    dropped = int(lines[-1].split()[1])
    assert set(lines[:-1]) == {LINE[:-1]}
    assert len(lines) - 1 + dropped == 10_000
    assert dropped > 5000
    writer.put(b"afterwards\n")
    assert read_until(reading, b"\n") == b"afterwards\n"
    writer.close(30)


def test_it_ends_although_nobody_reads(pipe: tuple[int, int]) -> None:
    _, writing = pipe
    writer = Writer(writing, lost)
    for _ in range(2000):
        writer.put(LINE)
    writer.close(0.1)
    assert any(thread.name == "log" for thread in threading.enumerate()), "it waits still, but nobody waits for it"
    read_until(pipe[0], LINE)


def test_a_reader_that_is_gone() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    writer = Writer(writing, lost)
    writer.put(LINE)
    writer.close(30)
    os.close(writing)


def test_a_pipe_that_somebody_made_non_blocking(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    os.set_blocking(writing, False)
    writer = Writer(writing, lost)
    for _ in range(5000):
        writer.put(LINE)
    received = b""
    while len(received) < 5000 * len(LINE):
        received += os.read(reading, 65536)
    assert received == LINE * 5000
    writer.close(30)
