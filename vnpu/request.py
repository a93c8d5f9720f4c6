"""What a pod asks for: reading its containers, completing what is left out, and adding it up.

Reading (:func:`read`) takes each number from limits and requests as it stands and refuses what makes no sense.
Completing (:func:`complete`) decides what a container gets: count, memory and core per card, and the template in hard
mode. Admission writes that decision into the pod; fit places it. Neither decides again.

Adding up (:func:`order_rule`) follows Kubernetes' own rule for init containers and native sidecars
(KEP-753: a sidecar runs from its place in the list of init containers on).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from vnpu import names, quantity
from vnpu.cards import NO_USE, WHOLE_CORE, Use
from vnpu.chips import Chip, ChipTable, ResourceKind
from vnpu.containers import Container, ContainerKind, Named, containers, resources
from vnpu.errors import FieldError, InputError, RequestError, key, shown
from vnpu.mode import Mode, decide

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


@dataclass(frozen=True, slots=True)
class Asked:
    """The numbers of one container, as written: None where neither limits nor requests name the resource.

    Attributes:
        chip: the one chip that the container names.
        count: cards.
        memory: per card, in units of the chip's memory resource (MiB times ``memory_factor``).
        core: percent per card.
    """

    chip: Chip
    count: int | None
    memory: int | None
    core: int | None


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read of the resources of one container.

    Attributes:
        kinds: the resources of configured chips that it names, whatever their values; empty where it asks for none.
        asked: the numbers, None where it asks for none or one of them has a fault.
        faults: everything that is wrong with them.
        others: the resources that no configured chip has.
    """

    kinds: frozenset[ResourceKind]
    asked: Asked | None
    faults: tuple[FieldError, ...]
    others: tuple[Named, ...]


NO_KINDS: Final[frozenset[ResourceKind]] = frozenset()


@dataclass(frozen=True, slots=True)
class SliceRequest:
    """What one container gets of each of its cards.

    Attributes:
        chip: of exactly this model.
        count: cards, each charged in full.
        mode: soft or hard.
        memory_mib: MiB per card.
        core_percent: percent of each card, 0 for none of its own; always 0 in hard mode.
        template: name of the template in hard mode, None for a whole card and for soft slices.
    """

    chip: Chip
    count: int
    mode: Mode
    memory_mib: int
    core_percent: int = 0
    template: str | None = None

    @property
    def use(self) -> Use:
        """What the slice holds of each of its cards."""
        if self.mode is Mode.SOFT:
            return Use(1, self.memory_mib, self.core_percent, 0, 0, self.mode)
        template = self.chip.template_named(self.template) if self.template is not None else None
        ai_core, ai_cpu = (
            (template.ai_core, template.ai_cpu) if template is not None else (self.chip.ai_core, self.chip.ai_cpu)
        )
        return Use(1, self.memory_mib, 0, ai_core, ai_cpu, self.mode)


@dataclass(frozen=True, slots=True)
class Completed:
    """The decision for one container: the slice and the numbers that the pod must show.

    Attributes:
        slice: what the container gets.
        memory: what stands in the memory resource, in its unit.
        core: what stands in the core resource, None where it stays away.
        warnings: sentences about what works but surprises.
    """

    slice: SliceRequest
    memory: int
    core: int | None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ContainerRequest:
    """A container and its slice, None where it asks for no NPU."""

    name: str
    kind: ContainerKind
    slice: SliceRequest | None


@dataclass(frozen=True, slots=True)
class PodRequest:
    """What a pod asks for.

    Attributes:
        namespace: the pod's namespace, ``""`` where it has none yet.
        name: the pod's name.
        mode: soft or hard; every slice of a pod has the pod's mode.
        containers: all of them, init containers and sidecars first, in the order of the pod. Positions count: HAMi's
            device text has a slot for each.
        annotations: the pod's annotations; fit reads policies and card choices from them.
    """

    namespace: str
    name: str
    mode: Mode
    containers: tuple[ContainerRequest, ...]
    annotations: Mapping[str, str]

    @property
    def asks(self) -> bool:
        """Whether any container asks for an NPU."""
        return any(container.slice is not None for container in self.containers)

    def demand(self) -> dict[str, tuple[Use, Use]]:
        """Peak and steady use over all cards together, per common word; per-card amounts times the count."""
        words = dict.fromkeys(c.slice.chip.common_word for c in self.containers if c.slice is not None)
        return {
            word: order_rule(
                (container.kind, _times(container.slice.use, container.slice.count))
                for container in self.containers
                if container.slice is not None and container.slice.chip.common_word == word
            )
            for word in words
        }


