"""The planner on clusters of growing size: what a pod costs, and what an extender's question costs.

Times are the processor's, so that what else the machine does stays out of them.
"""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from tests.bench.figure import Figure
from tests.support.cluster import B3, card, hard, node, pod, soft
from vnpu import names
from vnpu.fit.answers import Placement
from vnpu.fit.index import Index
from vnpu.fit.plan import Workload, plan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.figure import Effort
    from vnpu.cards import Node
    from vnpu.request import PodRequest

CURVE = (50, 500, 5_000)
"""Nodes of 8 cards; twice as many pods."""


def cluster(nodes: int) -> list[Node]:
    """Soft nodes with two groups of four cards each, as the device plugin registers them."""
    return [
        node(name, (card(index, node=name, network_id=index // 4) for index in range(8)))
        for name in (f"node-{number:04}" for number in range(nodes))
    ]


def mixed(pods: int) -> list[PodRequest]:
    """Pods of many sizes, hard and soft, some with two containers, several cards, or a policy of their own."""
    chance = random.Random(7)
    kinds = [soft(memory, core) for memory in (2048, 4096, 8192, 16384, 28672) for core in (5, 10, 20, 50)]
    kinds += [soft(8192, 20, count=2), soft(65536, 100), soft(65536, 100, count=4), soft(65536, 100, count=8)]
    kinds += [hard("vir05_1c_16g"), hard("vir10_3c_32g"), hard(), hard(count=2)]
    found = []
    for number in range(pods):
        wanted = [chance.choice(kinds)]
        if wanted[0].memory_mib < 16384 and chance.random() < 0.2:
            wanted.append(soft(chance.randrange(1024, 4096), 5))
        annotations = {names.NODE_POLICY: "spread"} if chance.random() < 0.1 else {}
        found.append(pod(*wanted, name=f"pod-{number}", annotations=annotations))
    return found


def curve_figures(_: Effort) -> Iterator[Figure]:
    """Time for each pod on 400, 4,000 and 40,000 cards."""
    costs = {}
    for nodes in CURVE:
        there, pods = cluster(nodes), mixed(2 * nodes)
        begun = time.process_time()
        found = plan([Workload((one,)) for one in pods], there, {})
        costs[nodes] = (time.process_time() - begun) / len(pods)
        assert len(found.placements) > 0.9 * len(pods)
    told = ", ".join(f"{8 * nodes} cards {1e6 * cost:.0f} us" for nodes, cost in costs.items())
    yield Figure("plan_40000_to_400_cards", costs[5_000] / costs[50], f"a pod costs on {told}")
    yield Figure("plan_10000_pods_s", costs[5_000] * 10_000, "seconds of the processor for 10,000 pods on 5,000 nodes")


def memory_figure(_: Effort) -> Iterator[Figure]:
    """Memory of a process that plans the largest case."""
    code = "from tests.bench.planning import largest; largest()"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    yield Figure("plan_10000_pods_mib", float(done.stdout), "MiB of the process that plans 10,000 pods on 5,000 nodes")


def largest() -> None:
    """Plans the largest case and prints the memory that it took, in MiB."""
    plan([Workload((one,)) for one in mixed(10_000)], cluster(5_000), {})
    sys.stdout.write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


def filter_figures(_: Effort) -> Iterator[Figure]:
    """A question about 5,000 candidates that all differ: of a pod never seen, and of one seen before a change."""
    chance = random.Random(3)
    index = Index(cluster(5_000))
    for number, one in enumerate(list(index.nodes)):
        for _ in range(4):
            wanted = soft(chance.randrange(1024, 30000), chance.randrange(40))
            placed = index.on(pod(wanted, name=f"held-{number}"), one.name)
            if isinstance(placed, Placement):
                index.hold(placed)
    known = [one.name for one in index.nodes]
    fresh, warm = [], []
    for _ in range(100):
        request = pod(soft(chance.randrange(1024, B3.memory_allocatable_mib), chance.randrange(100)))
        fresh.append(_filtered(index, request, known))
        placed = index.place(request)
        if isinstance(placed, Placement):
            index.hold(placed)
        warm.append(_filtered(index, request, known))
    fresh.sort()
    warm.sort()
    note = "of 100 pods, ms to filter 5,000 nodes that all differ"
    yield Figure("filter_fresh_p99_ms", 1000 * fresh[98], f"{note}; median {1000 * fresh[50]:.1f}")
    yield Figure("filter_warm_p99_ms", 1000 * warm[98], f"{note}, asked again; median {1000 * warm[50]:.1f}")


def _filtered(index: Index, request: PodRequest, known: list[str]) -> float:
    begun = time.process_time()
    found = index.feasible(request, known)
    spent = time.process_time() - begun
    assert len(found.fits) + len(found.refused) == len(known)
    return spent
