"""The extender at 5,000 nodes of 8 cards and 20,000 pods: how soon it knows them, what that takes, how fast it answers.

The cluster is the stand-in of the API server in a process of its own (``python -m tests.bench.extender FOLDER``);
objects are as large as real ones. What is promised is absolute, so the figures are: seconds of a processor, which are
those of the clock on an idle machine and do not measure the neighbours on a busy one.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import requests

from tests.bench.figure import Figure
from tests.support import extender_process, objects
from tests.support.api_stand_in import ApiStandIn
from vnpu import names
from vnpu.admission.settings import DevicePlugin, Settings
from vnpu.annotations import ticket as tickets
from vnpu.chips import DEFAULT_CHIPS
from vnpu.fit.policy import DEFAULT_POLICY
from vnpu.kube import LEASES, NODES, PODS
from webhook.extender import engine, verbs, wire
from webhook.extender.feed import Nodes, Pods
from webhook.extender.state import State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.figure import Effort
    from tests.support.extender_process import Extender

NODE_COUNT, CARDS, POD_COUNT, NEW_PODS = 5_000, 8, 20_000, 1_000
SIZES = ((8192, 20), (4096, 5), (16384, 25), (2048, 10), (32768, 50), (6144, 15))
IMAGES = [
    {"names": [f"registry.example/library/image-{index}@sha256:{'0' * 64}"], "sizeBytes": 10**8} for index in range(50)
]
ENVIRONMENT = [{"name": f"SETTING_{index}", "value": "a value of a usual length"} for index in range(40)]
KNOWN = [f"node-{index}" for index in range(NODE_COUNT)]
TALKERS = 8
NEW_FILE = "new.json"
TICKS = os.sysconf("SC_CLK_TCK")


def process_figures(_: Effort) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder, stand_in(Path(folder)) as kubeconfig:
        settings = Path(folder) / "settings.yaml"
        settings.write_text("devicePlugin: vnpu\n")
        begun: list[float] = []
        with extender_process.running(
            *("--config", str(settings)),
            kubeconfig=kubeconfig,
            before=lambda one: begun.extend((time.monotonic(), cpu_s(one))),
        ) as extender:
            took, processor = time.monotonic() - begun[0], cpu_s(extender) - begun[1]
            note = f"of a processor; {took:.1f} s by the clock, {NODE_COUNT} nodes, {POD_COUNT} pods"
            yield Figure("extender_sync_s", processor, note)
            yield binds(extender, json.loads((Path(folder) / NEW_FILE).read_text()))
            note = "the most that the serving process ever had resident"
            yield Figure("extender_memory_mib", max(peak_mib(pid) for pid in extender.pids()), note)


def binds(extender: Extender, orders: list[Any]) -> Figure:
    """Binds of pods to nodes of their own, by several talkers at once, as kube-scheduler does it.

    The nodes were bound to before: the first turn ever on a node costs one more call, a list of its pods.
    """
    targets = random.Random(2).sample(KNOWN, len(orders))
    local = threading.local()

    def bind(place: int) -> None:
        if not hasattr(local, "session"):
            local.session = requests.Session()
            local.session.trust_env = False
        answer = local.session.post(f"{extender.url}/bind", json=orders[place] | {"node": targets[place]}, timeout=60)
        assert answer.json() == {}, answer.text

    start, before = time.monotonic(), cpu_s(extender)
    with ThreadPoolExecutor(TALKERS) as pool:
        list(pool.map(bind, range(len(orders))))
    took, processor = time.monotonic() - start, cpu_s(extender) - before
    note = (
        f"per second of a processor; {len(orders) / took:.0f}/s by the clock beside the stand-in, {TALKERS} at a time"
    )
    return Figure("extender_binds_per_s", len(orders) / processor, note)


def filter_figures(_: Effort) -> Iterator[Figure]:
    """Filters of pods that all differ, on all nodes: from the body of the request to the body of the answer."""
    settings = Settings(device_plugin=DevicePlugin.VNPU)
    state = State(DEFAULT_CHIPS, DEFAULT_POLICY)
    nodes, pods = Nodes(state), Pods(state)
    nodes.replace([nodes.reduce(stored(node(index), index)) for index in range(NODE_COUNT)])
    pods.begin()
    pods.replace(reduced for index in range(POD_COUNT) if (reduced := pods.reduce(stored(running_pod(index), index))))
    engine.set_apart()
    chance = random.Random(1)
    fitting = [waiting_pod("new", chance.randrange(1024, 30000), chance.randrange(1, 30)) for _ in range(300)]
    refused = [waiting_pod("new", chance.randrange(60000, 65536), 100, count=CARDS) for _ in range(300)]
    for name, asked, key in (
        ("extender_filter_p99_ms", fitting, "nodenames"),
        ("extender_refusal_p99_ms", refused, "failedAndUnresolvableNodes"),
    ):
        times = []
        for one in asked:
            body = json.dumps({"pod": one, "nodenames": KNOWN}).encode()
            start = time.thread_time()
            question = wire.read_question(body)
            answer = wire.filtered(
                question, verbs.filter_nodes(question.pod, question.names, state, settings, datetime.now(UTC))
            )
            times.append((time.thread_time() - start) * 1000)
            assert len(json.loads(answer)[key]) > NODE_COUNT // 2
        note = f"of a processor, median {statistics.median(times):.1f} ms; {len(asked)} pods that all differ"
        yield Figure(name, statistics.quantiles(times, n=100)[98], note)


# ---- The cluster


def node(index: int) -> Any:
    """A node as large as real ones: the images that it has are most of it."""
    name = KNOWN[index]
    cards = [
        objects.card(f"{name}-card-{place}", place, custominfo={"NetworkID": place // 4}) for place in range(CARDS)
    ]
    made = objects.node(*cards, name=name, offered=str(10 * CARDS))
    made["status"] |= {"images": IMAGES, "capacity": made["status"]["allocatable"]}
    return made


def waiting_pod(name: str, memory: int, core: int, count: int = 1) -> Any:
    container = objects.container("app", count=count, memory=memory, core=core) | {"env": ENVIRONMENT}
    return objects.pod(container, name=name, node="", phase="Pending")


def running_pod(index: int) -> Any:
    """One of four pods on a node, each of a size of its own."""
    name, place = KNOWN[index % NODE_COUNT], index // NODE_COUNT
    memory, core = SIZES[(index * 7 + place) % len(SIZES)]
    text = f"{name}-card-{(index + place * 3) % CARDS},{objects.CHIP},{memory},{core}:;"
    container = objects.container("app", count=1, memory=memory, core=core) | {"env": ENVIRONMENT}
    return objects.pod(container, name=f"pod-{index}", node=name, text=text)


def last_turn(index: int) -> Any:
    """The Lease of a node that was bound to before; whose turn it was is gone."""
    name = names.TURN_LEASE_PREFIX + KNOWN[index]
    metadata = {"name": name, "namespace": names.TURN_NAMESPACE, "labels": {names.TURN_LABEL: "true"}}
    ticket = tickets.Ticket(1, f"uid-old-{index}", "team", f"old-{index}", "mark")
    return {"kind": LEASES.kind, "metadata": metadata, "spec": {"holderIdentity": str(ticket)}}


def stored(one: Any, version: int) -> Any:
    one["metadata"] |= {"resourceVersion": str(version), "uid": f"uid-{version}"}
    return one


@contextmanager
def stand_in(folder: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "tests.bench.extender", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield str(folder / "kubeconfig")
        finally:
            process.stdin.close()


def main(folder: Path) -> None:
    """Be the cluster until standard input ends."""
    with ApiStandIn() as api:
        for index in range(NODE_COUNT):
            api.put(NODES, node(index))
            api.put(LEASES, last_turn(index))
        for index in range(POD_COUNT):
            api.put(PODS, running_pod(index))
        made = [api.put(PODS, waiting_pod(f"new-{index}", 1024, 1))["metadata"] for index in range(NEW_PODS)]
        orders = [{"podName": one["name"], "podNamespace": one["namespace"], "podUID": one["uid"]} for one in made]
        (folder / NEW_FILE).write_text(json.dumps(orders))
        api.kubeconfig(folder)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.read()


def cpu_s(extender: Extender) -> float:
    """Seconds of a processor that the extender's processes have used."""
    ticks = 0
    for pid in extender.pids():
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / TICKS


def peak_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


if __name__ == "__main__":
    main(Path(sys.argv[1]))
