"""The device plugin's core at work in this process: a node of two cards, a host tree, and an API server."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from interceptor.device_plugin import inventory as offers
from interceptor.device_plugin.allocator import AllocateError, Allocator
from interceptor.device_plugin.host import Host
from interceptor.device_plugin.settings import NodeSettings
from interceptor.devices import Device, machine_of
from tests.support import objects
from tests.support.chips import chip_named
from tests.support.objects import CHIP
from vnpu import kube, names
from vnpu.chips import DEFAULT_CHIPS

if TYPE_CHECKING:
    from pathlib import Path

    from interceptor.device_plugin.inventory import Inventory
    from interceptor.device_plugin.lookup import Shown
    from tests.support.api_stand_in import ApiStandIn
    from tests.support.kubelet import HostTree
    from vnpu.allocation import ContainerResponse
    from vnpu.chips import Chip

B3 = chip_named(CHIP)
UUIDS = ("U0", "U1")
NODE = "n1"


def device(number: int, *, uuid: str = "", chip: str = "910B3", fault: str = "") -> Device:
    """The chip with that number, alone on its card."""
    return Device(uuid or f"U{number}", chip, number, 0, number, fault)


def inventory(*devices: Device, soft: bool = True, settings: NodeSettings | None = None, **options: Any) -> Inventory:
    """What a node with these chips offers; without any, two 910B3."""
    machine = machine_of("test", "25.5.0", devices or (device(0), device(1)))
    return offers.build(machine, DEFAULT_CHIPS, settings or NodeSettings(), soft=soft, **options)


def waiting(
    name: str, text: str, *containers: dict[str, Any], chip: str = CHIP, left: str | None = None, **fields: Any
) -> dict[str, Any]:
    """A pod that is bound to the node and waits for its cards; ``left`` is what of its text is not served yet."""
    annotations = {names.to_allocate(chip): text if left is None else left} | fields.pop("annotations", {})
    given = {"phase": "Pending", "node": NODE} | fields
    return objects.pod(*containers, name=name, text=text, chip=chip, annotations=annotations, **given)


def asking(name: str = "app", **asks: Any) -> dict[str, Any]:
    """A container that asks for one card, or for what is given."""
    return objects.container(name, **({"count": 1} | asks))


@dataclass
class Bench:
    """An allocator and what it works on."""

    api: ApiStandIn
    tree: HostTree
    folder: Path
    inventory: Inventory = field(default_factory=inventory)
    shown: frozenset[Shown] = frozenset()

    def __post_init__(self) -> None:
        self.host = Host(self.tree.root, self.tree.version, self.tree.machine)
        self.again()

    def again(self) -> None:
        """As after a restart: a new allocator, that knows nothing."""
        self.allocator = Allocator(
            self.api.cluster(self.folder), NODE, DEFAULT_CHIPS, self.host, lambda: self.inventory, lambda: self.shown
        )

    def put(self, *pods: dict[str, Any]) -> None:
        for pod in pods:
            self.api.put(kube.PODS, pod)

    def lock(self, text: str) -> None:
        node = self.api.object(kube.NODES, NODE)
        assert node is not None
        metadata = node["metadata"] | {"annotations": node["metadata"].get("annotations", {}) | {names.NODE_LOCK: text}}
        self.api.put(kube.NODES, node | {"metadata": metadata})

    def lock_of(self, pod: str) -> None:
        self.lock(f"2026-08-21T10:00:00Z,team,{pod}")

    @property
    def locked(self) -> str | None:
        node = self.api.object(kube.NODES, NODE)
        assert node is not None
        found: str | None = node["metadata"].get("annotations", {}).get(names.NODE_LOCK)
        return found

    def allocate(self, count: int = 1, chip: Chip = B3) -> ContainerResponse:
        (response,) = self.allocator.allocate(chip, [count])
        return response

    def refused(self, count: int = 1, chip: Chip = B3) -> str:
        try:
            response = self.allocator.allocate(chip, [count])
        except AllocateError as error:
            return str(error)
        raise AssertionError(response)

    def annotations(self, pod: str) -> dict[str, Any]:
        found = self.api.object(kube.PODS, pod, "team")
        assert found is not None
        annotations: dict[str, Any] = found["metadata"]["annotations"]
        return annotations

    def uid(self, pod: str) -> str:
        """As the API server gave it."""
        found = self.api.object(kube.PODS, pod, "team")
        assert found is not None
        return str(found["metadata"]["uid"])

    def phase(self, pod: str) -> str | None:
        return self.annotations(pod).get(names.BIND_PHASE)

    def left(self, pod: str, chip: str = CHIP) -> str:
        return str(self.annotations(pod)[names.to_allocate(chip)])

    def events(self) -> list[tuple[str, str, str]]:
        """Kind and name of what each event is about, and what it says."""
        return [
            (event["involvedObject"]["kind"], event["involvedObject"]["name"], event["message"])
            for event in self.api.objects(kube.EVENTS)
        ]

    def sicken(self, uuid: str, fault: str) -> None:
        cards = tuple(
            replace(one, fault=fault, card=replace(one.card, healthy=False)) if one.card.uuid == uuid else one
            for one in self.inventory.cards
        )
        self.inventory = replace(self.inventory, cards=cards)
