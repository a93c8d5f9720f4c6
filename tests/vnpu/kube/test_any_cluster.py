"""What vnpu.kube does with an API server; against the stand-in, and with `make test-cluster` against a real one."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from vnpu.kube import (
    EVENTS,
    NODES,
    PODS,
    SECRETS,
    VALIDATING,
    AlreadyExists,
    Conflict,
    Event,
    Invalid,
    Listing,
    NotFound,
    Resource,
    connect,
)

if TYPE_CHECKING:
    from tests.support.clusters import AnyCluster

pytestmark = pytest.mark.timeout(180)  # a real server may have to be started


def secret(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}


def pod(name: str, labels: dict[str, str] | None = None) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": False}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels or {}}, "spec": spec}


@pytest.mark.cluster
def test_a_real_server_answers(real_kubeconfig: str) -> None:
    assert connect(kubeconfig=real_kubeconfig).read("/version")["gitVersion"].startswith("v1.")


class TestObjects:
    def test_one_is_made_read_and_deleted(self, any_cluster: AnyCluster) -> None:
        cluster, namespace = any_cluster.cluster, any_cluster.namespace
        made = cluster.create(SECRETS, secret("one", a="b"), namespace)
        assert made["data"] == {"a": "Yg=="}
        assert made["type"] == "Opaque"
        assert cluster.get(SECRETS, "one", namespace) == made
        cluster.delete(SECRETS, "one", namespace, uid=made["metadata"]["uid"])
        with pytest.raises(NotFound) as caught:
            cluster.get(SECRETS, "one", namespace)
        assert (caught.value.status, caught.value.reason) == (404, "NotFound")
        assert '"one" not found (404 NotFound)' in str(caught.value)

    def test_a_name_is_taken_once(self, any_cluster: AnyCluster) -> None:
        any_cluster.cluster.create(SECRETS, secret("one"), any_cluster.namespace)
        with pytest.raises(AlreadyExists):
            any_cluster.cluster.create(SECRETS, secret("one"), any_cluster.namespace)

    def test_a_dry_run_leaves_nothing_behind(self, any_cluster: AnyCluster) -> None:
        made = any_cluster.cluster.create(SECRETS, secret("one"), any_cluster.namespace, dry_run=True)
        assert made["metadata"]["uid"]
        with pytest.raises(NotFound):
            any_cluster.cluster.get(SECRETS, "one", any_cluster.namespace)

    def test_an_object_that_is_none_is_refused(self, any_cluster: AnyCluster) -> None:
        with pytest.raises(Invalid):
            any_cluster.cluster.create(SECRETS, secret("Not A Name"), any_cluster.namespace)

    def test_a_resource_that_is_not_served_is_not_found(self, any_cluster: AnyCluster) -> None:
        with pytest.raises(NotFound):
            any_cluster.cluster.list(Resource("nobody.example.com", "v1", "things", "Thing"), any_cluster.namespace)

    def test_another_object_of_the_name_is_not_deleted(self, any_cluster: AnyCluster) -> None:
        any_cluster.cluster.create(SECRETS, secret("one"), any_cluster.namespace)
        with pytest.raises(Conflict):
            any_cluster.cluster.delete(SECRETS, "one", any_cluster.namespace, uid="0000")
        with pytest.raises(Conflict):
            any_cluster.cluster.delete(SECRETS, "one", any_cluster.namespace, version="1")
        assert any_cluster.cluster.get(SECRETS, "one", any_cluster.namespace)

    def test_the_version_can_be_read(self, any_cluster: AnyCluster) -> None:
        assert any_cluster.cluster.read("/version")["major"] == "1"

    def test_an_event_tells_of_an_object(self, any_cluster: AnyCluster) -> None:
        cluster, namespace = any_cluster.cluster, any_cluster.namespace
        made = cluster.create(SECRETS, secret("one"), namespace)
        cluster.event(SECRETS, made, reason="Renewed", message="é" * 600, component="vnpu", warning=True)
        (event,) = cluster.list(EVENTS, namespace).items
        assert event["involvedObject"]["kind"] == "Secret"
        assert event["involvedObject"]["uid"] == made["metadata"]["uid"]
        assert (event["type"], event["reason"], event["message"]) == ("Warning", "Renewed", "é" * 512)


class TestTwoWriters:
    def test_a_replace_of_what_has_changed_is_a_conflict(self, any_cluster: AnyCluster) -> None:
        cluster = any_cluster.cluster
        old = cluster.create(SECRETS, secret("one", a="1"), any_cluster.namespace)
        new = cluster.replace(SECRETS, old | {"data": {"a": "Mg=="}})
        assert new["metadata"]["resourceVersion"] != old["metadata"]["resourceVersion"]
        with pytest.raises(Conflict):
            cluster.replace(SECRETS, old | {"data": {"a": "Mw=="}})
        assert cluster.get(SECRETS, "one", any_cluster.namespace)["data"] == {"a": "Mg=="}

    def test_a_write_that_changes_nothing_keeps_the_version(self, any_cluster: AnyCluster) -> None:
        old = any_cluster.cluster.create(SECRETS, secret("one", a="1"), any_cluster.namespace)
        same = any_cluster.cluster.replace(SECRETS, old)
        assert same["metadata"]["resourceVersion"] == old["metadata"]["resourceVersion"]

    def test_a_json_patch_is_guarded_by_its_test(self, any_cluster: AnyCluster) -> None:
        cluster, namespace = any_cluster.cluster, any_cluster.namespace
        made = cluster.create(SECRETS, secret("one", a="1"), namespace)

        def change(version: str) -> dict[str, Any]:
            guard = {"op": "test", "path": "/metadata/resourceVersion", "value": version}
            return cluster.patch(
                SECRETS, "one", [guard, {"op": "replace", "path": "/data/a", "value": "Mg=="}], namespace
            )

        with pytest.raises(Invalid):
            change("1")
        assert cluster.get(SECRETS, "one", namespace)["data"] == {"a": "MQ=="}
        assert change(made["metadata"]["resourceVersion"])["data"] == {"a": "Mg=="}

    def test_a_json_patch_of_a_path_that_is_not_there_is_refused(self, any_cluster: AnyCluster) -> None:
        any_cluster.cluster.create(SECRETS, secret("one"), any_cluster.namespace)
        with pytest.raises(Invalid):
            any_cluster.cluster.patch(
                SECRETS, "one", [{"op": "replace", "path": "/no/such", "value": ""}], any_cluster.namespace
            )

    def test_a_merge_changes_what_it_names(self, any_cluster: AnyCluster) -> None:
        cluster, namespace = any_cluster.cluster, any_cluster.namespace
        cluster.create(SECRETS, secret("one", a="1", b="2"), namespace)
        merged = cluster.patch(SECRETS, "one", {"data": {"a": None, "c": "Mw=="}}, namespace, kind="merge")
        assert merged["data"] == {"b": "Mg==", "c": "Mw=="}
        stale = {"metadata": {"resourceVersion": "1"}, "data": {"b": None}}
        with pytest.raises(Conflict):
            cluster.patch(SECRETS, "one", stale, namespace, kind="merge")

    def test_a_type_of_a_secret_stays(self, any_cluster: AnyCluster) -> None:
        made = any_cluster.cluster.create(SECRETS, secret("one"), any_cluster.namespace)
        with pytest.raises(Invalid):
            any_cluster.cluster.replace(SECRETS, made | {"type": "example.com/other"})


class TestBinding:
    def test_node_and_annotations_arrive_together(self, any_cluster: AnyCluster) -> None:
        cluster, namespace = any_cluster.cluster, any_cluster.namespace
        made = cluster.create(PODS, pod("p"), namespace)
        cluster.bind(namespace, "p", "node-1", {"hami.io/vgpu-node": "node-1"}, made["metadata"]["uid"])
        bound = cluster.get(PODS, "p", namespace)
        assert bound["spec"]["nodeName"] == "node-1"
        assert bound["metadata"]["annotations"]["hami.io/vgpu-node"] == "node-1"
        with pytest.raises(Conflict):
            cluster.bind(namespace, "p", "node-2", {}, made["metadata"]["uid"])
        assert cluster.get(PODS, "p", namespace) == bound

    def test_another_pod_of_the_name_is_not_bound(self, any_cluster: AnyCluster) -> None:
        any_cluster.cluster.create(PODS, pod("p"), any_cluster.namespace)
        with pytest.raises(Conflict):
            any_cluster.cluster.bind(any_cluster.namespace, "p", "node-1", {}, "00000000-0000-0000-0000-000000000000")
        assert "nodeName" not in any_cluster.cluster.get(PODS, "p", any_cluster.namespace)["spec"]

    def test_a_pod_that_was_changed_is_not_bound_by_its_old_version(self, any_cluster: AnyCluster) -> None:
        cluster, namespace = any_cluster.cluster, any_cluster.namespace
        made = cluster.create(PODS, pod("p"), namespace)["metadata"]
        uid, old = made["uid"], made["resourceVersion"]
        changed = cluster.patch(PODS, "p", {"metadata": {"annotations": {"a": "b"}}}, namespace, kind="merge")
        with pytest.raises(Conflict):
            cluster.bind(namespace, "p", "node-1", {}, uid, old)
        cluster.bind(namespace, "p", "node-1", {}, uid, changed["metadata"]["resourceVersion"])
        assert cluster.get(PODS, "p", namespace)["spec"]["nodeName"] == "node-1"


class TestLists:
    def test_pages_add_up_to_the_list(self, any_cluster: AnyCluster) -> None:
        cluster, namespace = any_cluster.cluster, any_cluster.namespace
        for number in range(7):
            cluster.create(SECRETS, secret(f"s{number}"), namespace)
        pages = list(cluster.pages(SECRETS, namespace, limit=3))
        assert [len(page.items) for page in pages] == [3, 3, 1]
        assert len({page.resource_version for page in pages}) == 1
        whole = cluster.list(SECRETS, namespace)
        assert [one["metadata"]["name"] for page in pages for one in page.items] == [f"s{n}" for n in range(7)]
        assert whole.items == [one for page in pages for one in page.items]
        assert {(one["apiVersion"], one["kind"]) for one in whole.items} == {("v1", "Secret")}

    def test_selectors_choose(self, any_cluster: AnyCluster) -> None:
        cluster, namespace = any_cluster.cluster, any_cluster.namespace
        for name, labels in (("a", {"app": "x"}), ("b", {"app": "y"}), ("c", {})):
            cluster.create(PODS, pod(name, labels), namespace)

        def names(**selectors: str) -> list[str]:
            return [one["metadata"]["name"] for one in cluster.list(PODS, namespace, **selectors).items]

        assert names(label_selector="app=x") == ["a"]
        assert names(label_selector="app,app!=x") == ["b"]
        assert names(label_selector="!app") == ["c"]
        assert names(field_selector="metadata.name=b") == ["b"]
        assert names(field_selector="metadata.name!=b") == ["a", "c"]
        assert names(field_selector="spec.nodeName=") == ["a", "b", "c"]

    def test_objects_without_a_namespace(self, any_cluster: AnyCluster) -> None:
        cluster = any_cluster.cluster
        cluster.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": any_cluster.prefix}})
        try:
            assert any_cluster.prefix in {one["metadata"]["name"] for one in cluster.list(NODES).items}
            note = {"metadata": {"annotations": {"hami-vnpu-core": "true"}}}
            noted = cluster.patch(NODES, any_cluster.prefix, note, kind="strategic")
            assert noted["metadata"]["annotations"]["hami-vnpu-core"] == "true"
        finally:
            cluster.delete(NODES, any_cluster.prefix)
        assert any_cluster.prefix not in {one["metadata"]["name"] for one in cluster.list(NODES).items}


class TestWatches:
    def test_changes_arrive_in_their_order(self, any_cluster: AnyCluster) -> None:
        cluster, namespace = any_cluster.cluster, any_cluster.namespace
        start = cluster.list(SECRETS, namespace).resource_version
        made = cluster.create(SECRETS, secret("one"), namespace)
        cluster.replace(SECRETS, made | {"data": {"a": "Mg=="}})
        cluster.delete(SECRETS, "one", namespace)
        events = [
            event
            for event in cluster.watch(SECRETS, start, namespace=namespace, timeout_s=2)
            if event.type != "BOOKMARK"
        ]
        assert [event.type for event in events] == ["ADDED", "MODIFIED", "DELETED"]
        assert events[0].object["metadata"]["uid"] == made["metadata"]["uid"]
        resumed = cluster.watch(SECRETS, events[0].resource_version, namespace=namespace, timeout_s=2)
        assert [event.type for event in resumed if event.type != "BOOKMARK"] == ["MODIFIED", "DELETED"]

    def test_what_a_selector_loses_is_deleted_for_its_watch(self, any_cluster: AnyCluster) -> None:
        cluster, namespace = any_cluster.cluster, any_cluster.namespace
        start = cluster.list(PODS, namespace).resource_version
        cluster.create(PODS, pod("p", {"app": "x"}), namespace)
        cluster.patch(PODS, "p", {"metadata": {"labels": {"app": "y"}}}, namespace, kind="merge")
        cluster.patch(PODS, "p", {"metadata": {"labels": {"app": "x"}}}, namespace, kind="merge")
        events = cluster.watch(PODS, start, namespace=namespace, label_selector="app=x", timeout_s=2)
        assert [event.type for event in events if event.type != "BOOKMARK"] == ["ADDED", "DELETED", "ADDED"]

    def test_who_follows_sees_the_list_and_then_every_change(self, any_cluster: AnyCluster) -> None:
        cluster, namespace = any_cluster.cluster, any_cluster.namespace
        cluster.create(SECRETS, secret("old"), namespace)
        follower = cluster.follow(SECRETS, namespace)
        seen: list[str] = []
        for step in follower:
            if isinstance(step, Listing):
                seen += [one["metadata"]["name"] for one in step.items]
                cluster.create(SECRETS, secret("new"), namespace)
            elif isinstance(step, Event):
                seen.append(f"{step.type} {step.object['metadata']['name']}")
                if step.type == "DELETED":
                    follower.close()
                else:
                    cluster.delete(SECRETS, "new", namespace)
        assert seen == ["old", "ADDED new", "DELETED new"]

    def test_another_thread_may_end_a_watch_that_waits(self, any_cluster: AnyCluster) -> None:
        cluster = any_cluster.cluster
        follower = cluster.follow(VALIDATING, field_selector=f"metadata.name={any_cluster.prefix}")
        listed = threading.Event()

        def follow() -> None:
            for step in follower:
                assert isinstance(step, Listing)
                listed.set()

        thread = threading.Thread(target=follow)
        thread.start()
        assert listed.wait(30)
        follower.close()
        thread.join(30)
        assert not thread.is_alive()
