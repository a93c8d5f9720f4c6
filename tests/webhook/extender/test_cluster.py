"""With a real API server and a real kube-scheduler: ``make test-cluster``.

kube-scheduler is ``$VNPU_TEST_KUBE_SCHEDULER``, else the one in ``$KUBEBUILDER_ASSETS``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import uuid
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import extender_process, objects, real_api
from tests.support.background import repeating
from vnpu import ledger, names
from vnpu.admission.settings import DevicePlugin
from vnpu.chips import DEFAULT_CHIPS
from vnpu.kube import EVENTS, LEASES, NODES, PODS, Cluster, KubeError, connect

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]
WAIT_S = 90
CARDS = 2


def kube_scheduler() -> str | None:
    given = os.environ.get("VNPU_TEST_KUBE_SCHEDULER")
    return given or shutil.which("kube-scheduler", path=os.environ.get("KUBEBUILDER_ASSETS", ""))


@dataclass
class Bench:
    """Nodes of our own on a real API server, their scheduler, and its extender."""

    cluster: Cluster
    kubeconfig: str
    namespace: str
    folder: Path
    prefix: str = field(default_factory=lambda: f"vnpu-test-{uuid.uuid4().hex[:8]}")

    def make_nodes(self, count: int) -> None:
        for index in range(count):
            name = f"{self.prefix}-{index}"
            cards = [objects.card(f"{name}-c{place}", place, count=4) for place in range(CARDS)]
            metadata = objects.node(*cards, name=name)["metadata"] | {"labels": {"vnpu-test": self.prefix}}
            self.cluster.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": metadata})
            amounts = {"cpu": "64", "memory": "256Gi", "pods": "200", f"huawei.com/{objects.CHIP}": str(4 * CARDS)}
            status = {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
            self.cluster.patch(NODES, name, {"status": status}, kind="merge", subresource="status")
            self.cluster.patch(NODES, name, {"spec": {"taints": None}}, kind="merge")

    def nodes(self) -> list[Any]:
        return self.cluster.list(NODES, label_selector=f"vnpu-test={self.prefix}").items

    def pods(self) -> list[Any]:
        return self.cluster.list(PODS, self.namespace).items

    def make_pod(self, name: str, memory: int, core: int) -> None:
        pod = objects.pod(objects.container("app", count=1, memory=memory, core=core), name=name, node="")
        pod["metadata"] = {"name": name, "annotations": {names.MODE: "hami-core"}}
        pod["spec"] |= {"schedulerName": self.prefix, "nodeSelector": {"vnpu-test": self.prefix}}
        pod["spec"]["containers"][0]["image"] = "registry.example/app:1"
        pod["spec"]["terminationGracePeriodSeconds"] = 0
        self.cluster.create(PODS, {"apiVersion": "v1", **pod, "status": {}}, self.namespace)

    @contextmanager
    def scheduler(self, port: int) -> Iterator[subprocess.Popen[bytes]]:
        """kube-scheduler with the configuration that docs/extender.md shows."""
        word = f"huawei.com/{objects.CHIP}"
        configuration = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": self.kubeconfig},
            "leaderElection": {"leaderElect": False},
            "percentageOfNodesToScore": 100,
            "profiles": [{"schedulerName": self.prefix}],
            "podInitialBackoffSeconds": 1,
            "podMaxBackoffSeconds": 2,
            "extenders": [
                {
                    "urlPrefix": f"http://127.0.0.1:{port}",
                    "filterVerb": "filter",
                    "prioritizeVerb": "prioritize",
                    "bindVerb": "bind",
                    "weight": 10,
                    "enableHTTPS": False,
                    "httpTimeout": "30s",
                    "nodeCacheCapable": True,
                    "ignorable": False,
                    "managedResources": [
                        {"name": word, "ignoredByScheduler": False},
                        {"name": f"{word}-memory", "ignoredByScheduler": True},
                        {"name": f"{word}-core", "ignoredByScheduler": True},
                    ],
                }
            ],
        }
        path = self.folder / "scheduler.json"
        path.write_text(json.dumps(configuration))
        program = kube_scheduler()
        assert program is not None
        with (self.folder / "scheduler.log").open("ab") as log:
            process = subprocess.Popen([program, f"--config={path}", "--secure-port=0"], stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(WAIT_S)

    @contextmanager
    def kubelet(self, pause_s: float = 0.1) -> Iterator[None]:
        """What kubelet and device plugin do with pods that are bound, as far as schedulers see it."""

        def serve() -> None:
            for pod in self.pods():
                annotations = pod["metadata"].get("annotations", {})
                if annotations.get(names.BIND_PHASE) == names.BIND_PHASE_ALLOCATING:
                    served = {"metadata": {"annotations": {names.BIND_PHASE: names.BIND_PHASE_SUCCESS}}}
                    released = {"metadata": {"annotations": {names.NODE_LOCK: None}}}
                    with suppress(KubeError):
                        self.cluster.patch(PODS, pod["metadata"]["name"], served, self.namespace, kind="merge")
                        self.cluster.patch(NODES, pod["spec"]["nodeName"], released, kind="merge")

        with repeating(serve, pause_s):
            yield

    def wait_bound(self, count: int) -> list[Any]:
        return self.wait(lambda: [pod for pod in self.pods() if pod["spec"].get("nodeName")], count)

    def wait(self, look: Any, count: int) -> list[Any]:
        deadline = time.monotonic() + WAIT_S
        while len(found := look()) < count:
            assert time.monotonic() < deadline, (len(found), (self.folder / "scheduler.log").read_text()[-3000:])
            time.sleep(0.1)
        return list(found)

    def check(self) -> ledger.Ledger:
        """The books of all nodes and pods are sound, and every bound pod has its cards."""
        nodes = [ledger.read_node(node, DEFAULT_CHIPS)[0] for node in self.nodes()]
        books = ledger.book(nodes, self.pods(), DEFAULT_CHIPS)
        assert [node.unsafe for node in books.nodes] == [""] * len(nodes)
        assert not books.warnings
        for use in books.used.values():
            assert use.memory_mib <= 65536
            assert use.core_percent <= 100
            assert use.slots <= 4
        return books


@pytest.fixture
def bench(real_kubeconfig: str, tmp_path: Path) -> Iterator[Bench]:
    if kube_scheduler() is None:
        pytest.skip("neither VNPU_TEST_KUBE_SCHEDULER nor KUBEBUILDER_ASSETS says where kube-scheduler is")
    cluster = connect(kubeconfig=real_kubeconfig, agent="vnpu-test")
    with real_api.namespace(cluster) as namespace:
        made = Bench(cluster, real_kubeconfig, namespace, tmp_path)
        try:
            yield made
        finally:
            for pod in made.pods():
                cluster.delete(PODS, pod["metadata"]["name"], namespace)
            for node in made.nodes():
                name = node["metadata"]["name"]
                cluster.delete(NODES, name)
                with suppress(KubeError):
                    cluster.delete(LEASES, names.TURN_LEASE_PREFIX + name, names.TURN_NAMESPACE)
    cluster.close()


@pytest.fixture(params=DevicePlugin)
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "settings.yaml"
    path.write_text(f"devicePlugin: {request.param}\n")
    return path


def test_pods_get_bound_and_an_impossible_one_hears_why(bench: Bench, settings: Path) -> None:
    bench.make_nodes(3)
    with (
        extender_process.running("--config", str(settings), kubeconfig=bench.kubeconfig) as extender,
        bench.scheduler(extender.port),
        bench.kubelet(),
    ):
        for index in range(6):
            bench.make_pod(f"half-{index}", 30000, 45)
        bound = bench.wait_bound(6)
        for index in range(2):  # the halves fill one node and a part of the second: the third is left
            bench.make_pod(f"whole-{index}", 65536, 100)
        bench.wait_bound(8)
        bench.make_pod("impossible", 65536, 100)

        def told() -> list[str]:
            selector = "involvedObject.name=impossible,reason=FailedScheduling"
            events = bench.cluster.list(EVENTS, bench.namespace, field_selector=selector).items
            return [event["message"] for event in events]

        message = bench.wait(told, 1)[0]
    books = bench.check()
    assert sum(use.slots for use in books.used.values()) == 8
    for pod in bound:
        annotations = pod["metadata"]["annotations"]
        assert annotations[names.ASSIGNED_NODE] == pod["spec"]["nodeName"]
        assert annotations[names.runtime_info(objects.CHIP)].endswith('"memory":30000,"core":45}]')
        assert annotations[names.BIND_TICKET].split(",")[1] == pod["metadata"]["uid"]
    assert "CardInsufficientMemory" in message, message
    assert "nearest: " in message
    assert "MiB" in message


def test_a_restart_of_everything_in_the_middle_changes_no_sum(bench: Bench, settings: Path) -> None:
    bench.make_nodes(3)
    expected = 12
    with ExitStack() as stack:
        stack.enter_context(bench.kubelet())
        first = stack.enter_context(extender_process.running("--config", str(settings), kubeconfig=bench.kubeconfig))
        scheduler = stack.enter_context(bench.scheduler(first.port))
        for index in range(expected):
            bench.make_pod(f"p{index}", 30000, 45)
        bench.wait_bound(2)
        first.kill()
        scheduler.kill()
        scheduler.wait(WAIT_S)
        again = stack.enter_context(
            extender_process.running("--config", str(settings), kubeconfig=bench.kubeconfig, port=first.port)
        )
        stack.enter_context(bench.scheduler(again.port))
        bench.wait_bound(expected)
        books = bench.check()
    assert sum(use.memory_mib for use in books.used.values()) == 30000 * expected
    assert sum(use.core_percent for use in books.used.values()) == 45 * expected
