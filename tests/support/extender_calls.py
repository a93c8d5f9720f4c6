"""Calls of the extender carried out on the stand-in's store, without HTTP; and a clock that is set."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.support.api_store import Store, Target
from vnpu import names
from vnpu.kube import LEASES, NODES, PODS
from webhook.extender.calls import Bind, Call, DropTurn, Fence, GetNode, GetPod, GetTurn, ListPods, LockNode, TakeTurn

MERGE = "application/merge-patch+json"


class Time:
    """A clock that is set."""

    def __init__(self) -> None:
        self.passed = 1000.0

    def seconds(self) -> float:
        return self.passed

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.passed)


def carried_out(store: Store, call: Call) -> Any:
    """What the API server does with a call; gives its answer.

    Raises:
        Refused: it does not do it.
    """
    match call:
        case GetPod():
            return store.get(Target(PODS, call.namespace, call.name))
        case GetNode():
            return store.get(Target(NODES, None, call.name))
        case GetTurn():
            return store.get(lease_of(call.node))
        case ListPods():
            return [one for one in store.select(Target(PODS)) if one["spec"].get("nodeName") == call.node]
        case TakeTurn():
            return _taken(store, call)
        case DropTurn():
            store.delete(lease_of(call.node), {"preconditions": {"resourceVersion": call.version}})
            return None
        case LockNode():
            change = {"resourceVersion": call.version, "annotations": {names.NODE_LOCK: call.lock}}
            return store.patch(Target(NODES, None, call.name), {"metadata": change}, MERGE)
        case Fence():
            change = {"resourceVersion": call.version, "annotations": {names.BIND_FENCE: call.mark}}
            return store.patch(Target(PODS, call.namespace, call.name), {"metadata": change}, MERGE)
        case Bind():
            metadata = {"uid": call.uid, "resourceVersion": call.version, "annotations": dict(call.annotations)}
            store.bind(Target(PODS, call.namespace, call.name), {"metadata": metadata, "target": {"name": call.node}})
            return None
    raise AssertionError(call)


def _taken(store: Store, call: TakeTurn) -> Any:
    target, spec = lease_of(call.node), {"holderIdentity": call.ticket}
    if call.version:
        return store.patch(target, {"metadata": {"resourceVersion": call.version}, "spec": spec}, MERGE)
    return store.create(target, {"metadata": {"name": target.name, "namespace": target.namespace}, "spec": spec})


def lease_of(node: str) -> Target:
    return Target(LEASES, names.TURN_NAMESPACE, names.TURN_LEASE_PREFIX + node)
