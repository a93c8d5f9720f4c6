"""Classes of nodes in the order in which a policy takes them, with those that have no room skipped in bulk."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING, Final

from vnpu.fit.classes import has_room

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from vnpu.fit.classes import Need, NodeClass, Room

_BLOCK: Final = 32
"""Classes that share one bound of their room."""

Entry = tuple[float, int, "NodeClass"]
"""The rank of a class, the position of its first member, and the class."""


class Order:
    """Classes by rank, the lowest first, equal ones by the position of their first member."""

    def __init__(self, sign: int, classes: Iterable[NodeClass]) -> None:
        """Sort the classes.

        Args:
            sign: the factor that makes the load of a class its rank.
            classes: each with at least one member.
        """
        self._sign = sign
        entries = sorted(map(self._entry, classes))
        self._blocks = [_Block(entries[start : start + _BLOCK]) for start in range(0, len(entries), _BLOCK)]
        self._blocks = self._blocks or [_Block([])]
        self._lasts = [block.last for block in self._blocks]

    def _entry(self, one: NodeClass) -> Entry:
        return self._sign * one.load, one.members[0], one

    def add(self, one: NodeClass) -> None:
        """Take in a class that is not there; it has a member."""
        entry = self._entry(one)
        place = min(bisect_left(self._lasts, entry[:2]), len(self._blocks) - 1)
        block = self._blocks[place]
        block.add(entry)
        if len(block.entries) > 2 * _BLOCK:
            self._blocks[place : place + 1] = block.halves()
            self._lasts[place : place + 1] = [half.last for half in self._blocks[place : place + 2]]
        else:
            self._lasts[place] = block.last

    def discard(self, one: NodeClass) -> None:
        """Take out a class that is there, with the first member that it had when it came."""
        entry = self._entry(one)
        place = bisect_left(self._lasts, entry[:2])
        block = self._blocks[place]
        block.remove(entry)
        if not block.entries and len(self._blocks) > 1:
            del self._blocks[place], self._lasts[place]
        else:
            self._lasts[place] = block.last

    def walk(self, wanted: Sequence[Need]) -> Iterator[Entry]:
        """The classes that may have room, in their order; nothing may change while somebody walks."""
        for block in self._blocks:
            if has_room(block.room, wanted):
                for entry in block.entries:
                    if has_room(entry[2].room, wanted):
                        yield entry


class _Block:
    """Some classes in order, and a bound of the room that any of them has."""

    def __init__(self, entries: list[Entry]) -> None:
        self.entries = entries
        self._bound()

    @property
    def last(self) -> tuple[float, int]:
        return self.entries[-1][:2] if self.entries else (float("-inf"), -1)

    def add(self, entry: Entry) -> None:
        insort(self.entries, entry)
        self._widen(entry[2].room)

    def remove(self, entry: Entry) -> None:
        del self.entries[bisect_left(self.entries, entry)]
        # The bound still holds, and gets looser with each class that leaves.
        self._loose += 1
        if self._loose >= _BLOCK:
            self._bound()

    def halves(self) -> list[_Block]:
        middle = len(self.entries) // 2
        return [_Block(self.entries[:middle]), _Block(self.entries[middle:])]

    def _bound(self) -> None:
        self.room: Room = {}
        self._loose = 0
        for _, _, one in self.entries:
            self._widen(one.room)

    def _widen(self, room: Room) -> None:
        for key, (memories, computes) in room.items():
            most = self.room.get(key)
            if most is None:
                self.room[key] = (memories.copy(), computes.copy())
            else:
                self.room[key] = (_highest(most[0], memories), _highest(most[1], computes))


def _highest(one: Sequence[int], other: Sequence[int]) -> list[int]:
    if len(one) < len(other):
        one, other = other, one
    return [*map(max, one, other), *one[len(other) :]]
