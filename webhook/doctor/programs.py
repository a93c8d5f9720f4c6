"""Whose programs run on a cluster: ours, HAMi's, Volcano's, Huawei's; known by labels and images, never by name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from vnpu import names
from webhook.doctor.snapshot import dig, items, label

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vnpu.kube import Object

_VERSION: Final = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?(?![\d.])", re.ASCII)


class Role(Enum):
    """What a program does."""

    WEBHOOK = auto()
    SCHEDULER = auto()
    NODE = auto()
    VOLCANO = auto()
    HAMI = auto()
    HAMI_NODE = auto()
    HAMI_GPU = auto()
    MINDCLUSTER_NODE = auto()


DEVICE_PLUGINS: Final = (Role.NODE, Role.HAMI_NODE, Role.MINDCLUSTER_NODE)
"""Those that hand out NPUs."""

_OURS: Final = {"webhook": Role.WEBHOOK, "scheduler": Role.SCHEDULER}
_NODE_COMPONENT: Final = "node-"
_CONTAINERS: Final = {Role.WEBHOOK: "webhook", Role.SCHEDULER: "extender", Role.NODE: "device-plugin"}
"""The container of each of our pods that the others are there for."""
_IMAGES: Final = {
    "vc-scheduler": Role.VOLCANO,
    "ascend-device-plugin": Role.HAMI_NODE,
    "ascend-k8sdeviceplugin": Role.MINDCLUSTER_NODE,
}
_HAMI_IMAGE: Final = "hami"
_HAMI_SCHEDULER: Final = "scheduler"


@dataclass(frozen=True, slots=True)
class Program:
    """A container of a Deployment, a DaemonSet or a pod that is one of these programs.

    Attributes:
        role: which.
        owner: the object.
        spec: of its pods.
        container: the container.
    """

    role: Role
    owner: Object
    spec: Object
    container: Object

    @property
    def label(self) -> str:
        """Kind and name of the object."""
        return label(self.owner)

    @property
    def namespace(self) -> str:
        """Of the object."""
        return str(self.owner["metadata"].get("namespace", ""))

    @property
    def image(self) -> str:
        """With its tag or digest."""
        return str(self.container.get("image", ""))

    @property
    def version(self) -> tuple[int, ...] | None:
        """As the image's tag tells it, None where it does not."""
        found = _VERSION.match(_tag(self.image))
        return tuple(int(part) for part in found.groups() if part is not None) if found else None

    @property
    def account(self) -> str:
        """The user name of its service account."""
        name = self.spec.get("serviceAccountName") or self.spec.get("serviceAccount") or "default"
        return f"system:serviceaccount:{self.namespace}:{name}"

    @property
    def arguments(self) -> list[str]:
        """Command and arguments."""
        return [*map(str, self.container.get("command") or ()), *map(str, self.container.get("args") or ())]

    def option(self, name: str) -> str | None:
        """What ``--name=value`` or ``--name value`` says, the last one of several; None where it is not given."""
        found = None
        for word, following in pairwise([*self.arguments, ""]):
            if word.startswith(f"--{name}="):
                found = word.partition("=")[2]
            elif word == f"--{name}":
                found = following
        return found

    def mounted(self, path: str) -> str | None:
        """The name of the ConfigMap that is mounted at a path or at a folder above it, None where none is."""
        mounts = [
            one
            for one in items(self.container.get("volumeMounts"))
            if path == one.get("mountPath") or path.startswith(f"{str(one.get('mountPath')).rstrip('/')}/")
        ]
        if not mounts:
            return None
        nearest = max(mounts, key=lambda one: len(one["mountPath"]))
        volumes = {one.get("name"): one for one in items(self.spec.get("volumes"))}
        name = dig(volumes.get(nearest.get("name")), "configMap", "name")
        return name if isinstance(name, str) else None


def programs(owner: Object) -> Iterator[Program]:
    """What runs in an object with a pod template, or in a pod."""
    template: Any = owner if owner["kind"] == "Pod" else dig(owner, "spec", "template") or {}
    spec = dig(template, "spec") or {}
    ours = _our_role(dig(owner, "metadata", "labels") or {})
    for container in items(spec.get("containers")):
        role = ours if ours is not None else _role(container)
        if role is not None and container.get("name") == _CONTAINERS.get(role, container.get("name")):
            yield Program(role, owner, spec, container)


def ours(obj: Object) -> bool:
    """Whether the chart made an object."""
    return bool(dig(obj, "metadata", "labels", names.PART_OF_LABEL) == names.PART_OF)


def _our_role(labels: dict[str, str]) -> Role | None:
    if labels.get(names.PART_OF_LABEL) != names.PART_OF:
        return None
    component = labels.get(names.COMPONENT_LABEL, "")
    return Role.NODE if component.startswith(_NODE_COMPONENT) else _OURS.get(component)


def _role(container: Object) -> Role | None:
    image = str(container.get("image", "")).partition("@")[0].rpartition("/")[2].partition(":")[0]
    if image != _HAMI_IMAGE:
        return _IMAGES.get(image)
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    if words[:1] == [_HAMI_SCHEDULER]:
        return Role.HAMI
    return Role.HAMI_GPU if container.get("name") == "device-plugin" else None


def _tag(image: str) -> str:
    return image.partition("@")[0].rpartition("/")[2].partition(":")[2]
