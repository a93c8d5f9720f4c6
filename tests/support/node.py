"""A node with one simulated card, from a manifest to what its container gets, by every part of this project.

Webhook, device plugin and exporter are processes of their own. The API server, kubelet and the driver are stand-ins.
"""

from __future__ import annotations

import base64
import json
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jsonpatch

from interceptor import install
from tests.support import exporter_process, native, server
from tests.support.api_stand_in import ApiStandIn
from tests.support.containers import eventually
from tests.support.kubelet import HostTree, Kubelet, PluginProcess
from vnpu import kube, ledger, names
from vnpu.allocation import Mount, binding_annotations
from vnpu.chips import DEFAULT_CHIPS
from vnpu.fit.answers import Placement
from vnpu.fit.place import place
from vnpu.request import pod_request

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.support.exporter_process import ExporterProcess
    from tests.support.kubelet import Endpoint
    from tests.support.npu_client import Machine
    from tests.support.server import Server

CHIP = "Ascend910B3"
RESOURCE = f"huawei.com/{CHIP}"
NODE = "node-1"
NAMESPACE = "default"
DRIVER = names.DRIVER_FILES_HOST[0]
NPU_SMI = names.NPU_SMI_HOST[1]
DEVICE = "/dev/npu_sim"
"""Where a container finds the simulated machine, as it finds /dev/davinci0 of a real one."""
TOOLS = "/opt/demo"
"""Programs of the image."""
IMAGE_TOOLS = ("client", "load")


@dataclass(frozen=True)
class Allocated:
    """One container as kubelet starts it.

    ``mounts`` lead from paths of this machine into the container.
    """

    pod: str
    placed: str
    env: Mapping[str, str]
    mounts: tuple[Mount, ...]
    hook: tuple[str, ...]


@dataclass(frozen=True)
class Node:
    """The parts of a running node."""

    machine: Machine
    host: HostTree
    api: ApiStandIn
    kubelet: Kubelet
    plugin: PluginProcess
    endpoint: Endpoint
    slots: frozenset[str]
    webhook: Server
    exporter: ExporterProcess
    cluster: kube.Cluster

    def run(self, written: Mapping[str, Any]) -> Allocated:
        """A pod with one container: admitted, placed, bound, and served by the device plugin."""
        pod = self._admitted(written)
        pod["metadata"]["namespace"] = NAMESPACE
        name = pod["metadata"]["name"]
        uid = self.api.put(kube.PODS, pod | {"status": {"phase": "Pending"}})["metadata"]["uid"]
        placement = self._placed(pod)
        self.cluster.bind(NAMESPACE, name, NODE, binding_annotations(placement, time_s=0), uid)
        free = sorted(self.slots - {slot for slot, _ in self._taken()})
        slots = self.endpoint.preferred(free, 1)
        (response,) = self.endpoint.allocate(slots)
        (container,) = pod["spec"]["containers"]
        self.kubelet.served(NAMESPACE, name, container["name"], RESOURCE, *slots)
        mounts = [Mount(str(self.host.at(one.host_path)), one.container_path, one.read_only) for one in response.mounts]
        mounts += [Mount(str(native.client(tool)), f"{TOOLS}/{tool}") for tool in IMAGE_TOOLS]
        mounts.append(Mount(str(self.machine.state), DEVICE, read_only=False))
        image = {"PATH": "/bin:/usr/bin:/sbin:/usr/sbin", "LD_LIBRARY_PATH": DRIVER}
        simulated = {"NPU_SIM_STATE": DEVICE, "NPU_SIM_TAG": name}
        own = {entry["name"]: entry["value"] for entry in container["env"]}
        return Allocated(
            name,
            placement.containers[0].cards[0].card.uuid,
            # kubelet lets a pod's own environment beat that of device plugins.
            {**image, **simulated, **response.envs, **own},
            tuple(mounts),
            tuple(container["lifecycle"]["postStart"]["exec"]["command"]),
        )

    def _admitted(self, written: Mapping[str, Any]) -> dict[str, Any]:
        what = {
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
        }
        request = {"uid": "u", **what, "operation": "CREATE", "namespace": NAMESPACE, "object": written}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        with self.webhook.session() as session:
            answer = session.post(f"{self.webhook.url}/mutate", json=review, timeout=server.TIMEOUT_S).json()[
                "response"
            ]
        assert answer["allowed"], answer
        pod: dict[str, Any] = jsonpatch.apply_patch(dict(written), base64.b64decode(answer["patch"]).decode())
        return pod

    def _placed(self, pod: Mapping[str, Any]) -> Placement:
        document = self.api.object(kube.NODES, NODE)
        assert document is not None
        node, _ = ledger.read_node(document, DEFAULT_CHIPS)
        books = ledger.book((node,), self.api.objects(kube.PODS), DEFAULT_CHIPS)
        placement = place(pod_request(pod, DEFAULT_CHIPS), books.nodes, books.used)
        assert isinstance(placement, Placement), placement
        return placement

    def _taken(self) -> Iterator[tuple[str, str]]:
        for pod in self.kubelet.shown:
            for container in pod.containers:
                for devices in container.devices:
                    yield from ((slot, pod.name) for slot in devices.device_ids)


@contextmanager
def running(folder: Path, machine: Machine) -> Iterator[Node]:
    """A node whose files are below ``folder``, a directory with a short name, on a machine that is made for it."""
    folder.mkdir()
    chip = DEFAULT_CHIPS.get(CHIP)
    assert chip is not None
    machine.tool("create", f"chip={CHIP}", f"memory_mib={chip.memory_capacity_mib}")
    host = HostTree(folder / "host").make()
    simulator = native.simulator("nested")
    place = install.Place.of_version(host.root, host.version)
    install.install(place, install.read_source(native.source(), host.machine))
    shutil.copytree(simulator, host.at(DRIVER), dirs_exist_ok=True)
    shutil.copy(simulator / "npu-smi", host.at(NPU_SMI))
    arguments = ["--mode", "soft", "--npu-smi", str(simulator / "npu-smi")]
    with ApiStandIn() as api, Kubelet(folder) as kubelet, server.running(temporary=folder) as webhook:
        api.put(kube.NODES, {"metadata": {"name": NODE}, "status": {"capacity": {"cpu": "8"}}})
        plugin = PluginProcess(folder, kubelet, api, host, machine.state, NODE, arguments)
        with plugin.running():
            endpoint = kubelet.channel(kubelet.registration())
            slots = frozenset(endpoint.stream().next().healthy())
            assert eventually(lambda: names.node_register(CHIP) in json.dumps(api.object(kube.NODES, NODE)))
            driver = {"NPU_SIM_STATE": str(machine.state), "LD_LIBRARY_PATH": str(simulator)}
            with exporter_process.running(folder, api, root=host.root, node=NODE, **driver) as exporter:
                yield Node(machine, host, api, kubelet, plugin, endpoint, slots, webhook, exporter, api.cluster(folder))
