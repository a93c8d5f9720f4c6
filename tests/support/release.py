"""The chart installed on a real API server, and the webhook run from the checkout as its pod would run it.

Pods of the chart need not run: there may be no kubelet. What stands in for the cluster's network is the kind of the
Service: the API server resolves the name of an ExternalName by itself. Programs get the rights of their service
accounts, by tokens, and no others.
"""

from __future__ import annotations

import base64
import os
import shutil
import signal
import socket
import subprocess
import sys
import uuid
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import yaml

from tests.support import helm, objects, real_api
from tests.support.certs_process import wait_for
from vnpu import names
from vnpu.kube import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    LEASES,
    MUTATING,
    NODES,
    VALIDATING,
    Cluster,
    NotFound,
    Resource,
    connect,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_SERVICE: Final = """spec:
  selector:
    {{- include "vnpu.selector" (list . "webhook") | nindent 4 }}
"""
_STANDS_IN: Final = """spec:
  type: ExternalName
  externalName: localhost
"""


@dataclass(frozen=True)
class Release:
    """An installed chart.

    Attributes:
        version: of Helm.
        cluster: a client with all rights.
        kubeconfig: of the same.
        chart: with the Service that reaches this machine.
        name: of the release, and the prefix of all names.
        namespace: of the release.
        team: a namespace of users.
        port: on which the webhook listens.
        folder: for files.
    """

    version: int
    cluster: Cluster
    kubeconfig: str
    chart: Path
    name: str
    namespace: str
    team: str
    port: int
    folder: Path

    def helm(self, verb: str, *arguments: str) -> str:
        """Run Helm on the release; returns what it said."""
        environment = {"KUBECONFIG": self.kubeconfig}
        command = (verb, self.name, *arguments, f"--namespace={self.namespace}")
        return helm.run(self.version, *command, environment=environment).stdout

    def put(self, verb: str, *settings: str) -> None:
        """Install or upgrade with these values."""
        port = (f"webhook.servicePort={self.port}", f"webhook.port={self.port}")
        own = (f"test.namespace={self.team}", "webhook.drainSeconds=0")
        self.helm(verb, str(self.chart), *(f"--set={setting}" for setting in (*port, *own, *settings)))

    def webhooks(self) -> dict[str, dict[str, Any]]:
        """Both configurations' webhooks by the first part of their names."""
        found = [self.cluster.get(resource, f"zz-{self.name}")["webhooks"] for resource in (MUTATING, VALIDATING)]
        return {webhook["name"].split(".")[0]: webhook for webhooks in found for webhook in webhooks}

    def wait_until_published(self) -> str:
        """The one bundle, once every webhook has it."""

        def bundles() -> set[str]:
            return {webhook["clientConfig"].get("caBundle", "") for webhook in self.webhooks().values()}

        wait_for(lambda: len(bundles()) == 1 and "" not in bundles(), "the caBundle is not published")
        return bundles().pop()

    def account(self, name: str, namespace: str) -> str:
        """A kubeconfig with the rights of a service account, and no others."""
        request = Resource("", "v1", f"serviceaccounts/{name}/token", "TokenRequest")
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = self.cluster.create(request, body, namespace)["status"]["token"]
        document = yaml.safe_load(Path(self.kubeconfig).read_text())
        document["users"] = [{"name": name, "user": {"token": token}}]
        for context in document["contexts"]:
            context["context"]["user"] = name
        path = self.folder / f"{name}.kubeconfig"
        path.write_text(yaml.safe_dump(document))
        return str(path)

    @contextmanager
    def webhook(self) -> Iterator[None]:
        """The webhook, as its pod would run it."""
        deployment = self.cluster.get(DEPLOYMENTS, f"{self.name}-webhook", self.namespace)
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        arguments = [argument.replace("--host=0.0.0.0", "--host=127.0.0.1") for argument in container["args"]]
        for name, file in (("settings", "settings.yaml"), ("device-config", "device-config.yaml")):
            mounted = self.cluster.get(CONFIG_MAPS, f"{self.name}-{name}", self.namespace)
            (self.folder / file).write_text(mounted["data"][file])
            arguments = [one.replace(f"/etc/vnpu/{name}/{file}", str(self.folder / file)) for one in arguments]
        kubeconfig = self.account(f"{self.name}-webhook", self.namespace)
        process = subprocess.Popen(
            [sys.executable, *container["command"][1:], *arguments],
            env={**os.environ, "KUBECONFIG": kubeconfig},
            stdout=subprocess.DEVNULL,
        )
        try:
            wait_for(lambda: process.poll() is not None or _answers(self.port), "the webhook does not listen")
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0, "a signal ends it in order"

    @contextmanager
    def node(self) -> Iterator[str]:
        """A soft node with one free card; gives its name."""
        name = f"{self.name}-node"
        metadata = objects.node(objects.card(f"{name}-card", 0), name=name)["metadata"]
        self.cluster.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": metadata})
        amounts = {"cpu": "64", "memory": "256Gi", "pods": "10", f"huawei.com/{objects.CHIP}": "10"}
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
        try:
            self.cluster.patch(NODES, name, {"status": status}, kind="merge", subresource="status")
            self.cluster.patch(NODES, name, {"spec": {"taints": None}}, kind="merge")
            yield name
        finally:
            self.cluster.delete(NODES, name)
            with suppress(NotFound):
                self.cluster.delete(LEASES, names.TURN_LEASE_PREFIX + name, names.TURN_NAMESPACE)

    @contextmanager
    def scheduler(self, program: str, port: int) -> Iterator[subprocess.Popen[bytes]]:
        """kube-scheduler with the chart's configuration and rights; the extender would be on a port of this machine."""
        name = f"{self.name}-scheduler"
        document = yaml.safe_load(self.cluster.get(CONFIG_MAPS, name, self.namespace)["data"]["configuration.yaml"])
        document["clientConnection"] = {"kubeconfig": self.account(name, self.namespace)}
        document["extenders"][0]["urlPrefix"] = f"http://127.0.0.1:{port}"
        path = self.folder / "configuration.yaml"
        path.write_text(yaml.safe_dump(document))
        deployment = self.cluster.get(DEPLOYMENTS, name, self.namespace)
        arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
        arguments = [one.replace("/etc/kubernetes/scheduler/configuration.yaml", str(path)) for one in arguments]
        with (self.folder / "scheduler.log").open("wb") as log:
            process = subprocess.Popen([program, *arguments, "--secure-port=0"], stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(60)

    def probe(self, account: str, namespace: str) -> tuple[int, str]:
        """What ``helm test`` runs, with the rights of a service account: exit code and output."""
        document = yaml.safe_load(Path(self.account(account, namespace)).read_text())
        cluster = document["clusters"][0]["cluster"]
        folder = self.folder / "account"
        folder.mkdir(exist_ok=True)
        (folder / "token").write_text(document["users"][0]["user"]["token"])
        (folder / "ca.crt").write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
        server = urlsplit(cluster["server"])
        resource = helm.values()["deviceConfig"]["vnpus"]["configs"][0]["resourceName"]
        result = subprocess.run(
            [sys.executable, str(helm.CHART / "files" / "probe.py"), self.team, resource, str(folder)],
            env={"KUBERNETES_SERVICE_HOST": str(server.hostname), "KUBERNETES_SERVICE_PORT": str(server.port)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return result.returncode, result.stdout + result.stderr


@contextmanager
def installed(version: int, kubeconfig: str, folder: Path) -> Iterator[Release]:
    """The chart, installed by this Helm in a namespace of its own; without the webhook running."""
    chart = folder / "vnpu"
    shutil.copytree(helm.CHART, chart)
    template = chart / "templates" / "webhook" / "deployment.yaml"
    assert template.read_text().count(_SERVICE) == 1
    template.write_text(template.read_text().replace(_SERVICE, _STANDS_IN))
    cluster = connect(kubeconfig=kubeconfig, agent="vnpu-test")
    name = f"vnpu-{uuid.uuid4().hex[:8]}"
    with real_api.namespace(cluster) as namespace, real_api.namespace(cluster) as team:
        release = Release(version, cluster, kubeconfig, chart, name, namespace, team, _free_port(), folder)
        release.put("install")
        try:
            yield release
        finally:
            # A test that failed must not leave webhooks behind that refuse the pods of others.
            for resource in (MUTATING, VALIDATING):
                with suppress(NotFound):
                    cluster.delete(resource, f"zz-{name}")
            with suppress(helm.RefusedError):
                release.helm("uninstall")
    cluster.close()


def _answers(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
