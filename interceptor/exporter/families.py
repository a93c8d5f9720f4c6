"""Every metric of the exporter: name, kind, labels and what it says. Names without ``vnpu_`` are upstream's."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.metrics_core import Metric

_CARD: Final = ("device_index", "device_uuid", "device_type")
_CONTAINER: Final = ("namespace", "pod", "container")
_SLICE: Final = (*_CONTAINER, "vdevice_index", "device_uuid")


class Family(StrEnum):
    """Names of the metrics."""

    HOST_USED = "hami_host_gpu_memory_used_bytes"
    HOST_BUSY = "hami_host_gpu_utilization_ratio"
    HOST_MEMORY = "vnpu_host_memory_bytes"
    HOST_HEALTHY = "vnpu_host_healthy"
    USED = "hami_vgpu_memory_used_bytes"
    LIMIT = "hami_vgpu_memory_limit_bytes"
    CONTEXT = "hami_vgpu_memory_context_bytes"
    MODULE = "hami_vgpu_memory_module_bytes"
    BUFFER = "hami_vgpu_memory_buffer_bytes"
    BUSY = "hami_container_device_utilization_ratio"
    ENFORCED = "vnpu_memory_enforced_bytes"
    DRIVER_USED = "vnpu_memory_driver_bytes"
    GRANTED = "vnpu_core_granted_ratio"
    ENTITLED = "vnpu_core_entitled_ratio"
    RECEIVED = "vnpu_core_received_ratio"
    HELD = "vnpu_core_held_seconds"
    DENIALS = "vnpu_memory_denials"
    WAITS = "vnpu_launch_waits"
    WAITED = "vnpu_launch_wait_seconds"
    LONGEST = "vnpu_launch_wait_longest_seconds"
    LIMITER_UP = "vnpu_limiter_up"
    GENERATION = "vnpu_limiter_generation"
    PROCESSES = "vnpu_processes"
    UNMANAGED = "vnpu_processes_unmanaged"
    SOURCE_UP = "vnpu_exporter_source_up"
    UNREADABLE = "vnpu_exporter_unreadable"


GAUGES: Final = {
    Family.HOST_USED: (_CARD, "Bytes of the card's memory that are used, as the driver counts them"),
    Family.HOST_BUSY: (_CARD, "Percent of the time of the card's AI cores, as the driver counts it"),
    Family.HOST_MEMORY: (_CARD, "Bytes of the card's memory"),
    Family.HOST_HEALTHY: (_CARD, "1 where the driver reports no fault of the card"),
    Family.USED: (_SLICE, "Bytes of the card that the container uses, the runtime's own among them"),
    Family.LIMIT: (_SLICE, "Bytes of the card that were granted to the container"),
    Family.CONTEXT: (_SLICE, "Bytes of the card that the runtime itself holds for the container, its code among them"),
    Family.MODULE: (_SLICE, "Always 0: code is booked with the runtime's own bytes"),
    Family.BUFFER: (_SLICE, "Bytes of the card that the container's programs have allocated"),
    Family.BUSY: (_SLICE, "Percent of the card's time that the container had in the last seconds"),
    Family.ENFORCED: (_SLICE, "Bytes that the container's limiter holds it to; it should be what was granted"),
    Family.DRIVER_USED: (_SLICE, "Bytes of the card that the driver counts for the container's processes"),
    Family.GRANTED: (
        _SLICE,
        "Part of the card's time that was granted to the container: 0 is none of its own",
    ),
    Family.ENTITLED: (_SLICE, "Part of the card's time that the container's weight entitles it to, from 0 to 1"),
    Family.RECEIVED: (_SLICE, "Part of the card's time that the container had in the last seconds, from 0 to 1"),
    Family.LONGEST: (_SLICE, "Longest time that one launch of the container waited for its turn"),
    Family.LIMITER_UP: (_CONTAINER, "1 while the container's limiter writes its figures"),
    Family.GENERATION: (_CONTAINER, "How often a limiter took the container over; 1 is the first"),
    Family.PROCESSES: (_CONTAINER, "Processes of the container that use an NPU"),
    Family.UNMANAGED: (_CONTAINER, "Processes of the container that use an NPU without being held to the quota"),
    Family.SOURCE_UP: (("source",), "1 while the pods, or the driver, can be read"),
    Family.UNREADABLE: (("kind",), "Pods, cards or mirrors that cannot be read now; the log says why"),
}

COUNTERS: Final = {
    Family.HELD: (_SLICE, "Time that the container held the card"),
    Family.DENIALS: (_SLICE, "Allocations that were refused since they would exceed what was granted"),
    Family.WAITS: (_SLICE, "Launches that waited for their turn"),
    Family.WAITED: (_SLICE, "Time that launches waited for their turn"),
}


class Table:
    """The values of one scrape."""

    def __init__(self) -> None:
        self._families: dict[Family, CounterMetricFamily | GaugeMetricFamily] = {}
        for name, (labels, text) in GAUGES.items():
            self._families[name] = GaugeMetricFamily(name, text, labels=labels)
        for name, (labels, text) in COUNTERS.items():
            self._families[name] = CounterMetricFamily(name, text, labels=labels)

    def add(self, name: Family, labels: tuple[str, ...], value: float) -> None:
        """A value of one metric."""
        self._families[name].add_metric(labels, value)

    def __iter__(self) -> Iterator[Metric]:
        return iter(self._families.values())
