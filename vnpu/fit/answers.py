"""What fit answers: placements, refusals with their reasons, and plans."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from vnpu.placement import CardShare, ContainerPlacement, Placement

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vnpu.cards import Card, Use
    from vnpu.mode import Mode
    from vnpu.request import PodRequest


__all__ = (
    "CardShare",
    "CardStatus",
    "CardVerdict",
    "ContainerPlacement",
    "NodeRefusal",
    "Placement",
    "Plan",
    "Reason",
    "Unplaced",
)


class Reason(StrEnum):
    """Why a card or a node is not taken; the codes that HAMi's events use, and ours where it has none."""

    MODE_NOT_FIT = "ModeNotFit"
    CARD_NOT_HEALTH = "CardNotHealth"
    CARD_TYPE_MISMATCH = "CardTypeMismatch"
    CARD_UUID_MISMATCH = "CardUuidMismatch"
    CARD_TIME_SLICING_EXHAUSTED = "CardTimeSlicingExhausted"
    EXCLUSIVE_CONFLICT = "ExclusiveDeviceAllocateConflict"
    CARD_INSUFFICIENT_MEMORY = "CardInsufficientMemory"
    CARD_INSUFFICIENT_CORE = "CardInsufficientCore"
    CARD_COMPUTE_UNITS_EXHAUSTED = "CardComputeUnitsExhausted"
    NODE_INSUFFICIENT_DEVICE = "NodeInsufficientDevice"
    ALLOCATED_CARDS_INSUFFICIENT = "AllocatedCardsInsufficientRequest"
    CARD_MODE_CONFLICT = "CardModeConflict"
    CARD_INSUFFICIENT_AI_CORE = "CardInsufficientAICore"
    CARD_INSUFFICIENT_AI_CPU = "CardInsufficientAICPU"
    CARD_CORDONED = "CardCordoned"
    NODE_UNSAFE = "NodeUnsafe"
    NODE_NOT_ELIGIBLE = "NodeNotEligible"
    GANG_NOT_READY = "GangNotReady"
    REFUSED = "Refused"


@dataclass(frozen=True, slots=True)
class NodeRefusal:
    """Why a node does not hold a pod.

    Attributes:
        node: the node's name.
        reasons: cards per reason; node-wide reasons count 1.
        total: cards that were looked at; 1, the node itself, where it has none.
        text: as upstream's events write it: ``2/8 CardInsufficientMemory, 6/8 CardNotHealth``.
        message: one sentence for people, with what is missing on the node's best card.
        distance: how far the node is from holding the pod: compare two nodes, the smaller is nearer.
    """

    node: str
    reasons: Mapping[Reason, int]
    total: int
    text: str
    message: str
    distance: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class CardVerdict:
    """What speaks against one card, for one container of a pod.

    Attributes:
        container: the container's name.
        card: the card.
        reason: the first law that the slice would break on it, None where the card would do.
        detail: the same for people: ``2048 MiB are missing``; ``""`` where the card would do.
    """

    container: str
    card: Card
    reason: Reason | None
    detail: str


@dataclass(frozen=True, slots=True)
class Unplaced:
    """A pod that no node holds.

    Attributes:
        message: one sentence for people, with the nearest miss: what is missing on the best card.
        reasons: cards per reason code over all nodes.
        nodes: per node name, the text of :class:`NodeRefusal`.
    """

    pod: PodRequest
    message: str
    reasons: Mapping[Reason, int]
    nodes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CardStatus:
    """A card after the plan: what it is and what is held of it."""

    node: str
    card: Card
    mode: Mode | None
    use: Use


@dataclass(frozen=True, slots=True)
class Plan:
    """The answer of the planner.

    Attributes:
        node_policy: ``binpack`` or ``spread``, as given for the whole plan.
        card_policy: the same for cards.
        placements: in the order of the workload.
        unplaced: in the order of the workload; pods that admission refused among them.
        cards: every card of every node, by node order and card index.
        warnings: sentences.
    """

    node_policy: str
    card_policy: str
    placements: tuple[Placement, ...]
    unplaced: tuple[Unplaced, ...]
    cards: tuple[CardStatus, ...]
    warnings: tuple[str, ...] = field(default=())
