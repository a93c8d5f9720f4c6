"""What is known of the node between two scrapes: its tenants by watch, its chips by a look every few seconds."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from interceptor.exporter.tenants import tenants
from interceptor.exporter.usage import Holder, holders
from interceptor.patience import Question
from vnpu.errors import FieldError, VnpuError
from vnpu.kube import Event, Listing, Lost
from vnpu.objects import mapping_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from interceptor.dcmi import Dcmi
    from interceptor.devices import Machine, Usage
    from interceptor.exporter.tenants import Tenant
    from vnpu.chips import ChipTable
    from vnpu.kube import Object

_LOG: Final = logging.getLogger("exporter")


class Pods:
    """The tenants of this node's pods; what was seen last stays while the API server is away."""

    def __init__(self, chips: ChipTable) -> None:
        self._chips = chips
        self._lock = threading.Lock()
        self._tenants: dict[str, list[Tenant]] = {}
        self._faults: dict[str, str] = {}
        self.up = False

    def follow(self, changes: Iterable[Listing | Event | Lost]) -> None:
        """Take in what the API server tells, until that ends."""
        for change in changes:
            if isinstance(change, Lost):
                _LOG.warning("pods: %s", change.error)
                self.up = False
                continue
            with self._lock:
                if isinstance(change, Listing):
                    self._tenants, self._faults = {}, {}
                    for pod in change.items:
                        self._put(pod)
                elif change.type == "DELETED":
                    self._drop(_uid(change.object))
                else:
                    self._put(change.object)
            self.up = True

    def now(self) -> tuple[list[Tenant], int]:
        """The tenants, and how many pods cannot be read."""
        with self._lock:
            return [tenant for found in self._tenants.values() for tenant in found], len(self._faults)

    def _put(self, pod: Object) -> None:
        uid = _uid(pod)
        before = self._faults.get(uid)
        self._drop(uid)
        try:
            found = tenants(pod, self._chips)
        except FieldError as error:
            self._faults[uid] = str(error)
            if before != str(error):
                metadata = mapping_at(pod, "metadata")
                _LOG.warning("pod %s/%s: %s", metadata.get("namespace"), metadata.get("name"), error)
            return
        if found:
            self._tenants[uid] = found

    def _drop(self, uid: str) -> None:
        self._tenants.pop(uid, None)
        self._faults.pop(uid, None)


def _uid(pod: Object) -> str:
    return str(mapping_at(pod, "metadata").get("uid", ""))


@dataclass(frozen=True, slots=True)
class Chips:
    """What the driver said at one moment.

    Attributes:
        machine: its chips, None where it cannot be asked.
        usages: what they are used for, by UUID; a chip that does not tell is left out.
        holders: the processes of pods that hold one, by pid.
        faults: how many chips cannot be read.
    """

    machine: Machine | None = None
    usages: Mapping[str, Usage] = field(default_factory=dict)
    holders: Mapping[int, Holder] = field(default_factory=dict)
    faults: int = 0


class Driver:
    """The driver, asked apart from scrapes: a call of it may take long."""

    def __init__(self, load: Callable[[], Dcmi], root: Path) -> None:
        """Take the driver.

        Args:
            load: loads its library; asked again while that fails.
            root: where the host's ``/`` is seen from here.
        """
        self._load = load
        self._root = root
        self._asked = Question("libdcmi", self._ask)
        self._library: Dcmi | None = None
        self._said: set[str] = set()
        self.now = Chips()

    def look(self) -> None:
        """Ask it anew; what it said before is not told as if it were new."""
        try:
            self.now, faults = self._asked()
        except VnpuError as error:
            self.now, faults = Chips(), {str(error)}
        self._say(faults)

    def _ask(self) -> tuple[Chips, set[str]]:
        self._library = self._library or self._load()
        machine = self._library.machine()
        faults = set(machine.faults)
        usages = {}
        for device in machine.devices:
            try:
                usages[device.uuid] = self._library.usage(device.card, device.device)
            except VnpuError as error:
                faults.add(str(error))
        return Chips(machine, usages, holders(self._root, usages.values()), len(faults)), faults

    def _say(self, faults: set[str]) -> None:
        for fault in sorted(faults - self._said):
            _LOG.warning("driver: %s", fault)
        self._said = faults
