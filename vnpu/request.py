"""What a pod asks for: completing what its containers leave out, and adding it up.

Completing (:func:`complete`) decides what a container gets: count, memory and core per card, and the template in hard
mode. Admission writes that decision into the pod; fit places it. Neither decides again.

Adding up (:func:`order_rule`) follows Kubernetes' own rule for init containers and native sidecars
(KEP-753: a sidecar runs from its place in the list of init containers on).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vnpu import asked, names
from vnpu.cards import NO_USE, WHOLE_CORE, Use
from vnpu.chips import Chip, ChipTable, ResourceKind
from vnpu.containers import ContainerKind, containers
from vnpu.errors import RequestError
from vnpu.mode import Mode, decide
from vnpu.objects import annotations_of, mapping_at

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from vnpu.asked import Asked, Found


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
        asked: what was asked.
        slice: what the container gets.
        memory: what stands in the memory resource, in its unit.
        core: what stands in the core resource, None where it stays away.
        warnings: sentences about what works but surprises.
    """

    asked: Asked
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
        terms: stands for what the pod asks of a node beside its cards, see :attr:`vnpu.cards.Node.closed_to`.
    """

    namespace: str
    name: str
    mode: Mode
    containers: tuple[ContainerRequest, ...]
    annotations: Mapping[str, str]
    terms: Hashable = None

    @property
    def asks(self) -> bool:
        """Whether any container asks for an NPU."""
        return any(container.slice is not None for container in self.containers)


def complete(wanted: Asked, *, default_core_percent: int = 0) -> Completed:
    """What a container gets, and the numbers that its resources must show. Completing twice changes nothing.

    Args:
        wanted: what is written.
        default_core_percent: core of a soft slice that names none and takes a part of the card; 0 for none of its own.

    Raises:
        RequestError: the numbers cannot be served together.
    """
    count = _card_count(wanted)
    if wanted.mode is Mode.SOFT:
        return _complete_soft(wanted, count, default_core_percent)
    if wanted.core is not None:
        raise RequestError(
            wanted.path(ResourceKind.CORE),
            wanted.core,
            f"core belongs to soft slices: remove it, or set the annotation {names.MODE} to {Mode.SOFT.value}",
        )
    return _complete_hard(wanted, count)


def _card_count(wanted: Asked) -> int:
    count = 1 if wanted.count is None else wanted.count
    if wanted.chip.super_pod:
        if count == 1:
            return 2
        if count % 2:
            raise RequestError(
                wanted.path(ResourceKind.COUNT),
                count,
                f"{wanted.chip.common_word} goes in modules of two cards: ask for an even number (1 becomes 2)",
            )
    return count


def _complete_soft(wanted: Asked, count: int, default_core_percent: int) -> Completed:
    chip = wanted.chip
    largest = chip.memory_allocatable_mib // chip.memory_factor
    memory = largest if wanted.memory is None else wanted.memory
    core = wanted.core
    if core is None:
        core = WHOLE_CORE if memory == largest else default_core_percent or None
    memory_mib = chip.memory_allocatable_mib if memory == largest else memory * chip.memory_factor
    return Completed(wanted, SliceRequest(chip, count, Mode.SOFT, memory_mib, core or 0), memory, core)


def _complete_hard(wanted: Asked, count: int) -> Completed:
    chip = wanted.chip
    whole_card = chip.memory_allocatable_mib // chip.memory_factor
    template = None if wanted.memory is None else chip.template_for(wanted.memory * chip.memory_factor)
    if template is not None and template.memory_mib // chip.memory_factor >= whole_card:
        template = None  # it would be written like the whole card, and be read as that the second time
    if template is not None and count > 1:
        remedy = "leave the memory out" + ("" if chip.super_pod else ", or ask for one card")
        raise RequestError(
            wanted.path(ResourceKind.MEMORY),
            wanted.memory,
            f"several cards ({count}) come as whole cards in template mode: {remedy}",
        )
    if template is None:
        memory, memory_mib, got = whole_card, chip.memory_allocatable_mib, "the whole card"
    else:
        # A factor that does not divide the template rounds down: still the same template, and never more than it has.
        memory, memory_mib = template.memory_mib // chip.memory_factor, template.memory_mib
        got = f"template {template.name}"
    warnings: tuple[str, ...] = ()
    if wanted.memory is not None and wanted.memory != memory:
        change = f"is more than the card has; the container gets {memory} ({got})"
        if memory > wanted.memory:
            remedy = f"for exactly what is asked set the annotation {names.MODE}: {Mode.SOFT.value}"
            change = f"is rounded up to {memory} ({got}); {remedy}"
        warnings = (f"{wanted.path(ResourceKind.MEMORY)}: {wanted.memory} {change}",)
    request = SliceRequest(chip, count, Mode.HARD, memory_mib, 0, template.name if template is not None else None)
    return Completed(wanted, request, memory, None, warnings)


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
    metadata, annotations = mapping_at(pod, "metadata"), annotations_of(pod)
    found = [asked.find(container, chips) for container in containers(pod)]
    mode = default_mode
    if any(one.chip is not None for one in found):
        core_asked = any(ResourceKind.CORE in one.named for one in found)
        mode = decide(annotations, core_asked=core_asked, default=default_mode)
    return PodRequest(
        _text(metadata.get("namespace")),
        _text(metadata.get("name")),
        mode,
        tuple(_container_request(one, mode, default_core_percent) for one in found),
        annotations,
    )


def _container_request(found: Found, mode: Mode, default_core_percent: int) -> ContainerRequest:
    wanted, faults = asked.numbers(found, mode)
    if faults:
        raise faults[0]
    completed = None if wanted is None else complete(wanted, default_core_percent=default_core_percent)
    container = found.container
    return ContainerRequest(container.name, container.kind, None if completed is None else completed.slice)


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
