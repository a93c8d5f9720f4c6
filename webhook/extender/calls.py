"""What binding wants of the world: calls to the API server, and time.

:mod:`webhook.extender.binding` yields these and is sent the answers, or thrown a
:class:`~vnpu.kube.KubeError`; so it runs against a real server and against a simulated one alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


class GetPod(NamedTuple):
    """Answered by the Pod."""

    namespace: str
    name: str


class GetNode(NamedTuple):
    """Answered by the Node."""

    name: str


class ListPods(NamedTuple):
    """Answered by the list of all Pods that are bound to a node, as they are after the call was made."""

    node: str


class LockNode(NamedTuple):
    """Write the device plugin's lock, or None to remove it, if the node still has this version; answered by it."""

    name: str
    version: str
    lock: str | None


class GetTurn(NamedTuple):
    """Answered by the Lease of a node."""

    node: str


class TakeTurn(NamedTuple):
    """Write the ticket into the Lease of the node if that still has this version, ``""`` for none; answered by it."""

    node: str
    version: str
    ticket: str


class DropTurn(NamedTuple):
    """Delete the Lease of a node if that still has this version."""

    node: str
    version: str


class Fence(NamedTuple):
    """Write the mark into the pod's fence annotation if the pod still has this version; answered by the Pod."""

    namespace: str
    name: str
    version: str
    mark: str


class Bind(NamedTuple):
    """Bind the pod and annotate it in one write, if it still has this UID and version."""

    namespace: str
    name: str
    uid: str
    version: str
    node: str
    annotations: Mapping[str, str]


class Wait(NamedTuple):
    """Until something is learnt about the cluster, so many seconds at most."""

    seconds: float


Call: TypeAlias = GetPod | GetNode | GetTurn | ListPods | TakeTurn | DropTurn | LockNode | Fence | Bind | Wait


class Clock(Protocol):
    """What time it is."""

    def seconds(self) -> float:
        """Of a clock that only goes forward."""

    def now(self) -> datetime:
        """By the calendar, with its zone."""
