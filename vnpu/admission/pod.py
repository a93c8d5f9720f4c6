"""A pod as admission reads it, once: what it asks for, and every fault that reading found.

Reading forgives: a pod that asks for no NPU is none of our business, whatever its shape, and the API server judges it.
So faults are collected beside what could be read, and count only where the pod turns out to be an NPU pod.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from vnpu import names, request
from vnpu.chips import ResourceKind
from vnpu.containers import Container, containers_or_faults
from vnpu.errors import FieldError, InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vnpu.chips import ChipTable
    from vnpu.request import Asked, Reading

_Fault = TypeVar("_Fault", bound=FieldError)
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
        core_named: whether one of these resources is core, whatever its value.
        unknown: Ascend resources that the device config does not know.
        mindcluster: resources of MindCluster.
        faults: what could not be read; they count in an NPU pod only.
    """

    annotations: Mapping[str, Any]
    labels: Mapping[str, Any]
    spec: Mapping[str, Any]
    members: tuple[Member, ...]
    is_npu: bool
    core_named: bool
    unknown: tuple[Resource, ...]
    mindcluster: tuple[Resource, ...]
    faults: tuple[FieldError, ...]


def read(document: Mapping[str, Any], chips: ChipTable) -> Pod:
    """The pod in a JSON object, or in a pod template."""
    faults: list[FieldError] = []
    metadata = _mapping(document, "metadata", "metadata", faults)
    annotations = _mapping(metadata, "annotations", "metadata.annotations", faults)
    labels = _mapping(metadata, "labels", "metadata.labels", faults)
    members: list[Member] = []
    foreign: list[Resource] = []
    is_npu = core_named = False
    for found in containers_or_faults(document):
        if isinstance(found, InputError):
            faults.append(found)
            continue
        reading = request.read(found, chips)
        foreign += _foreign(reading, found)
        faults += (named(fault, found) for fault in reading.faults)
        members.append(Member(found, bool(reading.kinds), reading.asked))
        is_npu = is_npu or bool(reading.kinds)
        core_named = core_named or ResourceKind.CORE in reading.kinds
    spec = document.get("spec")
    return Pod(
        annotations,
        labels,
        spec if isinstance(spec, dict) else _EMPTY,
        tuple(members),
        is_npu,
        core_named,
        tuple(resource for resource in foreign if resource.name != names.MINDCLUSTER_RESOURCE),
        tuple(resource for resource in foreign if resource.name == names.MINDCLUSTER_RESOURCE),
        tuple(faults),
    )


def named(fault: _Fault, container: Container) -> _Fault:
    """The fault with the name of the container that it concerns, by which users know it better than by its place."""
    if not container.name:
        return fault
    return type(fault)(fault.path, fault.value, f'{fault.allowed} (container "{container.name}")')


def _mapping(parent: Mapping[str, Any], name: str, path: str, faults: list[FieldError]) -> Mapping[str, Any]:
    value = parent.get(name)
    if value is None:
        return _EMPTY
    if isinstance(value, dict):
        return value
    faults.append(InputError(path, value, "a mapping is expected"))
    return _EMPTY


def _foreign(reading: Reading, container: Container) -> list[Resource]:
    """Resources that look like an NPU and are none of the configured chips."""
    return [
        Resource(named.name, named.path, named.value, container)
        for named in reading.others
        if named.name.startswith(names.RESOURCE_PREFIX) or named.name == names.MINDCLUSTER_RESOURCE
    ]
