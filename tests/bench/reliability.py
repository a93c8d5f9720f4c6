"""The webhook's server when everything around it changes: certificates, instances, clients that misbehave."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.figure import Figure
from tests.support.mounts import NAME, Mount
from tests.support.server import Server, running
from tests.support.slow_clients import dripping, silent
from tests.support.switch import Switch, is_ready
from tests.support.traffic import post, traffic, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.figure import Effort

HERE = Path(__file__).parent
POD = HERE.parent / "fixtures" / "admission" / "mutate-create-pods-finetune-0.json"
MESSAGE = post(POD.read_bytes())
CALLS = 10_000
ROTATIONS = 20
CROWD = 400


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def rotation_figures(_: Effort) -> Iterator[Figure]:
    with folder() as temporary:
        mount = Mount(temporary)
        with (
            running(*mount.options, "--workers", "2", temporary=temporary, ca=mount.bundle) as server,
            traffic(server.address, mount.trust, MESSAGE, kept=2, new=2, name=NAME) as calls,
        ):
            for number in range(ROTATIONS):
                change = (mount.swap, mount.rename, mount.write)[number % 3]
                change(mount.next(new_ca=number % 2 == 0))
                # The bundle forgets the CA before last: whoever publishes one waits until nobody serves under it.
                wait_until(lambda: calls.meet_only(mount.leaf()), "the new certificate")
            wait_until(lambda: calls.number >= CALLS, "enough calls", 600)
    note = f"{calls.number} calls, {ROTATIONS} pairs and {ROTATIONS // 2} CAs; {' '.join(sorted(set(calls.failures)))}"
    yield Figure("rotation_failed", len(calls.failures) + sum(calls.statuses.values()) - calls.statuses[200], note)


def restart_figures(_: Effort) -> Iterator[Figure]:
    with folder() as temporary, ExitStack() as stack:
        mount = Mount(temporary)

        def start() -> Server:
            arguments = (*mount.options, "--drain-seconds", "2")
            return stack.enter_context(running(*arguments, temporary=temporary, ca=mount.bundle))

        servers = [start(), start()]
        switch = stack.enter_context(Switch(lambda: [each.address for each in tuple(servers) if is_ready(each)]))
        restarts = 0
        with traffic(switch.address, mount.trust, MESSAGE, kept=2, new=2, name=NAME) as calls:
            while restarts < 2 or calls.number < CALLS:
                servers.append(start())
                old = servers[0]
                old.process.terminate()
                old.process.wait()
                servers.remove(old)
                restarts += 1
    note = f"{calls.number} calls, {restarts} restarts; {' '.join(sorted(set(calls.failures)))}"
    yield Figure("restart_failed", len(calls.failures) + sum(calls.statuses.values()) - calls.statuses[200], note)


def slow_figures(effort: Effort) -> Iterator[Figure]:
    with folder() as temporary, running(temporary=temporary) as server:
        context = server.trust()

        def late() -> float:
            with traffic(server.address, lambda: context, MESSAGE, kept=1, new=1, pause_s=0.002) as calls:
                time.sleep(effort.seconds)
            assert not calls.failures
            return calls.percentile(0.99) * 1000

        quiet = late()
        with silent(server, 500), dripping(server, 17, 17, 16, every_s=1):
            crowded = late()
    yield Figure("slow_clients_p99_extra_ms", crowded - quiet, f"p99 {crowded:.1f} ms beside {quiet:.1f} ms when quiet")


def overload_figures(effort: Effort) -> Iterator[Figure]:
    with folder() as temporary, running(temporary=temporary) as server:
        (worker,) = server.workers()
        before = memory(worker, "Rss")
        alone = storm(server, 8, 2)
        found = storm(server, CROWD, effort.seconds)
        after = memory(worker, "Rss")
        again = storm(server, 1, 1)
    note = (
        f"{CROWD} connections that always ask, 2 that knock; 8 keep the worker busy, {alone['asked']:.0f} ms at worst; "
        f"answers {found['statuses']}, knocks answered {found.get('answered', 0)}, closed {found.get('closed', 0)}"
    )
    yield Figure("overload_longest_ms", max(found["asked"], found["knocked"]), note)
    yield Figure("overload_memory_mib", after - before, f"{before:.0f} MiB before")
    yield Figure("overload_longest_ms_after", again["asked"], f"answers {again['statuses']}")


def storm(server: Server, connections: int, seconds: float) -> dict[str, float]:
    command = [HERE / "storm.py", f"{server.url}/mutate", server.ready["ca"], POD, connections, seconds]
    done = subprocess.run([sys.executable, *map(str, command)], check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def start_figures(_: Effort) -> Iterator[Figure]:
    took, sizes = [], []
    with folder() as temporary:
        mount = Mount(temporary)
        for _ in range(5):
            start = time.perf_counter()
            with running(*mount.options, "--workers", "2", temporary=temporary, ca=mount.bundle) as server:
                took.append(time.perf_counter() - start)
                with traffic(server.address, mount.trust, MESSAGE, kept=4, new=0, name=NAME) as calls:
                    wait_until(lambda: calls.number > 500, "some calls")
                sizes.append(sum(memory(pid, "Pss") for pid in (server.process.pid, *server.workers())))
    yield Figure("ready_s", min(took), f"two workers; the fastest of {len(took)} starts")
    yield Figure("two_workers_mib", max(sizes), "proportional set size of master and two workers after some reviews")


def memory(pid: int, what: str) -> float:
    """MiB that a process holds: Rss, or Pss where what several share is divided among them."""
    found = re.search(rf"^{what}:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) / 1024
