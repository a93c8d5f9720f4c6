"""Numbers that the processes of one server share: anonymous memory, made before they fork.

Each process writes into a row of its own, so that nobody waits for anybody, and a reader looks over all rows. Nothing
is kept in files: a full disk stops no count, and nothing is left behind when a process is killed.
"""

from __future__ import annotations

import mmap
from threading import Lock
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

_NUMBER: Final = 8
"""Bytes of a float64."""


class Board:
    """A table of float64s, all 0 at first: a row for each process, a column for each thing that is counted."""

    def __init__(self, columns: Iterable[Hashable], rows: int) -> None:
        """Make the table; processes that are forked later share it."""
        names = list(columns)
        self._places = {column: place for place, column in enumerate(names)}
        assert len(names) == len(self._places), "two columns of one name would be one"
        self._rows = rows
        self._width = len(self._places)
        self._numbers = memoryview(mmap.mmap(-1, max(1, rows * self._width) * _NUMBER)).cast("d")
        self._first = 0
        self._lock = Lock()

    def adopt(self, row: int) -> None:
        """From now on this process writes into the given row, and goes on with what stands there."""
        self._first = row * self._width
        self._lock = Lock()  # a lock that another thread held at the fork would never be released

    def add(self, column: Hashable, amount: float = 1) -> None:
        """Count into the own row."""
        place = self._first + self._places[column]
        with self._lock:
            self._numbers[place] += amount

    def put(self, column: Hashable, value: float) -> None:
        """Write a value into the own row."""
        self._numbers[self._first + self._places[column]] = value

    def put_in(self, row: int, column: Hashable, value: float) -> None:
        """Write a value into the row of a process that has ended."""
        self._numbers[row * self._width + self._places[column]] = value

    def own(self, column: Hashable) -> float:
        """The value in the own row."""
        return self._numbers[self._first + self._places[column]]

    def values(self, column: Hashable) -> list[float]:
        """The values of all rows."""
        return [float(number) for number in self._numbers[self._places[column] :: self._width]]

    def total(self, column: Hashable) -> float:
        """The sum over all rows."""
        return sum(self.values(column))


class Flag:
    """A word that one process says once and all others read."""

    def __init__(self) -> None:
        """Not raised; processes that are forked later share it."""
        self._byte = mmap.mmap(-1, 1)

    def __bool__(self) -> bool:
        return self._byte[0] != 0

    def raise_(self) -> None:
        """Let all processes know."""
        self._byte[0] = 1
