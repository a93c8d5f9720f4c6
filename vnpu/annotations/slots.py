"""Which container holds which slot of a device text.

Two forms are in use. HAMi writes a slot for each container of the pod, init containers first, empty where a container
asks for nothing. Volcano writes slots only for those of ``spec.containers`` that ask; it never looks at init
containers. A text that is complete in one form (every container that the form looks at and that asks has its cards) is
not complete in the other, or means the same there, so the empty slots tell the forms apart. A text with holes may fit
both and mean two things; it is refused then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from vnpu.containers import ContainerKind
from vnpu.errors import AnnotationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vnpu.annotations.devices import Slot


@dataclass(frozen=True, slots=True)
class Owner:
    """A container that may hold a slot.

    Attributes:
        name: its name.
        kind: init container, sidecar or app container.
        asks: whether it asks for the chip that the text is about.
    """

    name: str
    kind: ContainerKind
    asks: bool


@dataclass(frozen=True, slots=True)
class Matched:
    """The slots, container by container.

    Attributes:
        containers: for each container of the pod, init containers first, its cards; ``()`` for none.
        warnings: sentences about what is legal but odd.
    """

    containers: tuple[Slot, ...]
    warnings: tuple[str, ...] = ()


def match(owners: Sequence[Owner], slots: Sequence[Slot], path: str = "") -> Matched:
    """Give each container its slot of a text that is whole (``-devices-allocated``).

    The device plugin takes slots out of ``-devices-to-allocate``, after which its form can no longer be told.

    Args:
        owners: the containers of the pod, init containers first.
        slots: what :func:`vnpu.annotations.devices.decode` found.
        path: the annotation, for error and warnings.

    Raises:
        AnnotationError: a slot with cards belongs to no container that asks, or to one container in HAMi's form and to
            another in Volcano's.
    """
    everyone = range(len(owners))
    askers = [index for index in everyone if owners[index].asks and owners[index].kind is ContainerKind.APP]
    readings = [reading for places in (everyone, askers) if (reading := _read(owners, slots, places)) is not None]
    if not readings:
        raise AnnotationError(
            path,
            _counted(slots),
            f"the pod asks for this chip in {_listed(owners)}: one slot for each container is expected, "
            "or one for each app container that asks",
        )
    # A complete reading beats one with holes, and two complete ones are always the same.
    best = max(readings, key=lambda reading: reading.complete)
    if not best.complete and any(reading.containers != best.containers for reading in readings):
        raise AnnotationError(
            path,
            _counted(slots),
            f"this is one thing in HAMi's form and another in Volcano's: cards for all of {_listed(owners)} are needed",
        )
    return Matched(best.containers, tuple(_oddities(owners, slots, best.containers, path)))


class _Reading(NamedTuple):
    containers: tuple[Slot, ...]
    complete: bool


def _read(owners: Sequence[Owner], slots: Sequence[Slot], places: Sequence[int]) -> _Reading | None:
    """Slot ``i`` for container ``places[i]``, None where cards would go to a container that does not ask."""
    containers: list[Slot] = [()] * len(owners)
    for index, slot in enumerate(slots):
        if not slot:
            continue
        if index >= len(places) or not owners[places[index]].asks:
            return None
        containers[places[index]] = slot
    return _Reading(tuple(containers), all(containers[place] or not owners[place].asks for place in places))


def _oddities(owners: Sequence[Owner], slots: Sequence[Slot], containers: Sequence[Slot], path: str) -> Iterator[str]:
    if len(slots) > len(owners):
        yield f"{path}: {len(slots)} slots for {len(owners)} containers; the empty ones at the end are ignored"
    if any(slots):
        for owner, slot in zip(owners, containers, strict=True):
            if owner.asks and not slot:
                yield f"{path}: container {owner.name} asks for this chip and has no cards in it"


def _counted(slots: Sequence[Slot]) -> str:
    return f"slots with {', '.join(str(len(slot)) for slot in slots)} cards"


def _listed(owners: Sequence[Owner]) -> str:
    return ", ".join(owner.name for owner in owners if owner.asks) or "no container"
