"""Lines to standard output, written by a thread of their own.

Whoever reads the log may stop reading. A pipe then takes some 64 KiB and no more, and whoever writes into it waits for
good. Only the thread waits here; lines that find no room are dropped, counted, and told of once there is room again.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_BYTES: Final = 2 * 2**20
"""That wait to be written: some thousand reviews."""
_PIECE: Final = 2**16
_GATHERING_S: Final = 0.02
"""Each write lets go of the interpreter, so lines are gathered before they are written."""


class Writer:
    """A bounded queue of lines in front of one file descriptor."""

    def __init__(
        self, descriptor: int, lost: Callable[[int], bytes], *, most: int = _MOST_BYTES, piece: int = _PIECE
    ) -> None:
        """Start the thread.

        Args:
            descriptor: where lines go.
            lost: told how many lines were dropped since it was called last; gives the line that says so.
            most: bytes that may wait.
            piece: bytes that are written at a time.
        """
        self._descriptor = descriptor
        self._lost = lost
        self._most = most
        self._piece = piece
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._dropped = 0
        self._lock = threading.Lock()
        self._some = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def put(self, line: bytes) -> None:
        """Write a line soon, or drop it where too much is waiting; never wait."""
        with self._lock:
            if self._bytes + len(line) > self._most:
                self._dropped += 1
                return
            self._waiting.append(line)
            self._bytes += len(line)
        if not self._some.is_set():
            self._some.set()

    def close(self, seconds: float) -> None:
        """Write what waits, but give up after this time."""
        self._closing.set()
        self._some.set()
        self._thread.join(seconds)

    def _run(self) -> None:
        while True:
            self._some.wait()
            self._closing.wait(_GATHERING_S)
            self._some.clear()
            while piece := self._next():
                self._write(piece)
            if self._closing.is_set():
                return

    def _next(self) -> bytes:
        """Some of the lines that wait; behind the last of them, how many were dropped."""
        lines = bytearray()
        with self._lock:
            while self._waiting and len(lines) < self._piece:
                lines += self._waiting.popleft()
            self._bytes -= len(lines)
            dropped = 0
            if not self._waiting:
                dropped, self._dropped = self._dropped, 0
        if dropped:
            lines += self._lost(dropped)
        return bytes(lines)

    def _write(self, data: bytes) -> None:
        # A log that nobody takes any more is no reason to refuse a pod.
        with suppress(OSError):
            while data:
                try:
                    data = data[os.write(self._descriptor, data) :]
                except BlockingIOError:  # somebody who shares the pipe made it so
                    time.sleep(_GATHERING_S)
