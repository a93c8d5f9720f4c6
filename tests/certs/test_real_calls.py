"""A real API server calls the webhook through what was published, while the CA changes; `make test-cluster` alone."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from certs.folder import stored
from certs.keep import Log, Replica
from certs.publish import Place
from certs.rotation import Step
from tests.support import real_api
from tests.support.server import running
from tests.support.traffic import wait_until
from vnpu.kube import MUTATING, PODS, SERVICES, VALIDATING, KubeError, connect

if TYPE_CHECKING:
    from pathlib import Path

    from vnpu.kube import Cluster

ROTATIONS = 3
SERVICE = "webhook"
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "soft", "annotations": {"huawei.com/vnpu-mode": "hami-core"}},
    "spec": {
        "automountServiceAccountToken": False,
        "containers": [
            {
                "name": "c",
                "image": "i",
                "resources": {
                    "limits": {
                        "huawei.com/Ascend910B3": "1",
                        "huawei.com/Ascend910B3-memory": "28672",
                        "huawei.com/Ascend910B3-core": "20",
                    }
                },
            }
        ],
    },
}


def configure(cluster: Cluster, name: str, namespace: str, port: int) -> None:
    """A Service that leads to this machine; pods of this namespace are refused where the webhook cannot be called."""
    cluster.create(
        SERVICES,
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": SERVICE},
            "spec": {"type": "ExternalName", "externalName": "localhost"},
        },
        namespace,
    )
    for resource, path in ((MUTATING, "/mutate"), (VALIDATING, "/validate")):
        webhook = {
            "name": f"{path[1:]}.admission.vnpu.test",
            "clientConfig": {"service": {"name": SERVICE, "namespace": namespace, "path": path, "port": port}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "failurePolicy": "Fail",
            "timeoutSeconds": 10,
        }
        configuration = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}}
        cluster.create(resource, configuration | {"webhooks": [webhook]})


class Creator(threading.Thread):
    """Creates pods that are not kept, one after the other."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        super().__init__()
        self._cluster = cluster
        self._namespace = namespace
        self.ended = threading.Event()
        self.completed = 0
        self.failures: list[str] = []

    def run(self) -> None:
        while not self.ended.is_set():
            try:
                made = self._cluster.create(PODS, POD, self._namespace, dry_run=True)
            except KubeError as error:
                self.failures.append(str(error))
            else:
                assert "lifecycle" in made["spec"]["containers"][0], "completed by the webhook"
                self.completed += 1


def until(replica: Replica, step: Step) -> None:
    wait_until(lambda: replica.turn()[0] is step, step.name)


@pytest.mark.cluster
@pytest.mark.timeout(240)
def test_no_pod_is_refused_while_the_ca_changes(real_kubeconfig: str, tmp_path: Path) -> None:
    cluster, folder = connect(kubeconfig=real_kubeconfig, agent="vnpu-test"), tmp_path / "tls"
    with real_api.namespace(cluster) as namespace:
        place = Place(namespace, SERVICE, "certs", (namespace,))
        replica = Replica(cluster, place, folder, Log(), propagation=timedelta(seconds=3), poll_s=0.1)
        until(replica, Step.WAIT)
        options = ("--cert", str(folder / "tls.crt"), "--key", str(folder / "tls.key"))
        with running(*options, temporary=tmp_path, ca=folder / "ca.crt") as server:
            configure(cluster, namespace, namespace, server.address[1])
            try:
                until(replica, Step.SETTLED)
                creator = Creator(cluster, namespace)
                creator.start()
                try:
                    for _ in range(ROTATIONS):
                        before, made = stored(folder), creator.completed
                        replica.renew = True
                        until(replica, Step.SWITCH)
                        until(replica, Step.SETTLED)
                        assert stored(folder) != before
                        wait_until(lambda made=made: creator.completed > made + 20, "pods")  # type: ignore[misc]
                finally:
                    creator.ended.set()
                    creator.join()
            finally:
                for resource in (MUTATING, VALIDATING):
                    cluster.delete(resource, namespace)
    cluster.close()
    assert creator.failures == []
    print(f"{creator.completed} pods over {ROTATIONS} rotations")  # noqa: T201
