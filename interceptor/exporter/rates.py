"""How much of a card's time a container had lately: from two of its mirrors. No file, no clock."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable

WINDOW_US: Final = 5_000_000
"""A share is a mean over little more time than this; turns of a heavily shared card take about a tenth of a second."""
_LEAST_US: Final = 900_000
"""A limiter writes once a second; two closer samples are the same one."""


class _Sample(NamedTuple):
    written_us: int
    held_us: int


class Rates:
    """The samples of every container and card that were added lately."""

    def __init__(self) -> None:
        self._samples: dict[Hashable, deque[_Sample]] = {}

    def add(self, key: Hashable, written_us: int, held_us: int) -> None:
        """Note what a mirror says; one that goes back (a new limiter, a clock that was set) starts anew."""
        samples = self._samples.setdefault(key, deque())
        if samples and (written_us < samples[-1].written_us or held_us < samples[-1].held_us):
            samples.clear()
        if not samples or written_us - samples[-1].written_us >= _LEAST_US:
            samples.append(_Sample(written_us, held_us))
        while len(samples) > 2 and samples[-1].written_us - samples[1].written_us >= WINDOW_US:
            samples.popleft()

    def share(self, key: Hashable) -> float | None:
        """The part of the card's time, from 0 to 1; None before there are two samples."""
        samples = self._samples.get(key)
        if samples is None or len(samples) < 2:
            return None
        first, last = samples[0], samples[-1]
        return min(1.0, (last.held_us - first.held_us) / (last.written_us - first.written_us))

    def keep(self, keys: set[Hashable]) -> None:
        """Forget all others."""
        for key in self._samples.keys() - keys:
            del self._samples[key]
