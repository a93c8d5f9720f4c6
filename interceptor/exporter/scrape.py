"""One scrape: what is granted, what the containers' limiters say, what the driver counts."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Final

from prometheus_client.registry import Collector

from interceptor.exporter import usage
from interceptor.exporter.families import Family, Table
from interceptor.exporter.rates import Rates

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from prometheus_client.metrics_core import Metric

    from interceptor.exporter.node import Chips, Driver, Pods
    from interceptor.exporter.tenants import Tenant
    from interceptor.exporter.usage import Seen
    from interceptor.region import Mirror, MirrorCard

_LOG: Final = logging.getLogger("exporter")
SILENCE_S: Final = 5.0
"""A limiter that has not written for so long is gone or stopped: its figures are no longer true."""


class Scrape(Collector):
    """Collects when Prometheus asks, and in between, so that shares are those of the last seconds."""

    def __init__(self, root: Path, pods: Pods, driver: Driver) -> None:
        self._root = root
        self._pods = pods
        self._driver = driver
        self._lock = threading.Lock()
        self._rates = Rates()
        self._said: dict[tuple[str, str], str] = {}

    def describe(self) -> Iterator[Metric]:
        """The names and kinds alone."""
        return iter(Table())

    def collect(self) -> Iterator[Metric]:
        """What is so now."""
        return iter(self.table())

    def table(self) -> Table:
        """What is so now, and one more sample of every share."""
        with self._lock:
            table = Table()
            tenants, unreadable_pods = self._pods.now()
            chips = self._driver.now
            _add_host(table, chips)
            self._forget_all_but(tenants)
            containers = usage.directory(self._root)
            numbers = {} if chips.machine is None else {one.uuid: one.physical for one in chips.machine.devices}
            unreadable_mirrors = sum(
                self._add_tenant(table, tenant, usage.seen(containers, tenant), chips, numbers) for tenant in tenants
            )
            for kind, count in (
                ("pods", unreadable_pods),
                ("cards", chips.faults),
                ("mirrors", unreadable_mirrors),
            ):
                table.add(Family.UNREADABLE, (kind,), count)
            table.add(Family.SOURCE_UP, ("pods",), self._pods.up)
            table.add(Family.SOURCE_UP, ("driver",), chips.machine is not None)
            return table

    def _add_tenant(self, table: Table, tenant: Tenant, seen: Seen, chips: Chips, numbers: Mapping[str, int]) -> bool:
        """Add what is known of a container; tells whether its files cannot be read."""
        self._say(tenant, seen.fault)
        labels = (tenant.namespace, tenant.pod, tenant.container)
        mirror = seen.mirror if seen.mirror is not None and _is_fresh(seen.mirror) else None
        table.add(Family.LIMITER_UP, labels, mirror is not None)
        unmanaged = usage.unmanaged(tenant, chips.holders)
        if mirror is not None:
            table.add(Family.GENERATION, labels, mirror.generation)
            table.add(Family.PROCESSES, labels, mirror.processes)
            unmanaged = max(unmanaged, mirror.unmanaged)
        table.add(Family.UNMANAGED, labels, unmanaged)
        for place, part in enumerate(tenant.slices):
            here = (*labels, str(part.index), part.uuid)
            table.add(Family.LIMIT, here, part.memory)
            table.add(Family.GRANTED, here, part.core / 100)
            if part.uuid in chips.usages:
                table.add(Family.DRIVER_USED, here, usage.held(tenant, chips.usages[part.uuid], chips.holders))
            if mirror is not None:
                card = _card(mirror, numbers.get(part.uuid), place)
                if card is not None:
                    self._add_card(table, here, (tenant.uid, tenant.container, part.uuid), mirror, card)
            elif place < len(seen.upstream):
                table.add(Family.USED, here, seen.upstream[place])
        return bool(seen.fault)

    def _add_card(
        self,
        table: Table,
        labels: tuple[str, ...],
        key: tuple[str, str, str],
        mirror: Mirror,
        card: MirrorCard,
    ) -> None:
        table.add(Family.USED, labels, card.used + card.overhead)
        table.add(Family.CONTEXT, labels, card.overhead)
        table.add(Family.MODULE, labels, 0)
        table.add(Family.BUFFER, labels, card.used)
        table.add(Family.ENFORCED, labels, card.quota)
        table.add(Family.ENTITLED, labels, card.weight / 100)
        table.add(Family.HELD, labels, card.held_us / 1e6)
        table.add(Family.DENIALS, labels, card.denials)
        table.add(Family.WAITS, labels, card.waits)
        table.add(Family.WAITED, labels, card.wait_us / 1e6)
        table.add(Family.LONGEST, labels, card.longest_us / 1e6)
        self._rates.add(key, mirror.written_us, card.held_us)
        share = self._rates.share(key)
        if share is not None:
            table.add(Family.RECEIVED, labels, share)
            table.add(Family.BUSY, labels, share * 100)

    def _forget_all_but(self, tenants: list[Tenant]) -> None:
        self._rates.keep({(tenant.uid, tenant.container, part.uuid) for tenant in tenants for part in tenant.slices})
        here = {(tenant.uid, tenant.container) for tenant in tenants}
        self._said = {key: fault for key, fault in self._said.items() if key in here}

    def _say(self, tenant: Tenant, fault: str) -> None:
        key = (tenant.uid, tenant.container)
        if fault and self._said.get(key) != fault:
            _LOG.warning("%s/%s, container %s: %s", tenant.namespace, tenant.pod, tenant.container, fault)
        self._said.pop(key, None)
        if fault:
            self._said[key] = fault


def _is_fresh(mirror: Mirror) -> bool:
    return abs(time.time() - mirror.written_us / 1e6) <= SILENCE_S


def _card(mirror: Mirror, number: int | None, place: int) -> MirrorCard | None:
    """The row of a card: by its number on the host; by its place while the driver does not tell the numbers."""
    if number is not None:
        return next((card for card in mirror.cards if card.number == number), None)
    return mirror.cards[place] if place < len(mirror.cards) else None


def _add_host(table: Table, chips: Chips) -> None:
    for device in chips.machine.devices if chips.machine is not None else ():
        labels = (str(device.physical), device.uuid, f"Ascend-{device.chip_name}")
        table.add(Family.HOST_HEALTHY, labels, not device.fault)
        if device.uuid in chips.usages:
            used = chips.usages[device.uuid]
            table.add(Family.HOST_MEMORY, labels, used.memory)
            table.add(Family.HOST_USED, labels, used.used)
            table.add(Family.HOST_BUSY, labels, used.busy)
