"""How far cards and nodes are from taking a slice: refusals in numbers.

Nothing here depends on what cards and nodes are called, so that equal ones are judged once.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from vnpu.cards import WHOLE_CORE
from vnpu.fit.answers import Reason
from vnpu.fit.laws import compute_obstacle, obstacle
from vnpu.mode import Mode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from vnpu.cards import Card, Use
    from vnpu.fit.laws import Want


class Distance(IntEnum):
    """How far a card or node is from taking a slice: the remedy, the easiest first."""

    OTHER_ORDER = 0
    SMALLER_SLICE = 1
    OTHERS_GONE = 2
    CARD_BACK = 3
    OTHER_NODE = 4


DISTANCE: Final = {
    Reason.CARD_INSUFFICIENT_MEMORY: Distance.SMALLER_SLICE,
    Reason.CARD_INSUFFICIENT_CORE: Distance.SMALLER_SLICE,
    Reason.CARD_INSUFFICIENT_AI_CORE: Distance.SMALLER_SLICE,
    Reason.CARD_INSUFFICIENT_AI_CPU: Distance.SMALLER_SLICE,
    Reason.CARD_TIME_SLICING_EXHAUSTED: Distance.OTHERS_GONE,
    Reason.EXCLUSIVE_CONFLICT: Distance.OTHERS_GONE,
    Reason.CARD_COMPUTE_UNITS_EXHAUSTED: Distance.OTHERS_GONE,
    Reason.CARD_MODE_CONFLICT: Distance.OTHERS_GONE,
    Reason.CARD_NOT_HEALTH: Distance.CARD_BACK,
    Reason.CARD_CORDONED: Distance.CARD_BACK,
    Reason.CARD_UUID_MISMATCH: Distance.CARD_BACK,
    Reason.CARD_TYPE_MISMATCH: Distance.OTHER_NODE,
}


@dataclass(frozen=True, slots=True)
class Miss:
    """What speaks against a card.

    Attributes:
        reasons: the law that the slice would break, and the one that a slice without memory would still break.
        distance: how far the card is from taking it.
        shortfall: what is missing of amounts, as parts of what the card has.
    """

    reasons: tuple[Reason, ...]
    distance: Distance
    shortfall: float


@dataclass(frozen=True, slots=True)
class Tally:
    """The refusal of a node without the sentence about it.

    Attributes:
        reasons: cards per reason; node-wide reasons count 1.
        total: cards that were looked at; 1, the node itself, where it has none.
        text: as upstream's events write it: ``2/8 CardInsufficientMemory, 6/8 CardNotHealth``.
        distance: how far the node is from holding the pod: compare two nodes, the smaller is nearer.
    """

    reasons: Mapping[Reason, int]
    total: int
    text: str
    distance: tuple[float, ...]


def card_miss(want: Want, card: Card, held: Use, cordoned: AbstractSet[str]) -> Miss | None:
    """What speaks against one more slice on the card, None where it would do; arguments as for :func:`obstacle`."""
    reason = obstacle(want, card, held, cordoned)
    return None if reason is None else miss_for(reason, want, card, held)


def miss_for(reason: Reason, want: Want, card: Card, held: Use) -> Miss:
    """How far the card is from taking the slice, where this law speaks against it."""
    reasons: tuple[Reason, ...] = (reason,)
    if reason is Reason.CARD_INSUFFICIENT_MEMORY:
        # A card whose compute is given away is not near, however little memory is missing.
        further = compute_obstacle(want.use, card, held)
        if further is not None:
            reasons = (reason, further)
    shortfall = sum(missing / max(1, total) for missing, total, _ in shortages(want, card, held))
    return Miss(reasons, max(DISTANCE[reason] for reason in reasons), shortfall)


def shortages(want: Want, card: Card, held: Use) -> list[tuple[int, int, str]]:
    """What is missing on the card: how much, of how much in all, and of what."""
    use = want.use
    amounts = [(held.memory_mib + use.memory_mib, card.memory_mib, "MiB")]
    if use.mode is Mode.SOFT:
        amounts.append((held.core_percent + use.core_percent, WHOLE_CORE, "percent of compute"))
    else:
        amounts.append((held.ai_core + use.ai_core, card.ai_core, "AI cores"))
        amounts.append((held.ai_cpu + use.ai_cpu, card.ai_cpu, "AI CPUs"))
    return [(asked - total, total, unit) for asked, total, unit in amounts if asked > total]


def tally_node(reason: Reason, cards: int) -> Tally:
    """The refusal of a node with so many cards, none of which was looked at."""
    return _tally(Counter({reason: 1}), cards, (DISTANCE.get(reason, Distance.OTHER_NODE), 0.0, 0.0))


def tally_cards(want: Want, misses: Sequence[Miss | None], *, given_up: bool = False) -> Tally:
    """The refusal of a node whose cards do not hold the pod.

    Args:
        want: what the container asks for at which the search ended.
        misses: what speaks against each card.
        given_up: whether there may be a way all the same.
    """
    reasons = Counter(miss.reasons[0] for miss in misses if miss is not None)
    of_chip = len(misses) - reasons[Reason.CARD_TYPE_MISMATCH]
    fitting = misses.count(None)
    missing = want.count - fitting
    if of_chip < want.count:
        reasons[Reason.NODE_INSUFFICIENT_DEVICE] = 1
        return _tally(reasons, len(misses), (Distance.OTHER_NODE, missing, 0.0))
    reasons[Reason.ALLOCATED_CARDS_INSUFFICIENT] = fitting
    if given_up:
        distance: tuple[float, ...] = (Distance.OTHER_ORDER, 0.0, 0.0)
    elif missing <= 0:
        distance = (Distance.OTHERS_GONE, 0.0, 0.0)
    else:
        best, shortfall = min((miss.distance, miss.shortfall) for miss in misses if miss is not None)
        distance = (best, missing, shortfall)
    return _tally(reasons, len(misses), distance)


def _tally(reasons: Counter[Reason], cards: int, distance: tuple[float, ...]) -> Tally:
    total = max(1, cards)
    counted, text = _told(tuple(sorted(reasons.items())), total)
    return Tally(counted, total, text, distance)


@lru_cache(4096)
def _told(reasons: tuple[tuple[Reason, int], ...], total: int) -> tuple[Mapping[Reason, int], str]:
    """The counts and their text, made once for all nodes that are refused alike."""
    counted = MappingProxyType({reason: count for reason, count in reasons if count})
    return counted, ", ".join(sorted(f"{count}/{total} {reason}" for reason, count in counted.items()))