def read(container: Container, chips: ChipTable) -> Reading:
    """What a container says of the configured chips, with every fault in it."""
    others: list[Named] = []
    chip, found, faults = _found(container, chips, others)
    if chip is None:
        return Reading(NO_KINDS, None, tuple(faults), tuple(others))
    amounts = []
    for kind, high, unit in _ranges(chip):
        try:
            amounts.append(_whole(found.get(kind), high, unit))
        except FieldError as fault:
            faults.append(fault)
    return Reading(frozenset(found), None if faults else Asked(chip, *amounts), tuple(faults), tuple(others))


def _found(
    container: Container, chips: ChipTable, others: list[Named]
) -> tuple[Chip | None, dict[ResourceKind, Named], list[FieldError]]:
    """The first chip that a container names, its resources, limits before requests, and what contradicts them.

    What no chip has is added to ``others``.
    """
    chip: Chip | None = None
    found: dict[ResourceKind, Named] = {}
    faults: list[FieldError] = []
    strangers: set[str] = set()
    for named in resources(container):
        if isinstance(named, InputError):
            faults.append(named)
            continue
        entry = chips.resource(named.name)
        if entry is None:
            others.append(named)
            continue
        owner, kind = entry
        chip = chip or owner
        if owner is chip:
            faults += _differences(found.setdefault(kind, named), named)
        elif owner.common_word not in strangers:
            strangers.add(owner.common_word)
            allowed = f"one container may name one chip only, and {chip.common_word} is there already"
            faults.append(RequestError(named.path, named.value, allowed))
    return chip, found, faults


