"""The containers of a pod and the resources that they name, as they stand in its JSON."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from vnpu.errors import InputError, item, key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SECTIONS: Final = ("limits", "requests")
"""Where a container names resources; of extended ones the API server wants the same in both."""


class ContainerKind(StrEnum):
    """How Kubernetes runs a container of a pod."""

    INIT = "init"
    SIDECAR = "sidecar"
    APP = "app"


@dataclass(frozen=True, slots=True)
class Container:
    """A container as it stands in a pod.

    Attributes:
        name: its name, ``""`` where it has none yet.
        kind: plain init container, native sidecar (an init container with ``restartPolicy: Always``) or app container.
        path: where it stands, for example ``spec.initContainers[0]``.
        raw: the JSON object.
        keys: the same place step by step: ``("spec", "initContainers", 0)``.
    """

    name: str
    kind: ContainerKind
    path: str
    raw: Mapping[str, Any]
    keys: tuple[str | int, ...]


def containers(pod: Mapping[str, Any]) -> Iterator[Container]:
    """The containers of a pod (or of a pod template), init containers first, as HAMi counts them.

    Raises:
        InputError: a list or an entry has not the shape that Kubernetes gives it.
    """
    for found in containers_or_faults(pod):
        if isinstance(found, InputError):
            raise found
        yield found


def containers_or_faults(pod: Mapping[str, Any]) -> Iterator[Container | InputError]:
    """The containers of a pod as in :func:`containers`, and in the place of what is none the reason why."""
    spec = pod.get("spec")
    if not isinstance(spec, dict):
        yield InputError("spec", spec, "a pod spec is expected")
        return
    for section in ("initContainers", "containers"):
        entries = spec.get(section)
        if entries is None:
            continue
        path = key("spec", section)
        if not isinstance(entries, list):
            yield InputError(path, entries, "a list of containers is expected")
            continue
        for index, raw in enumerate(entries):
            place = item(path, index)
            if not isinstance(raw, dict):
                yield InputError(place, raw, "a container is expected")
                continue
            kind = ContainerKind.APP
            if section == "initContainers":
                kind = ContainerKind.SIDECAR if raw.get("restartPolicy") == "Always" else ContainerKind.INIT
            name = raw.get("name")
            yield Container(name if isinstance(name, str) else "", kind, place, raw, ("spec", section, index))


class Named(NamedTuple):
    """One resource that a container names, also ``cpu``.

    Attributes:
        place: the limits or requests that name it, for example ``spec.containers[0].resources.limits``.
        name: the resource.
        value: its quantity, as written.
    """

    place: str
    name: str
    value: Any

    @property
    def path(self) -> str:
        """Where it stands, for example ``spec.containers[0].resources.limits[huawei.com/Ascend910B3]``."""
        return key(self.place, self.name)


def resources(container: Container) -> Iterator[Named | InputError]:
    """Every resource that a container names, limits before requests; in the place of what has no shape the reason."""
    raw = container.raw.get("resources")
    if raw is None:
        return
    path = f"{container.path}.resources"
    if not isinstance(raw, dict):
        yield InputError(path, raw, "a mapping with limits and requests is expected")
        return
    for section in SECTIONS:
        entries = raw.get(section)
        if entries is None:
            continue
        place = f"{path}.{section}"
        if not isinstance(entries, dict):
            yield InputError(place, entries, "a mapping from resource name to quantity is expected")
            continue
        for name, value in entries.items():
            yield Named(place, name, value)
