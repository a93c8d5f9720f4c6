"""The node parts: what a scrape costs."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interceptor.devices import Usage
from tests.bench.figure import Figure
from tests.support.exporter import Exporter
from tests.support.mirrors import MIB, write_mirror
from tests.support.objects import CHIP, pod

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.figure import Effort

CONTAINERS = 200


def scrape_figure(effort: Effort) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        exporter = Exporter(Path(folder) / "host")
        pods: list[dict[str, Any]] = [
            pod(name=f"app-{index}", text=f"U{index % 2},{CHIP},512,1:;") for index in range(CONTAINERS)
        ]
        exporter.put(*pods)
        exporter.library.usages[0] = Usage(65536 * MIB, 0, 0, {})
        taken = [_scrape_s(exporter, pods) for _ in range(effort.rounds)]
    median, longest = statistics.median(taken) * 1e3, max(taken) * 1e3
    yield Figure(
        "scrape_ms",
        median,
        f"ms of a processor for {CONTAINERS} containers, the longest of {len(taken)}: {longest:.0f}",
    )


def _scrape_s(exporter: Exporter, pods: list[dict[str, Any]]) -> float:
    for index, one in enumerate(pods):
        write_mirror(exporter.mirror(one["metadata"]["uid"]), {"id": index % 2, "used": MIB, "held_us": 1000})
    start = time.process_time()
    text = exporter.text()
    taken = time.process_time() - start
    assert text.count("vnpu_limiter_up{") == CONTAINERS
    assert text.count("hami_vgpu_memory_used_bytes{") == CONTAINERS
    return taken
