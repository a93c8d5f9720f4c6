"""Scores: how full a card or a node is, and how well the cards of a container are connected.

The formulas are HAMi's (v2.10), with two differences. Compute in use counts in hard mode too (HAMi's hard slices carry
no compute), and a good connection speaks for a node under both policies: HAMi adds it under ``spread`` as well, where
the lowest score wins, and so prefers the worse-connected node. One card has nothing to be connected with, so the
connection of single cards counts nothing. Volcano's score of a node, built from the first card of each container, is
not followed.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from vnpu.cards import NO_USE, WHOLE_CORE
from vnpu.mode import Mode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vnpu.annotations.policies import ScoringWeights
    from vnpu.cards import Card, Node, Use
    from vnpu.chips import Chip

SCALE: Final = 10
"""The score of a share that is wholly used."""

_GROUPED: Final = "Ascend910"
"""The family of chips whose cards may have a network id."""


def card_score(card: Card, held: Use, use: Use, weights: ScoringWeights) -> float:
    """How full the card is once the slice is on it: 0 to 10 times the sum of the weights.

    0 where the card has no slots, no memory, or no compute to share.

    Args:
        card: a card that may take the slice.
        held: what is held of it now.
        use: what the slice holds of it.
        weights: of slots, compute and memory.
    """
    if use.mode is Mode.SOFT:
        compute, total_compute = held.core_percent + use.core_percent, WHOLE_CORE
    else:
        compute, total_compute = held.ai_core + use.ai_core, card.ai_core
    if not (card.slots and card.memory_mib and total_compute):
        return 0.0
    return SCALE * (
        weights.slot * (held.slots + use.slots) / card.slots
        + weights.core * compute / total_compute
        + weights.memory * (held.memory_mib + use.memory_mib) / card.memory_mib
    )


def node_load(node: Node, used: Mapping[str, Use]) -> float:
    """How full the node is before the pod comes: 0 to 30, a third each for slots, compute and memory of all its cards.

    Args:
        node: the node.
        used: what is held, by UUID.
    """
    slots = memory_mib = percent = total_slots = total_memory_mib = 0
    for card in node.cards:
        total_slots += card.slots
        total_memory_mib += card.memory_mib
        held = used.get(card.uuid, NO_USE)
        if held.slots:
            slots += held.slots
            memory_mib += held.memory_mib
            percent += held.core_percent
            if held.ai_core and card.ai_core:
                percent += WHOLE_CORE * held.ai_core // card.ai_core
    if not slots:
        return 0.0
    return SCALE * (
        slots / max(1, total_slots) + percent / (WHOLE_CORE * len(node.cards)) + memory_mib / max(1, total_memory_mib)
    )


def tells_groups(chip: Chip) -> bool:
    """Whether network ids tell which cards of the chip have a fast connection.

    Those of other families mean nothing, and those of a super pod are all the same: it goes by modules.
    """
    return chip.common_word.startswith(_GROUPED) and not chip.super_pod


def connection(chip: Chip, cards: Sequence[Card]) -> float:
    """How well the cards of one container are connected: 10 where all are in one group, less the more they spread.

    The largest group's part of the cards, so 4 + 1 cards score 8. 0 for a single card, where a card has no group, and
    for chips that tell of none.

    Args:
        chip: the chip of the cards.
        cards: what the container takes.
    """
    if len(cards) < 2 or not tells_groups(chip):
        return 0.0
    groups = Counter(card.network_id for card in cards)
    if None in groups:
        return 0.0
    return SCALE * max(groups.values()) / len(cards)
