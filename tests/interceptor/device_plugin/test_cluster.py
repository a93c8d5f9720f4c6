"""What the plugin writes, against the stand-in and, by ``make test-cluster``, a real API server."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from interceptor.device_plugin import report
from interceptor.device_plugin.allocator import AllocateError, Allocator
from interceptor.device_plugin.host import Host
from tests.support.device_plugin import B3, asking, inventory, waiting
from tests.support.kubelet import HostTree
from tests.support.objects import CHIP
from vnpu import kube, names
from vnpu.annotations import lock
from vnpu.annotations.lock import NodeLock
from vnpu.chips import DEFAULT_CHIPS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.clusters import AnyCluster
    from vnpu.kube import Cluster

NOW = datetime(2026, 8, 21, 10, 0, 0, tzinfo=UTC)
ONE = f"U0,{CHIP},8192,20:;"
OTHER = f"U1,{CHIP},4096,40:;"


@dataclass
class Place:
    """A node of our own, and an allocator for it."""

    cluster: Cluster
    node: str
    namespace: str
    allocator: Allocator

    def bind(self, name: str, text: str, *containers: dict[str, Any]) -> None:
        """A pod, bound to the node with its allocation, as a scheduler does it."""
        written = waiting(name, text, *containers, node="")
        spec = written["spec"]
        for container in spec["containers"]:
            container["image"] = "registry.example/app:1"
        # Without a token, no service account need be there.
        spec |= {"automountServiceAccountToken": False, "terminationGracePeriodSeconds": 0}
        metadata = {"name": name, "namespace": self.namespace, "annotations": {}}
        uid = self.cluster.create(
            kube.PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}, self.namespace
        )["metadata"]["uid"]
        self.cluster.bind(self.namespace, name, self.node, written["metadata"]["annotations"], uid)
        if "phase" not in self.pod(name).get("status", {}):  # the stand-in sets no defaults
            status = {"status": {"phase": "Pending"}}
            self.cluster.patch(kube.PODS, name, status, self.namespace, kind="merge", subresource="status")

    def lock_for(self, name: str) -> None:
        text = lock.encode(NodeLock(NOW, self.namespace, name))
        change = {"metadata": {"annotations": {names.NODE_LOCK: text}}}
        self.cluster.patch(kube.NODES, self.node, change, kind="merge")

    def pod(self, name: str) -> dict[str, Any]:
        return self.cluster.get(kube.PODS, name, self.namespace)

    def annotations(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.pod(name)["metadata"]["annotations"]
        return found

    def locked(self) -> bool:
        return names.NODE_LOCK in self.cluster.get(kube.NODES, self.node)["metadata"].get("annotations", {})


@pytest.fixture
def place(any_cluster: AnyCluster, tmp_path: Path) -> Iterator[Place]:
    cluster, node = any_cluster.cluster, any_cluster.prefix
    cluster.create(kube.NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}})
    status = {"status": {"capacity": {"cpu": "8"}}}
    cluster.patch(kube.NODES, node, status, kind="merge", subresource="status")
    tree = HostTree(tmp_path / "host").make()
    host = Host(tree.root, tree.version, tree.machine)
    offered = inventory()
    allocator = Allocator(cluster, node, DEFAULT_CHIPS, host, lambda: offered, frozenset)
    try:
        yield Place(cluster, node, any_cluster.namespace, allocator)
    finally:
        for pod in cluster.list(kube.PODS, any_cluster.namespace).items:
            with suppress(kube.NotFound):
                cluster.delete(kube.PODS, pod["metadata"]["name"], any_cluster.namespace)
        cluster.delete(kube.NODES, node)


def test_a_node_is_described_once(place: Place) -> None:
    offered = inventory()
    for _ in range(2):
        node = place.cluster.get(kube.NODES, place.node)
        annotations = report.node_annotations(node["metadata"].get("annotations", {}), offered, NOW)
        operations = report.node_capacity(node["status"]["capacity"], offered)
        if annotations:
            change = {"metadata": {"annotations": annotations}}
            place.cluster.patch(kube.NODES, place.node, change, kind="merge")
        if operations:
            place.cluster.patch(kube.NODES, place.node, operations, subresource="status")
    assert (annotations, operations) == ({}, [])
    assert node["metadata"]["annotations"][names.SOFT_NODE] == "true"
    stated = node["status"]["capacity"]
    assert (stated[B3.memory_name], stated[B3.core_name]) == ("131072", "200")


def test_a_pod_is_served_container_by_container(place: Place) -> None:
    place.bind("app", f"{ONE}{OTHER}", asking("first", memory=8192, core=20), asking("second", memory=4096, core=40))
    place.lock_for("app")
    key = names.to_allocate(CHIP)
    (first,) = place.allocator.allocate(B3, [1])
    assert (first.env[names.ENV_MEMORY], place.annotations("app")[key], place.locked()) == ("8192", f";{OTHER}", True)
    (second,) = place.allocator.allocate(B3, [1])
    told = place.annotations("app")
    assert (second.env[names.ENV_MEMORY], told[key], told[names.BIND_PHASE]) == ("4096", ";;", "success")
    assert not place.locked()


def test_a_pod_that_cannot_be_served_is_marked_and_hears_why(place: Place) -> None:
    place.bind("app", f"Unknown,{CHIP},8192,20:;", asking(memory=8192, core=20))
    place.lock_for("app")
    with pytest.raises(AllocateError, match="a card of this node is expected"):
        place.allocator.allocate(B3, [1])
    assert place.annotations("app")[names.BIND_PHASE] == "failed"
    assert not place.locked()
    (event,) = place.cluster.list(kube.EVENTS, place.namespace).items
    assert (event["reason"], event["involvedObject"]["name"]) == ("NPUAllocationFailed", "app")


def test_pods_are_found_by_node_and_phase(place: Place) -> None:
    place.bind("a", ONE, asking(memory=8192, core=20))
    place.bind("b", OTHER, asking(memory=4096, core=40))
    with pytest.raises(AllocateError, match="different shares"):
        place.allocator.allocate(B3, [1])
    running = {"status": {"phase": "Running"}}
    place.cluster.patch(kube.PODS, "a", running, place.namespace, kind="merge", subresource="status")
    (response,) = place.allocator.allocate(B3, [1])
    assert response.env[names.ENV_MEMORY] == "4096"


def test_a_lock_that_changed_hands_is_left_alone(place: Place) -> None:
    text = lock.encode(NodeLock(NOW, "team", "before"))
    place.lock_for("another")
    with pytest.raises(kube.Invalid):
        place.cluster.patch(kube.NODES, place.node, report.unlocked(text))
    assert place.locked()


def test_a_pod_of_the_same_name_is_not_the_same_pod(place: Place) -> None:
    place.bind("app", ONE, asking(memory=8192, core=20))
    with pytest.raises((kube.Conflict, kube.Invalid)):
        place.cluster.patch(kube.PODS, "app", report.failed("another-uid"), place.namespace, kind="merge")
    operations = report.served(names.to_allocate(CHIP), ONE, 0, "another-uid", last=True)
    with pytest.raises(kube.Invalid):
        place.cluster.patch(kube.PODS, "app", operations, place.namespace)
    assert place.annotations("app")[names.to_allocate(CHIP)] == ONE
