"""What a measurement comes to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """A measured number and how it came about."""

    name: str
    value: float
    note: str


@dataclass(frozen=True)
class Effort:
    """How long to measure.

    Attributes:
        rounds: turns of what is compared in turns.
        seconds: how long a card is watched.
    """

    rounds: int
    seconds: float
