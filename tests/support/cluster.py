"""Cards, nodes and pods for the tests of fit, in few words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.chips import chip_named
from vnpu.cards import Card, Node, Use
from vnpu.containers import ContainerKind
from vnpu.mode import Mode
from vnpu.request import ContainerRequest, PodRequest, SliceRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from vnpu.chips import Chip
    from vnpu.placement import Placement


B3 = chip_named("Ascend910B3")
C = chip_named("Ascend910C")
P = chip_named("Ascend310P")


def card(
    index: int,
    of: Chip = B3,
    *,
    node: str = "n",
    memory_mib: int | None = None,
    slots: int = 10,
    healthy: bool = True,
    network_id: int | None = None,
) -> Card:
    return Card(
        uuid=f"{node}-{index}",
        index=index,
        chip=of.common_word,
        memory_mib=of.memory_allocatable_mib if memory_mib is None else memory_mib,
        slots=slots,
        ai_core=of.ai_core,
        ai_cpu=of.ai_cpu,
        healthy=healthy,
        network_id=network_id,
    )


def node(
    name: str = "n",
    cards: int | Iterable[Card] = 8,
    of: Chip = B3,
    *,
    soft: bool = True,
    cordoned: Iterable[str] = (),
    unsafe: str = "",
) -> Node:
    """A node of so many equal cards, or of these."""
    these = tuple(card(index, of, node=name) for index in range(cards)) if isinstance(cards, int) else tuple(cards)
    return Node(name, these, soft=soft, cordoned=frozenset(cordoned), unsafe=unsafe)


def soft(memory_mib: int, core_percent: int = 0, count: int = 1, of: Chip = B3) -> SliceRequest:
    return SliceRequest(of, count, Mode.SOFT, memory_mib, core_percent)


def hard(template: str | None = None, count: int = 1, of: Chip = B3) -> SliceRequest:
    """A template, or whole cards."""
    if template is None:
        return SliceRequest(of, count, Mode.HARD, of.memory_allocatable_mib)
    found = of.template_named(template)
    assert found is not None
    return SliceRequest(of, count, Mode.HARD, found.memory_mib, 0, template)


def container(
    wanted: SliceRequest | None, name: str = "main", kind: ContainerKind = ContainerKind.APP
) -> ContainerRequest:
    return ContainerRequest(name, kind, wanted)


def init(wanted: SliceRequest | None, name: str = "init") -> ContainerRequest:
    return container(wanted, name, ContainerKind.INIT)


def sidecar(wanted: SliceRequest | None, name: str = "sidecar") -> ContainerRequest:
    return container(wanted, name, ContainerKind.SIDECAR)


def pod(
    *wanted: SliceRequest | ContainerRequest, name: str = "pod", annotations: Mapping[str, str] | None = None
) -> PodRequest:
    """A pod of these containers; slices become app containers c0, c1, ..."""
    containers = tuple(
        entry if isinstance(entry, ContainerRequest) else container(entry, f"c{index}")
        for index, entry in enumerate(wanted)
    )
    modes = [entry.slice.mode for entry in containers if entry.slice is not None]
    return PodRequest("default", name, modes[0] if modes else Mode.HARD, containers, annotations or {})


def held_soft(memory_mib: int, core_percent: int = 0, slots: int = 1) -> Use:
    return Use(slots, memory_mib, core_percent, 0, 0, Mode.SOFT)


def held_hard(template: str | None = None, of: Chip = B3) -> Use:
    return hard(template, of=of).use


def full(of: Chip = B3) -> Use:
    """A card that a soft slice holds as a whole."""
    return held_soft(of.memory_allocatable_mib, 100)


def indices(placement: Placement) -> list[list[int]]:
    """The card indices of every container of a placement."""
    return [[share.card.index for share in placed.cards] for placed in placement.containers]