def _ranges(chip: Chip) -> tuple[tuple[ResourceKind, int, str], ...]:
    """The largest number and the unit of each resource, in the order of :class:`Asked`."""
    memory_unit = "MiB" if chip.memory_factor == 1 else "memory unit(s)"
    return (
        (ResourceKind.COUNT, quantity.INT32_MAX, "card(s)"),
        (ResourceKind.MEMORY, chip.memory_capacity_mib // chip.memory_factor, memory_unit),
        (ResourceKind.CORE, WHOLE_CORE, "percent of a card"),
    )


def _whole(named: Named | None, high: int, unit: str) -> int | None:
    return None if named is None else quantity.whole(named.value, named.path, low=1, high=high, unit=unit)


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


def complete(wanted: Asked, mode: Mode, path: str, *, default_core_percent: int = 0) -> Completed:
    """What a container gets, and the numbers that its resources must show. Completing twice changes nothing.

    Args:
        wanted: what is written.
        mode: the pod's mode.
        path: the container's path, for errors.
        default_core_percent: core of a soft slice that names none and takes a part of the card; 0 for none of its own.

    Raises:
        RequestError: the numbers cannot be served together.
    """
    chip = wanted.chip
    count = _card_count(wanted, path)
    if mode is Mode.SOFT:
        return _complete_soft(wanted, count, path, default_core_percent)
    if wanted.core is not None:
        raise RequestError(
            _limit(path, chip.core_name),
            wanted.core,
            f"core belongs to soft slices: remove it, or set the annotation {names.MODE} to {Mode.SOFT.value}",
        )
    return _complete_hard(wanted, count, path)


def _card_count(wanted: Asked, path: str) -> int:
    count = 1 if wanted.count is None else wanted.count
    if wanted.chip.super_pod:
        if count == 1:
            return 2
        if count % 2:
            raise RequestError(
                _limit(path, wanted.chip.resource_name),
                count,
                f"{wanted.chip.common_word} goes in modules of two cards: ask for an even number (1 becomes 2)",
            )
    return count


def _complete_soft(wanted: Asked, count: int, path: str, default_core_percent: int) -> Completed:
    chip = wanted.chip
    largest = chip.memory_allocatable_mib // chip.memory_factor
    memory = largest if wanted.memory is None else wanted.memory
    if memory > largest:
        raise RequestError(
            _limit(path, chip.memory_name),
            memory,
            f"a soft slice of {chip.common_word} may hold at most {largest}"
            + (" MiB" if chip.memory_factor == 1 else f" units of {chip.memory_factor} MiB"),
        )
    core = wanted.core
    if core is None:
        core = WHOLE_CORE if memory == largest else default_core_percent or None
    memory_mib = chip.memory_allocatable_mib if memory == largest else memory * chip.memory_factor
    return Completed(SliceRequest(chip, count, Mode.SOFT, memory_mib, core or 0), memory, core)


def _complete_hard(wanted: Asked, count: int, path: str) -> Completed:
    chip = wanted.chip
    whole_card = chip.memory_allocatable_mib // chip.memory_factor
    template = None if wanted.memory is None else chip.template_for(wanted.memory * chip.memory_factor)
    if template is not None and count > 1 and template.memory_mib < chip.memory_allocatable_mib:
        raise RequestError(
            _limit(path, chip.memory_name),
            wanted.memory,
            f"several cards ({count}) come as whole cards in template mode: leave the memory out, or ask for one card",
        )
    if template is None:
        memory, memory_mib, got = whole_card, chip.memory_allocatable_mib, "the whole card"
    else:
        # A factor that does not divide the template rounds down: still the same template, and never more than it has.
        memory, memory_mib = template.memory_mib // chip.memory_factor, template.memory_mib
        got = f"template {template.name}"
    warnings: tuple[str, ...] = ()
    if wanted.memory is not None and wanted.memory != memory:
        change = "is rounded up to" if memory > wanted.memory else "is more than the card has; the container gets"
        place = _limit(path, chip.memory_name)
        remedy = f"for exactly what is asked set the annotation {names.MODE}: {Mode.SOFT.value}"
        warnings = (f"{place}: {wanted.memory} {change} {memory} ({got}); {remedy}",)
    request = SliceRequest(chip, count, Mode.HARD, memory_mib, 0, template.name if template is not None else None)
    return Completed(request, memory, None, warnings)


def _limit(path: str, name: str) -> str:
    return key(f"{path}.resources.limits", name)


def pod_request(
    pod: Mapping[str, Any], chips: ChipTable, *, default_mode: Mode = Mode.HARD, default_core_percent: int = 0
) -> PodRequest:
    """What a pod asks for, completed as admission completes it. Pods that admission already completed stay the same.

    Args:
        pod: the JSON object.
        chips: the chip table.
        default_mode: the setting ``defaultMode``.
        default_core_percent: the setting ``defaultCorePercent``.

    Raises:
        FieldError: the first field that cannot be served.
    """
    metadata = pod.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise InputError("metadata", metadata, "a mapping is expected")
    annotations = metadata.get("annotations") or {}
    if not isinstance(annotations, dict):
        raise InputError("metadata.annotations", annotations, "a mapping is expected")
    found = [(container, _read_or_raise(container, chips)) for container in containers(pod)]
    mode = default_mode
    if any(wanted is not None for _, wanted in found):
        core_asked = any(wanted is not None and wanted.core is not None for _, wanted in found)
        mode = decide(annotations, core_asked=core_asked, default=default_mode)
    requests = tuple(
        ContainerRequest(
            container.name,
            container.kind,
            None
            if wanted is None
            else complete(wanted, mode, container.path, default_core_percent=default_core_percent).slice,
        )
        for container, wanted in found
    )
    return PodRequest(_text(metadata.get("namespace")), _text(metadata.get("name")), mode, requests, annotations)


def _read_or_raise(container: Container, chips: ChipTable) -> Asked | None:
    reading = read(container, chips)
    if reading.faults:
        raise reading.faults[0]
    return reading.asked


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def order_rule(uses: Iterable[tuple[ContainerKind, Use]]) -> tuple[Use, Use]:
    """Peak and steady use of containers that share something (a card, or a pod's total), in the order of the pod.

    A plain init container runs beside the sidecars listed before it; afterwards all sidecars and apps run together.
    The peak is the larger of both, amount by amount; the steady use is what stays once the init containers ended.
    """
    running = NO_USE
    peak = NO_USE
    for kind, use in uses:
        if kind is ContainerKind.INIT:
            peak = peak.highest(running.plus(use))
        else:
            running = running.plus(use)
    return peak.highest(running), running


def _times(use: Use, count: int) -> Use:
    return Use(
        use.slots * count,
        use.memory_mib * count,
        use.core_percent * count,
        use.ai_core * count,
        use.ai_cpu * count,
        use.mode,
    )
