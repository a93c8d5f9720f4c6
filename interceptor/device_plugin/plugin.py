"""The device plugin at work: two loops around the state of the node.

One loop looks at the driver and at kubelet's socket, and keeps kubelet informed. It waits for nobody, so that a card's
health reaches kubelet also while the API server is away. The other one keeps the node object right and removes what
pods left behind. Both start from what is there: annotations, directories, the driver. Nothing is kept in files.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from interceptor import devices
from interceptor.device_plugin import inventory as offers
from interceptor.device_plugin import kubelet, report
from interceptor.device_plugin.allocator import COMPONENT, Allocator
from interceptor.device_plugin.inventory import Inventory
from interceptor.device_plugin.notices import LOGGER, Notices
from interceptor.device_plugin.service import Board, Endpoint
from interceptor.device_plugin.sharing import Sharing
from interceptor.devices import DevicesError, Machine
from interceptor.npu_smi import NpuSmi
from vnpu import kube, names
from vnpu.annotations import policies
from vnpu.errors import AnnotationError, VnpuError
from vnpu.objects import annotation_path, annotations_of, mapping_at

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from interceptor.device_plugin.host import Host
    from interceptor.device_plugin.lookup import Shown
    from interceptor.device_plugin.settings import NodeSettings
    from interceptor.devices import Device
    from vnpu.chips import ChipTable
    from vnpu.kube import Cluster

HEALTH_S: Final = 5.0

_LOOK_S: Final = 1.0
"""How often kubelet's socket is looked at."""
_PATIENCE_S: Final = 5.0
"""How long the first look at the driver waits for the first look at the node object."""
_SWEEP_S: Final = 600.0
_GRACE_S: Final = 5.0
_MOST_PROBLEMS: Final = 100
"""Events that wait for an API server that is away."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What a plugin is given.

    Attributes:
        node: the node's name.
        settings: what is configured for it.
        chips: the chip table.
        soft: whether soft slices are wanted here.
        sources: the ways to ask the driver, the best first.
        npu_smi: by which sharing of chips is switched on, None where it needs no switch.
        kubelet_dir: where plugins have their sockets, kubelet's beside them.
        pod_resources: the socket of kubelet's pod resources API.
        health_s: how often the driver is asked.
        report_s: how often the node object is looked at.
    """

    node: str
    settings: NodeSettings
    chips: ChipTable
    soft: bool
    sources: Sequence[Callable[[], Machine]]
    npu_smi: Callable[[], tuple[str, ...]] | None
    kubelet_dir: Path
    pod_resources: Path
    health_s: float = HEALTH_S
    report_s: float = names.REPORT_S


