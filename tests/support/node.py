"""A node as this project needs one: it admits a pod, books it on its card, and allocates what its container gets."""

from __future__ import annotations

import shutil
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.support import native
from tests.support.pods import patched
from vnpu import ledger, names
from vnpu.admission.rules import mutate_pod
from vnpu.admission.settings import Settings
from vnpu.allocation import HostPaths, Mount, binding_annotations, container_response
from vnpu.chips import DEFAULT_CHIPS
from vnpu.containers import containers
from vnpu.fit import inventory
from vnpu.fit.answers import Placement
from vnpu.fit.place import place
from vnpu.holdings import cards_of
from vnpu.mode import Mode
from vnpu.request import pod_request

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.support.npu_client import Machine

CHIP = "Ascend910B3"
NODE = "node-1"
DRIVER = names.DRIVER_FILES_HOST[0]
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


class Node:
    """A node with one card, below ``root``: what a path of the host means here is ``root`` and then that path."""

    def __init__(self, root: Path, machine: Machine) -> None:
        self.root = root
        self.machine = machine
        self.chip = inventory.find_chip(CHIP, DEFAULT_CHIPS, "chip")
        slots = inventory.default_slots(self.chip, soft=True)
        self.node = inventory.make_node(NODE, self.chip, 1, soft=True, slots=slots)
        self.pods: list[Mapping[str, Any]] = []
        machine.tool("create", f"chip={CHIP}", f"memory_mib={self.chip.memory_capacity_mib}")
        self.core_dir = f"{names.CORE_DIR}/1"
        self._install()

    def _install(self) -> None:
        """What the installer of the node part and that of the driver leave behind."""
        core = self.on_host(self.core_dir)
        core.mkdir(parents=True)
        for program in (native.library(), native.limiter()):
            shutil.copy(program, core)
        (core / names.PRELOAD_FILE_NAME).write_text(f"{names.CORE_DIR}/{native.library().name}\n")
        shared = self.on_host(names.SHARED_REGION_HOST)
        shared.mkdir(parents=True)
        shared.chmod(0o1777)
        shutil.copytree(native.simulator("nested"), self.on_host(DRIVER))

    def on_host(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def run(self, written: Mapping[str, Any]) -> Allocated:
        """Admission, placement, binding and allocation of a pod with one container."""
        outcome = mutate_pod(written, Settings(), DEFAULT_CHIPS)
        assert outcome.allowed, outcome.message
        pod = patched(dict(written), outcome.sets)
        books = ledger.book((self.node,), self.pods, DEFAULT_CHIPS)
        placement = place(pod_request(pod, DEFAULT_CHIPS), books.nodes, books.used)
        assert isinstance(placement, Placement), placement
        pod["metadata"] |= {"uid": str(uuid.uuid4())}
        pod["metadata"]["annotations"] |= binding_annotations(placement, time_s=0)
        pod["spec"]["nodeName"] = placement.node
        self.pods.append(pod)
        return self._allocated(pod)

    def _allocated(self, pod: Mapping[str, Any]) -> Allocated:
        (container,) = containers(pod)
        uid = pod["metadata"]["uid"]
        cards = cards_of(self.pods, uid, container.name, self.chip)
        response = container_response(
            cards,
            {card.uuid: card.index for card in self.node.cards},
            Mode.SOFT,
            pod_uid=uid,
            container=container.name,
            host=HostPaths((DRIVER,), self.core_dir),
        )
        mounts = [Mount(str(self.on_host(one.host_path)), one.container_path, one.read_only) for one in response.mounts]
        for mount in response.mounts:
            if not self.on_host(mount.host_path).exists():
                self.on_host(mount.host_path).mkdir(parents=True)
        mounts += [Mount(str(native.client(tool)), f"{TOOLS}/{tool}") for tool in IMAGE_TOOLS]
        mounts.append(Mount(str(self.machine.state), DEVICE, read_only=False))
        own = {entry["name"]: entry["value"] for entry in container.raw["env"]}
        image = {"PATH": "/bin:/usr/bin:/sbin:/usr/sbin", "LD_LIBRARY_PATH": DRIVER}
        simulated = {"NPU_SIM_STATE": DEVICE, "NPU_SIM_TAG": pod["metadata"]["name"]}
        return Allocated(
            pod["metadata"]["name"],
            cards[0].uuid,
            {**image, **simulated, **own, **response.env},
            tuple(mounts),
            tuple(container.raw["lifecycle"]["postStart"]["exec"]["command"]),
        )
