"""The calls of :mod:`webhook.extender.calls` as requests to the API server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vnpu import names
from vnpu.kube import LEASES, NODES, PODS
from webhook.extender.calls import Bind, DropTurn, Fence, GetNode, GetPod, GetTurn, ListPods, LockNode, TakeTurn

if TYPE_CHECKING:
    from vnpu.kube import Cluster
    from webhook.extender.calls import Call


def perform(call: Call, cluster: Cluster) -> Any:
    """Make one call; gives its answer.

    Raises:
        KubeError: it was refused, or not answered.
        TypeError: it is no call to an API server.
    """
    match call:
        case GetPod():
            return cluster.get(PODS, call.name, call.namespace)
        case GetNode():
            return cluster.get(NODES, call.name)
        case GetTurn():
            return cluster.get(LEASES, names.TURN_LEASE_PREFIX + call.node, names.TURN_NAMESPACE)
        case ListPods():
            return cluster.list(PODS, field_selector=f"spec.nodeName={call.node}").items
        case TakeTurn():
            return _take(call, cluster)
        case DropTurn():
            name = names.TURN_LEASE_PREFIX + call.node
            return cluster.delete(LEASES, name, names.TURN_NAMESPACE, version=call.version)
        case LockNode():
            change = {"resourceVersion": call.version, "annotations": {names.NODE_LOCK: call.lock}}
            return cluster.patch(NODES, call.name, {"metadata": change}, kind="merge")
        case Fence():
            change = {"resourceVersion": call.version, "annotations": {names.BIND_FENCE: call.mark}}
            return cluster.patch(PODS, call.name, {"metadata": change}, call.namespace, kind="merge")
        case Bind():
            return cluster.bind(call.namespace, call.name, call.node, call.annotations, call.uid, call.version)
    raise TypeError(call)


def _take(call: TakeTurn, cluster: Cluster) -> Any:
    name = names.TURN_LEASE_PREFIX + call.node
    spec = {"holderIdentity": call.ticket}
    if call.version:
        change = {"metadata": {"resourceVersion": call.version}, "spec": spec}
        return cluster.patch(LEASES, name, change, names.TURN_NAMESPACE, kind="merge")
    lease = {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"name": name, "namespace": names.TURN_NAMESPACE, "labels": {names.TURN_LABEL: "true"}},
        "spec": spec,
    }
    return cluster.create(LEASES, lease, names.TURN_NAMESPACE)