class Plugin:
    """A device plugin for one node."""

    def __init__(self, setup: Setup, host: Host, cluster: Cluster) -> None:
        self._setup = setup
        self._host = host
        self._cluster = cluster
        self._stopping = threading.Event()
        self._changed = threading.Event()
        self._node_read = threading.Event()
        self._look_due = threading.Event()
        self._problems: deque[tuple[str, str]] = deque(maxlen=_MOST_PROBLEMS)
        self._notices = Notices(self._publish)
        self._unpublished = Notices(lambda _topic, _problem: None)
        self._board = Board(Inventory(soft=setup.soft))
        self._machine: Machine | None = None
        self._sharing = Sharing(self._share, self._look_due.set)
        self._cordoned: frozenset[str] = frozenset()
        self._allocator = Allocator(cluster, setup.node, setup.chips, host, lambda: self._board.inventory, self._served)
        self._endpoints: dict[str, Endpoint] = {}
        self._registered_with: dict[str, tuple[int, int]] = {}

    def run(self) -> None:
        """Serve until :meth:`stop`."""
        # A daemon: it may be waiting for an API server that is away, which is no reason to outlive kubelet's patience.
        reporter = threading.Thread(target=self._report_or_end, name="report", daemon=True)
        reporter.start()
        try:
            self._keep_serving()
        finally:
            self.stop()
            for endpoint in self._endpoints.values():
                endpoint.stop()
            reporter.join(_GRACE_S)

    def stop(self) -> None:
        """End :meth:`run`, from any thread."""
        self._stopping.set()
        self._changed.set()

    def _publish(self, topic: str, problem: str) -> None:
        self._problems.append((topic, problem))
        self._changed.set()

    def _served(self) -> frozenset[Shown]:
        return kubelet.served(self._setup.pod_resources)

    # ---- the driver and kubelet

    def _keep_serving(self) -> None:
        self._node_read.wait(_PATIENCE_S)  # a cordoned card had better not be offered for a moment at each start
        due_s = 0.0
        while not self._stopping.is_set():
            if self._look_due.is_set() or time.monotonic() >= due_s:
                self._look_due.clear()
                self._look()
                due_s = time.monotonic() + self._setup.health_s
            self._attend()
            self._stopping.wait(min(_LOOK_S, self._setup.health_s))

    def _look(self) -> None:
        """Ask the driver, and show what is offered now."""
        self._machine = self._ask()
        if self._machine is None:
            return
        soft, refused = self._judge(self._machine)
        self._notices.tell("SoftSlicesRefused", refused)
        inventory = offers.build(
            self._machine,
            self._setup.chips,
            self._setup.settings,
            soft=soft,
            refused=refused,
            share_faults=self._share_faults(self._machine) if soft else {},
            cordoned=self._cordoned,
        )
        self._notices.tell("ChipsNotOffered", "; ".join(inventory.faults))
        for offered in inventory.cards:
            problem = offered.fault and f"card {offered.physical} ({offered.card.uuid}): {offered.fault}"
            self._notices.tell(f"CardUnhealthy{offered.physical}", problem)
        if self._board.show(inventory):
            LOGGER.info("offering %d cards, soft slices: %s", len(inventory.cards), "yes" if soft else "no")
            self._changed.set()

    def _ask(self) -> Machine | None:
        try:
            now = offers.remembered(self._machine, devices.discover(self._setup.sources))
        except DevicesError as error:
            self._notices.tell("DriverSilent", str(error))
            if self._machine is None:
                return None
            known = offers.lost(self._machine.devices, reason="the driver does not answer")
            return Machine(self._machine.source, self._machine.driver, tuple(known))
        self._notices.tell("DriverSilent", "" if now.devices else f"{now.source}: the driver names no chip")
        return now

    def _judge(self, machine: Machine) -> tuple[bool, str]:
        """Whether soft slices may live here, and why not though they are wanted."""
        if not self._setup.soft:
            return False, ""
        missing = self._setup.npu_smi is not None and not self._setup.npu_smi()
        share_fault = "npu-smi is not there, so sharing of the chips cannot be switched on" if missing else ""
        refused = offers.soft_fault(machine.driver, self._host.library_fault(), share_fault)
        return not refused, refused

    def _share_faults(self, machine: Machine) -> Mapping[str, str]:
        """Why chips that are offered cannot be shared, by UUID."""
        if self._setup.npu_smi is None:
            return {}
        return self._sharing.faults(filter(self._setup.settings.offers, machine.devices))

    def _share(self, device: Device) -> None:
        if self._setup.npu_smi is not None:
            NpuSmi(self._setup.npu_smi()).share(device.card, device.device)

    def _attend(self) -> None:
        """Have a socket for each chip, and kubelet know of it: the kubelet that is there now."""
        for chip in self._board.inventory.chips:
            if chip.common_word not in self._endpoints:
                self._endpoints[chip.common_word] = Endpoint(
                    chip, self._setup.kubelet_dir, self._board, self._allocator
                )
        socket = self._setup.kubelet_dir / names.KUBELET_SOCKET
        present = kubelet.identity(socket)
        if present is None:
            self._registered_with.clear()
            self._notices.tell("KubeletSilent", f"{socket}: no socket is there; waiting for kubelet")
            return
        problems = []
        for word, endpoint in self._endpoints.items():
            if self._registered_with.get(word) == present and endpoint.serving:
                continue
            try:
                if not endpoint.serving:
                    endpoint.start()
                kubelet.register(socket, endpoint.socket.name, endpoint.chip.resource_name)
                self._registered_with[word] = present
                LOGGER.info("registered %s with kubelet", endpoint.chip.resource_name)
            except (VnpuError, OSError) as error:
                problems.append(str(error))
        self._notices.tell("KubeletSilent", "; ".join(problems))

    # ---- the API server

    def _report_or_end(self) -> None:
        """Report until the end; a fault of ours ends the plugin, which kubelet then starts again."""
        try:
            self._keep_reporting()
        finally:
            self.stop()

    def _keep_reporting(self) -> None:
        swept_s = -_SWEEP_S
        while True:
            self._changed.clear()  # before the question, which would else be forgotten with the answer
            if self._stopping.is_set():
                return
            self._report()
            self._node_read.set()
            if time.monotonic() - swept_s >= _SWEEP_S:
                swept_s = time.monotonic()
                self._sweep()
            self._changed.wait(self._setup.report_s)

    def _report(self) -> None:
        """Read the node object, and write what it does not say."""
        try:
            node = self._cluster.get(kube.NODES, self._setup.node)
            self._take_cordon(annotations_of(node))
            self._write(node)
            self._write_events(node)
            self._allocator.settle(node)
        except kube.Unreachable:
            self._unpublished.tell("NodeObjectNotWritten", "the API server does not answer")
        except VnpuError as error:
            self._unpublished.tell("NodeObjectNotWritten", f"node {self._setup.node}: {error}")
        else:
            self._unpublished.tell("NodeObjectNotWritten", "")

    def _take_cordon(self, annotations: Mapping[str, Any]) -> None:
        path = annotation_path(names.CORDON)
        try:
            cordoned = policies.uuid_list(annotations.get(names.CORDON, ""), path)
            self._notices.tell("CordonNotRead", "")
        except AnnotationError as error:
            self._notices.tell("CordonNotRead", f"{error}; what was cordoned before still is")
            return
        if cordoned != self._cordoned:
            self._cordoned = cordoned
            self._look_due.set()

    def _write(self, node: Mapping[str, Any]) -> None:
        inventory = self._board.inventory
        written = report.node_annotations(annotations_of(node), inventory, datetime.now().astimezone())
        if written:
            change = {"metadata": {"annotations": written}}
            self._cluster.patch(kube.NODES, self._setup.node, change, kind="merge")
        operations = report.node_capacity(mapping_at(node, "status", "capacity"), inventory)
        if operations:
            self._cluster.patch(kube.NODES, self._setup.node, operations, subresource="status")

    def _write_events(self, node: Mapping[str, Any]) -> None:
        while self._problems:
            topic, problem = self._problems[0]
            self._cluster.event(kube.NODES, node, reason=topic, message=problem, component=COMPONENT, warning=True)
            self._problems.popleft()

    def _sweep(self) -> None:
        """Remove what pods left behind that are surely gone.

        Directories are looked at before the pods: whoever has one was bound before it was made, so a pod that a whole
        list of this node's pods does not name is no more.
        """
        try:
            uids = self._host.pod_uids()
            if not uids:
                return
            pods = self._cluster.list(kube.PODS, field_selector=f"spec.nodeName={self._setup.node}").items
            gone = uids - {mapping_at(pod, "metadata").get("uid") for pod in pods}
            self._host.forget(gone)
            self._unpublished.tell("LeftoversKept", "")
        except (VnpuError, OSError) as error:
            self._unpublished.tell("LeftoversKept", f"what pods left behind is not removed: {error}")
