"""The Kubernetes API: an edge. Objects are plain JSON mappings, never model classes.

A list of 20,000 pods so costs what reading its JSON costs. Every call ends: connecting, each wait for bytes and a whole
answer have their time-outs. Reads are repeated with a growing pause, writes only where the server surely did not carry
them out. :attr:`KubeError.unknown` tells after a failed write whether to look before it is tried again.
"""

from __future__ import annotations

from vnpu.kube import transport
from vnpu.kube.cluster import Cluster
from vnpu.kube.errors import AlreadyExists, Conflict, Forbidden, Gone, Invalid, KubeError, NotFound, Unreachable
from vnpu.kube.resources import (
    CONFIG_MAPS,
    CUSTOM_RESOURCES,
    DAEMON_SETS,
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    EVENTS,
    LEASES,
    MUTATING,
    NAMESPACES,
    NODES,
    PODS,
    RUNTIME_CLASSES,
    SECRETS,
    SERVICES,
    VALIDATING,
    Object,
    Resource,
)
from vnpu.kube.watch import Event, Follower, Listing, Lost, Page, Watch


def connect(
    *, kubeconfig: str | None = None, context: str | None = None, timeout_s: float = 10.0, agent: str = "vnpu"
) -> Cluster:
    """The cluster that the service account of this pod belongs to, else the one that the kubeconfig names.

    Nothing is sent yet.

    Args:
        kubeconfig: a file; without one, and outside of a pod, ``$KUBECONFIG`` or ``~/.kube/config``.
        context: one of its contexts, instead of the current one.
        timeout_s: for connecting, and for each wait for bytes.
        agent: who we are, in the server's log and as the owner of the fields that are written.

    Raises:
        ConfigError: neither is there, or it cannot be read.
    """
    return Cluster(transport.Transport(transport.client(kubeconfig, context, agent), timeout_s))


def namespace(*, kubeconfig: str | None = None, context: str | None = None) -> str:
    """The namespace in which kubectl looks when none is named: that of the context, else ``default``.

    Raises:
        ConfigError: there is no kubeconfig, or not that context in it.
    """
    return transport.namespace(kubeconfig, context)


__all__ = [
    "CONFIG_MAPS",
    "CUSTOM_RESOURCES",
    "DAEMON_SETS",
    "DEPLOYMENTS",
    "ENDPOINT_SLICES",
    "EVENTS",
    "LEASES",
    "MUTATING",
    "NAMESPACES",
    "NODES",
    "PODS",
    "RUNTIME_CLASSES",
    "SECRETS",
    "SERVICES",
    "VALIDATING",
    "AlreadyExists",
    "Cluster",
    "Conflict",
    "Event",
    "Follower",
    "Forbidden",
    "Gone",
    "Invalid",
    "KubeError",
    "Listing",
    "Lost",
    "NotFound",
    "Object",
    "Page",
    "Resource",
    "Unreachable",
    "Watch",
    "connect",
    "namespace",
]
