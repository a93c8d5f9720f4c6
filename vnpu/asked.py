"""What one container asks for, as it stands in its limits and requests.

Reading takes two steps, because the mode of the pod lies between them. :func:`find` tells which chip a container names
and which of its resources; the core among those of all containers decides the mode. :func:`numbers` then reads the
amounts, of which the mode says how large they may be. What makes no sense is a fault with the place where it stands.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from vnpu import quantity
from vnpu.cards import WHOLE_CORE
from vnpu.chips import Chip, ChipTable, ResourceKind
from vnpu.containers import Container, Named, resources
from vnpu.errors import FieldError, InputError, QuantityError, RequestError, key, shown
from vnpu.mode import Mode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


class Found(NamedTuple):
    """What a container names.

    Attributes:
        container: the container.
        chip: the configured chip that it asks for, None where it asks for none.
        named: the resources of that chip, by what they count; the limit where limits and requests both name one.
        faults: what contradicts that, or has no shape.
        others: the resources that no configured chip has.
    """

    container: Container
    chip: Chip | None
    named: Mapping[ResourceKind, Named]
    faults: Sequence[FieldError]
    others: Sequence[Named]


@dataclass(frozen=True, slots=True)
class Asked:
    """The numbers of one container, as written: None where neither limits nor requests name the resource.

    Attributes:
        container: the container.
        mode: the mode of its pod.
        chip: the one chip that it names.
        count: cards.
        memory: per card, in units of the chip's memory resource (MiB times ``memory_factor``).
        core: percent per card.
        named: where they stand.
    """

    container: Container
    mode: Mode
    chip: Chip
    count: int | None
    memory: int | None
    core: int | None
    named: Mapping[ResourceKind, Named]

    def path(self, kind: ResourceKind) -> str:
        """Where the number stands; the limit that it would stand in where it is not written."""
        if kind in self.named:
            return self.named[kind].path
        return key(f"{self.container.path}.resources.limits", self.chip.resource(kind))


class Reading(NamedTuple):
    """The numbers of a container, or why there are none.

    Attributes:
        asked: None where the container asks for no chip, where something is wrong, and where the mode is not known.
        faults: everything that is wrong with what the container asks for.
    """

    asked: Asked | None
    faults: Sequence[FieldError]


def find(container: Container, chips: ChipTable) -> Found:
    """Which chip a container asks for, and by which resources; their amounts are compared, but not judged yet.

    Where it names several, its chip is one of which it names the count, else the first in the order of the table: the
    API server sorts the keys, and the answer must not depend on that.
    """
    ours: list[tuple[Chip, ResourceKind, Named]] = []
    faults: list[FieldError] = []
    others: list[Named] = []
    for named in resources(container):
        if isinstance(named, InputError):
            faults.append(named)
        elif (entry := chips.resource(named.name)) is None:
            others.append(named)
        else:
            ours.append((*entry, named))
    if not ours:
        return Found(container, None, {}, faults, others)
    chip = ours[0][0]
    if any(owner is not chip for owner, _, _ in ours):
        chip = _chosen(ours, chips)
        faults += _strangers(ours, chip)
    found: dict[ResourceKind, Named] = {}
    for owner, kind, named in ours:
        if owner is chip:
            faults += _differences(found.setdefault(kind, named), named)
    return Found(container, chip, found, faults, others)


def _chosen(ours: Sequence[tuple[Chip, ResourceKind, Named]], chips: ChipTable) -> Chip:
    counted = {owner.common_word for owner, kind, _ in ours if kind is ResourceKind.COUNT}
    words = counted or {owner.common_word for owner, _, _ in ours}
    return next(chip for chip in chips if chip.common_word in words)


def _strangers(ours: Sequence[tuple[Chip, ResourceKind, Named]], chip: Chip) -> Iterator[FieldError]:
    """One fault for each further chip, at the place where it is named first."""
    first: dict[str, Named] = {}
    for owner, _, named in ours:
        if owner is not chip:
            first.setdefault(owner.common_word, named)
    for named in first.values():
        allowed = f"one container may name one chip only, and {chip.common_word} is there already"
        yield RequestError(named.path, named.value, allowed)


def _differences(limit: Named, requested: Named) -> Iterator[FieldError]:
    """What is wrong with a request beside its limit. What is wrong with the limit is told when it is read."""
    if requested is limit or quantity.equal(requested.value, limit.value):
        return
    try:
        quantity.parse(limit.value)
    except FieldError:
        return
    try:
        quantity.parse(requested.value, requested.path)
    except FieldError as fault:
        yield fault
    else:
        allowed = f"limit and request must be equal in value, and the limit is {shown(limit.value)}"
        yield RequestError(requested.path, requested.value, allowed)


def numbers(found: Found, mode: Mode | None) -> Reading:
    """The amounts that a container asks for.

    Args:
        found: what the container names.
        mode: the mode of its pod; None where its annotation holds neither. Nothing is given then, and only what would
            be wrong in either mode is a fault.
    """
    chip = found.chip
    faults = list(found.faults)
    if chip is None:
        return Reading(None, faults)
    amounts: dict[ResourceKind, int] = {}
    for kind, high, unit in _ranges(chip, mode):
        named = found.named.get(kind)
        if named is None:
            continue
        try:
            amounts[kind] = quantity.whole(named.value, named.path, low=1, high=high, unit=unit)
        except QuantityError as fault:
            if kind is ResourceKind.MEMORY:
                several = chip.super_pod or amounts.get(ResourceKind.COUNT, 1) > 1
                meant = _meant(named.value, chip.memory_factor, high, parts=mode is not Mode.HARD or not several)
                fault = QuantityError(fault.path, fault.value, f"{fault.allowed}{meant}")
            elif kind is ResourceKind.COUNT and _is_part(named.value):
                remedy = f"for a part of a card ask for {chip.memory_name} and {chip.core_name}"
                fault = QuantityError(fault.path, fault.value, f"{fault.allowed}; {remedy}")
            faults.append(fault)
    if faults or mode is None:
        return Reading(None, faults)
    count, memory, core = (amounts.get(kind) for kind in (ResourceKind.COUNT, ResourceKind.MEMORY, ResourceKind.CORE))
    return Reading(Asked(found.container, mode, chip, count, memory, core, found.named), faults)


def count(found: Found) -> int | None:
    """Cards that a container asks for, as written; None where it names no count, or one that cannot be read."""
    named = found.named.get(ResourceKind.COUNT)
    if named is None:
        return None
    try:
        return quantity.whole(named.value, low=1, high=quantity.INT32_MAX)
    except QuantityError:
        return None


def _is_part(value: Any) -> bool:
    """Whether a count of cards is more than none, and no whole number."""
    try:
        number = quantity.parse(value)
    except QuantityError:
        return False
    return number > 0 and number.denominator > 1


def _meant(value: Any, factor: int, high: int, *, parts: bool) -> str:
    """What somebody meant who wrote bytes: 16Gi asks for 17179869184 of a resource that counts MiB.

    Args:
        value: what is written.
        factor: MiB in a unit of the resource.
        high: the most units that are allowed.
        parts: whether a part of a card may be asked for.
    """
    try:
        number = quantity.parse(value)
    except QuantityError:
        return ""
    mib = number / quantity.MIB
    if mib < 1 or number <= high:
        return ""
    low, top = math.floor(mib), math.ceil(mib)
    amount = f"{top} MiB" if low == top else f"more than {low} and less than {top} MiB"
    units = math.ceil(mib / factor)
    if units > high:
        remedy = "more than there is"
    elif not parts:
        remedy = "and several cards come as whole cards: leave the memory out"
    else:
        remedy = f"write {units}" if units * factor == mib else f"rounded up, write {units}"
        remedy += f" (for {units * factor} MiB)" if factor > 1 else ""
    return f"; the unit is {_unit(factor)} already: {value} is {amount}, {remedy}"


def _unit(factor: int) -> str:
    return "MiB" if factor == 1 else f"{factor} MiB"


def _ranges(chip: Chip, mode: Mode | None) -> tuple[tuple[ResourceKind, int, str], ...]:
    """The largest number and the unit of each resource.

    A hard slice of more than slices may hold together is the whole card.
    """
    largest_mib = chip.memory_allocatable_mib if mode is Mode.SOFT else chip.memory_capacity_mib
    unit = _unit(chip.memory_factor)
    units = unit if chip.memory_factor == 1 else f"units of {unit}"
    return (
        (ResourceKind.COUNT, quantity.INT32_MAX, "card(s)"),
        (ResourceKind.MEMORY, largest_mib // chip.memory_factor, units),
        (ResourceKind.CORE, WHOLE_CORE, "percent of a card"),
    )
