"""The laws of one card.

Every slice on a card obeys them together with all that stands there already:

* soft slices share at most 100 percent of the compute, all slices at most the memory and the slots that the card has;
* hard slices share at most its AI cores and AI CPUs;
* hard and soft slices do not meet on one card;
* core 100 wants the card alone, and a card whose compute is given away takes no slice without core of its own.

The last law depends on the order, as in HAMi: a slice without core may come first and see others fill the card.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vnpu.annotations.policies import ANY_CARD, CardChoice
from vnpu.cards import WHOLE_CORE
from vnpu.fit.answers import Reason
from vnpu.mode import Mode

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from vnpu.cards import Card, Use
    from vnpu.chips import Chip
    from vnpu.containers import ContainerKind


@dataclass(frozen=True, slots=True)
class Want:
    """What one container wants of each of its cards.

    Attributes:
        container: the container's name.
        kind: how Kubernetes runs it.
        chip: its chip.
        word: the chip's common word.
        count: cards.
        use: what the slice holds of each card.
        choice: the cards that the pod's annotations allow.
        unused_only: whether the card policy takes only cards that nobody uses.
    """

    container: str
    kind: ContainerKind
    chip: Chip
    word: str
    count: int
    use: Use
    choice: CardChoice = ANY_CARD
    unused_only: bool = False


def obstacle(want: Want, card: Card, held: Use, cordoned: AbstractSet[str]) -> Reason | None:
    """The first law that one more slice would break on the card, None where it may come.

    The order is that of HAMi's filters, what cannot change before what may be given back.

    Args:
        want: the slice.
        card: the card.
        held: what stands on the card while the slice runs.
        cordoned: UUIDs that take no new slices.
    """
    closed = _closed(want, card, cordoned)
    if closed is not None:
        return closed
    use = want.use
    slots = held.slots
    if slots and held.mode is not use.mode:
        return Reason.CARD_MODE_CONFLICT
    if slots >= card.slots:
        return Reason.CARD_TIME_SLICING_EXHAUSTED
    if slots and want.unused_only:
        return Reason.EXCLUSIVE_CONFLICT
    if held.memory_mib + use.memory_mib > card.memory_mib:
        return Reason.CARD_INSUFFICIENT_MEMORY
    return compute_obstacle(use, card, held)


def compute_obstacle(use: Use, card: Card, held: Use) -> Reason | None:
    """The first law about compute that one more slice would break on the card."""
    return _soft_obstacle(use, held) if use.mode is Mode.SOFT else _hard_obstacle(use, held, card)


def _closed(want: Want, card: Card, cordoned: AbstractSet[str]) -> Reason | None:
    """What speaks against the card whatever stands on it."""
    if card.chip != want.word:
        return Reason.CARD_TYPE_MISMATCH
    if not card.healthy:
        return Reason.CARD_NOT_HEALTH
    if card.uuid in cordoned:
        return Reason.CARD_CORDONED
    if want.choice is not ANY_CARD and not want.choice.allows(card.uuid):
        return Reason.CARD_UUID_MISMATCH
    return None


def _soft_obstacle(use: Use, held: Use) -> Reason | None:
    core = use.core_percent
    if held.core_percent + core > WHOLE_CORE:
        return Reason.CARD_INSUFFICIENT_CORE
    if core == WHOLE_CORE and held.slots:
        return Reason.EXCLUSIVE_CONFLICT
    if core == 0 and held.core_percent >= WHOLE_CORE:
        return Reason.CARD_COMPUTE_UNITS_EXHAUSTED
    return None


def _hard_obstacle(use: Use, held: Use, card: Card) -> Reason | None:
    if held.ai_core + use.ai_core > card.ai_core:
        return Reason.CARD_INSUFFICIENT_AI_CORE
    if held.ai_cpu + use.ai_cpu > card.ai_cpu:
        return Reason.CARD_INSUFFICIENT_AI_CPU
    return None
