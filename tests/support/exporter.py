"""The exporter's parts at work in this process, on a host tree and a driver that a test fills."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, generate_latest

from interceptor.devices import Device, DevicesError, Machine, Usage, machine_of
from interceptor.exporter.node import Driver, Pods
from interceptor.exporter.scrape import Scrape
from tests.support.mirrors import mirror_path
from vnpu.chips import DEFAULT_CHIPS
from vnpu.kube import Listing

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MIB = 1 << 20
RUNTIME_ID = "c0ffee00" * 8


@dataclass
class FakeDriver:
    """Cards by number, what is used of each, and what goes wrong."""

    usages: dict[int, Usage] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    away: str = ""

    def machine(self) -> Machine:
        if self.away:
            raise DevicesError(self.away)
        return machine_of("test", "25.5.0", [Device(f"U{n}", "910B3", n, 0, n) for n in (0, 1)], self.faults)

    def usage(self, card: int, device: int) -> Usage:
        assert device == 0
        if card not in self.usages:
            raise DevicesError(f"card {card}: it does not answer")
        return self.usages[card]


class Exporter:
    """One node's exporter without its port."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.root.mkdir()
        self.library = FakeDriver({0: Usage(65536 * MIB, 0, 0, {}), 1: Usage(65536 * MIB, 0, 0, {})})
        self.pods = Pods(DEFAULT_CHIPS)
        self.driver = Driver(lambda: self.library, root)  # type: ignore[arg-type,return-value]
        self.registry = CollectorRegistry()
        self.registry.register(Scrape(root, self.pods, self.driver))

    def put(self, *pods: dict[str, Any]) -> None:
        """All pods of the node."""
        self.pods.follow([Listing(list(pods), "1")])

    def mirror(self, uid: str, container: str = "app") -> Path:
        return mirror_path(self.root, uid, container)

    def process(self, pid: int, uid: str, runtime_id: str = RUNTIME_ID, *, library: bool = True) -> None:
        """A process of a pod, as the host's /proc shows it."""
        folder = self.root / "proc" / str(pid)
        folder.mkdir(parents=True)
        pod = f"kubepods-burstable-pod{uid.replace('-', '_')}.slice"
        (folder / "cgroup").write_text(f"0::/kubepods.slice/{pod}/cri-containerd-{runtime_id}.scope\n")
        maps = "7f0 r-xp 0 08:01 1 /usr/lib/libc.so.6\n"
        if library:
            maps += "7f1 r-xp 0 08:01 2 /usr/local/hami-vnpu-core/libvnpu.so\n"
        (folder / "maps").write_text(maps)

    def text(self) -> str:
        """A scrape, after a look at the driver."""
        self.driver.look()
        return generate_latest(self.registry).decode()

    def values(self, name: str) -> Mapping[tuple[str, ...], float]:
        """The values of a metric by those of its labels, after a look at the driver."""
        self.driver.look()
        return {
            tuple(sample.labels.values()): sample.value
            for family in self.registry.collect()
            for sample in family.samples
            if sample.name == name
        }
