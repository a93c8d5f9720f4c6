"""Where a pod goes: what fit decides, and what is then written into annotations and containers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vnpu.request import order_rule

if TYPE_CHECKING:
    from vnpu.cards import Card, Use
    from vnpu.containers import ContainerKind
    from vnpu.request import PodRequest


@dataclass(frozen=True, slots=True)
class CardShare:
    """What one container gets of one card: MiB, percent (0 in hard mode) and the template, None unless one."""

    card: Card
    memory_mib: int
    core_percent: int
    template: str | None


@dataclass(frozen=True, slots=True)
class ContainerPlacement:
    """A container and its cards, ``()`` where it asks for no NPU; as many distinct cards as it asked for otherwise."""

    name: str
    cards: tuple[CardShare, ...]


@dataclass(frozen=True, slots=True)
class Placement:
    """A pod on a node: every container of the pod, in the order of :attr:`vnpu.request.PodRequest.containers`."""

    pod: PodRequest
    node: str
    containers: tuple[ContainerPlacement, ...]

    def holds(self) -> dict[str, Use]:
        """What the pod reserves of each of its cards, by UUID: the peak of its containers on that card."""
        by_card: dict[str, list[tuple[ContainerKind, Use]]] = {}
        for request, placed in zip(self.pod.containers, self.containers, strict=True):
            if request.slice is not None:
                for share in placed.cards:
                    by_card.setdefault(share.card.uuid, []).append((request.kind, request.slice.use))
        return {uuid: order_rule(uses)[0] for uuid, uses in by_card.items()}
