"""A pod as admission reads it, once: what it asks for, and every fault that reading found.

Reading forgives: a pod that asks for no NPU is none of our business, whatever its shape, and the API server judges it.
So faults are collected beside what could be read, and count only where the pod turns out to be an NPU pod.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from vnpu import asked, names
from vnpu.chips import ResourceKind
from vnpu.containers import Container, containers_or_faults
from vnpu.errors import AnnotationError, FieldError, InputError, shown
from vnpu.mode import Mode, decide
from vnpu.objects import mapping_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from vnpu.asked import Asked, Found
    from vnpu.chips import ChipTable

_Fault = TypeVar("_Fault", bound=FieldError)
_ANY_CASE: Final = names.RESOURCE_PREFIX.lower()
"""A slip in the case of a chip's name is nobody's resource, and would leave its pod pending for ever."""

_EMPTY: Final[dict[str, Any]] = {}


@dataclass(frozen=True, slots=True)
class Resource:
    """An extended resource that a container names.

    Attributes:
        name: the resource.
        path: where it stands.
        value: its quantity, as written.
        container: who names it.
    """

    name: str
    path: str
    value: Any
    container: Container


@dataclass(frozen=True, slots=True)
class Member:
    """A container of the pod.

    Attributes:
        container: where it stands and what it is.
        asks: whether it names a resource of a configured chip.
        wanted: the numbers it asks for, None where it asks for none or they could not be read.
    """

    container: Container
    asks: bool
    wanted: Asked | None


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod, or the pod template of a controller.

    Attributes:
        annotations: empty where there are none.
        labels: empty where there are none.
        spec: empty where there is none.
        members: everything that has the shape of a container, init containers first.
        is_npu: whether some container asks for a configured chip.
        mode: soft or hard, None where the annotation holds neither.
        mode_fault: what the annotation holds then; it counts in every pod, since whoever wrote it wanted an NPU.
        unknown: Ascend resources that the device config does not know.
        mindcluster: resources of MindCluster.
        faults: what could not be read; they count in an NPU pod only.
    """

    annotations: Mapping[str, Any]
    labels: Mapping[str, Any]
    spec: Mapping[str, Any]
    members: tuple[Member, ...]
    is_npu: bool
    mode: Mode | None
    mode_fault: AnnotationError | None
    unknown: tuple[Resource, ...]
    mindcluster: tuple[Resource, ...]
    faults: tuple[FieldError, ...]


def read(document: Mapping[str, Any], chips: ChipTable, default_mode: Mode) -> Pod:
    """The pod in a JSON object, or in a pod template.

    Args:
        document: metadata and spec.
        chips: the chip table.
        default_mode: the setting ``defaultMode``.
    """
    faults: list[FieldError] = []
    annotations, labels = (_metadata(document, name, faults) for name in ("annotations", "labels"))
    found: list[Found] = []
    for entry in containers_or_faults(document):
        if isinstance(entry, InputError):
            faults.append(entry)
        else:
            found.append(asked.find(entry, chips))
    mode, mode_fault = _mode(annotations, found, default_mode)
    members: list[Member] = []
    for one in found:
        reading = asked.numbers(one, mode)
        members.append(Member(one.container, one.chip is not None, reading.asked))
        faults += (named(fault, one.container) for fault in reading.faults)
    spec = document.get("spec")
    foreign = [resource for one in found for resource in _foreign(one)]
    return Pod(
        annotations,
        labels,
        spec if isinstance(spec, dict) else _EMPTY,
        tuple(members),
        any(member.asks for member in members),
        mode,
        mode_fault,
        tuple(resource for resource in foreign if resource.name != names.MINDCLUSTER_RESOURCE),
        tuple(resource for resource in foreign if resource.name == names.MINDCLUSTER_RESOURCE),
        tuple(faults),
    )


def _mode(
    annotations: Mapping[str, Any], found: Iterable[Found], default: Mode
) -> tuple[Mode | None, AnnotationError | None]:
    core_asked = any(ResourceKind.CORE in one.named for one in found)
    try:
        return decide(annotations, core_asked=core_asked, default=default), None
    except AnnotationError as fault:
        return None, fault


def named(fault: _Fault, container: Container) -> _Fault:
    """The fault with the name of the container that it concerns, by which users know it better than by its place."""
    if not container.name:
        return fault
    return type(fault)(fault.path, fault.value, f"{fault.allowed} (container {shown(container.name)})")


def _metadata(document: Mapping[str, Any], name: str, faults: list[FieldError]) -> Mapping[str, Any]:
    try:
        return mapping_at(document, "metadata", name)
    except InputError as fault:
        if fault.path not in [known.path for known in faults]:  # both names meet the same metadata
            faults.append(fault)
        return _EMPTY


def _foreign(found: Found) -> Iterator[Resource]:
    """Resources that look like an NPU and are none of the configured chips."""
    for resource in found.others:
        if resource.name == names.MINDCLUSTER_RESOURCE or resource.name.lower().startswith(_ANY_CASE):
            yield Resource(resource.name, resource.path, resource.value, found.container)
