"""Who holds what on this node, as the pods' annotations tell it: no file, no clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from interceptor.device_plugin.answer import mode_of
from interceptor.quota import CARDS
from vnpu.errors import InputError
from vnpu.holdings import cards_by_container
from vnpu.mode import Mode
from vnpu.names import allocated, runtime_info
from vnpu.objects import ENDED_PHASES, annotations_of, mapping_at
from vnpu.quantity import MIB

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vnpu.annotations.allocated import AllocatedCard
    from vnpu.chips import Chip, ChipTable
    from vnpu.containers import Container

_STATUSES: Final = ("initContainerStatuses", "containerStatuses")


@dataclass(frozen=True, slots=True)
class Slice:
    """A container's part of one card.

    Attributes:
        uuid: the card.
        index: its place among the container's cards.
        memory: bytes that were granted.
        core: percent that was granted, 0 for none of its own.
    """

    uuid: str
    index: int
    memory: int
    core: int


@dataclass(frozen=True, slots=True)
class Tenant:
    """A container with soft slices.

    Attributes:
        uid: of its pod.
        namespace: of its pod.
        pod: its pod's name.
        container: its name.
        runtime_id: what the container engine calls it, ``""`` before it runs.
        slices: card by card, in the order in which the container sees them.
    """

    uid: str
    namespace: str
    pod: str
    container: str
    runtime_id: str
    slices: tuple[Slice, ...]


def tenants(pod: Mapping[str, Any], chips: ChipTable) -> list[Tenant]:
    """The containers of a pod that have soft slices; none of a pod that has ended.

    Args:
        pod: the Pod as JSON.
        chips: the chip table.

    Raises:
        FieldError: the pod's annotations do not tell.
    """
    if mapping_at(pod, "status").get("phase") in ENDED_PHASES:
        return []
    slices: dict[str, list[Slice]] = {}
    for container, card, chip in _soft_cards(pod, chips):
        memory = (card.memory_mib or chip.memory_allocatable_mib) * MIB
        mine = slices.setdefault(container.name, [])
        mine.append(Slice(card.uuid, len(mine), memory, card.core))
    for name, mine in slices.items():
        if len(mine) > CARDS:
            raise InputError(f"container {name}", len(mine), f"at most {CARDS} cards are allowed")
    metadata = mapping_at(pod, "metadata")
    runtime_ids = dict(_runtime_ids(pod))
    return [
        Tenant(
            metadata.get("uid", ""),
            metadata.get("namespace", ""),
            metadata.get("name", ""),
            container,
            runtime_ids.get(container, ""),
            tuple(found),
        )
        for container, found in slices.items()
    ]


def _soft_cards(pod: Mapping[str, Any], chips: ChipTable) -> Iterator[tuple[Container, AllocatedCard, Chip]]:
    annotations = annotations_of(pod)
    for chip in chips:
        if allocated(chip.common_word) not in annotations and runtime_info(chip.common_word) not in annotations:
            continue
        for container, cards in cards_by_container(pod, chip):
            if cards and mode_of(pod, cards, chip) is Mode.SOFT:
                yield from ((container, card, chip) for card in cards)


def _runtime_ids(pod: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    status = mapping_at(pod, "status")
    for section in _STATUSES:
        for told in status.get(section) or ():
            yield told["name"], str(told.get("containerID") or "").rpartition("//")[2]
