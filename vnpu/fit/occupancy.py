"""Who holds what once a plan is carried out: card by card, the pods of the plan and what stood there before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vnpu.cards import WHOLE_CORE
from vnpu.fit.admit import full_name
from vnpu.mode import Mode

if TYPE_CHECKING:
    from vnpu.cards import Card, Node, Use
    from vnpu.fit.answers import CardStatus
    from vnpu.fit.report import Report


@dataclass(frozen=True, slots=True)
class Holding:
    """What a pod of the plan holds of a card, or others held before.

    Attributes:
        pod: ``namespace/name``, None for what was held before.
        number: the place of the pod in the plan, 0 for what was held before.
        use: what is held.
    """

    pod: str | None
    number: int
    use: Use


@dataclass(frozen=True, slots=True)
class Occupied:
    """A card and its holdings: what was held before, then the pods in the order of the plan."""

    status: CardStatus
    cordoned: bool
    holdings: tuple[Holding, ...]

    @property
    def card(self) -> Card:
        """The card."""
        return self.status.card


@dataclass(frozen=True, slots=True)
class OccupiedNode:
    """A node and its cards, in their order."""

    node: Node
    cards: tuple[Occupied, ...]


def occupancy(report: Report) -> list[OccupiedNode]:
    """Every node of the plan, in its order."""
    held: dict[str, list[Holding]] = {}
    for number, placement in enumerate(report.plan.placements):
        for uuid, use in placement.holds().items():
            held.setdefault(uuid, []).append(Holding(full_name(placement.pod), number, use))
    statuses = iter(report.plan.cards)
    return [
        OccupiedNode(node, tuple(_occupied(next(statuses), node, held) for _ in node.cards))
        for node in report.cluster.nodes
    ]


def _occupied(status: CardStatus, node: Node, held: dict[str, list[Holding]]) -> Occupied:
    uuid = status.card.uuid
    planned = held.get(uuid, [])
    before = status.use
    for holding in planned:
        before = before.minus(holding.use)
    earlier = [Holding(None, 0, before)] if before.slots else []
    return Occupied(status, uuid in node.cordoned, (*earlier, *planned))


def compute_part(card: Card, use: Use) -> float:
    """The part of the card's compute that is held: percent of soft slices, AI cores of hard ones."""
    if use.mode is Mode.HARD:
        return use.ai_core / card.ai_core if card.ai_core else 0.0
    return use.core_percent / WHOLE_CORE


def totals(nodes: list[OccupiedNode]) -> tuple[float, float]:
    """The parts of all memory and of all compute that are held, 0 to 1; 0 without cards."""
    cards = [card for one in nodes for card in one.cards]
    memory = sum(card.card.memory_mib for card in cards)
    if not memory:
        return 0.0, 0.0
    compute = sum(min(1.0, compute_part(card.card, card.status.use)) for card in cards)
    return min(1.0, sum(card.status.use.memory_mib for card in cards) / memory), compute / len(cards)


def described(card: Card, use: Use) -> str:
    """What is held, in words: ``8192 MiB, core 20 %``."""
    if use.mode is not Mode.HARD:
        return f"{use.memory_mib} MiB, core {use.core_percent} %"
    return f"{use.memory_mib} MiB, {use.ai_core} of {card.ai_core} AI cores"
