"""How containers share a card, and how soon the others go on when one fails. The card itself tells who got what.

Shares are percent of what the card did for all of them: a machine that is busy with other things leaves the card idle
now and then, which is nobody's unfairness. How busy the card was is told beside them.
"""

from __future__ import annotations

import random
import signal
import statistics
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from interceptor import region
from tests.bench.figure import Figure
from tests.support import shares as sharing
from tests.support.npu_client import Machine
from tests.support.shares import Load

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator, Sequence

    from tests.bench.figure import Effort

SETTLE_S = 1.0
FAILURES = 5
INTO_TURN_S = 0.005


class Case(NamedTuple):
    """Containers by priority and what their processes do, and the percent that each should get."""

    loads: Sequence[tuple[str | None, tuple[str, ...]]]
    wanted: Sequence[float]


CASES = {
    "20_40": Case([("20", ("1000",)), ("40", ("1000",))], [100 / 3, 200 / 3]),
    "10_90": Case([("10", ("1000",)), ("90", ("1000",))], [10, 90]),
    "50_50": Case([("50", ("1000",)), ("50", ("1000",))], [50, 50]),
    "4_x_25": Case([("25", ("1000",))] * 4, [25] * 4),
    "none_beside_60": Case([(None, ("1000",)), ("60", ("1000",))], [40, 60]),
    "3_processes": Case([("50", ("1000",) * 3), ("50", ("1000",))], [50, 50]),
    "50us_20ms": Case([("50", ("50",)), ("50", ("20000",))], [50, 50]),
    "50us_200ms": Case([("50", ("50",)), ("50", ("200000",))], [50, 50]),
}
"""By name; kernels in microseconds."""


def share_figures(name: str, effort: Effort) -> Iterator[Figure]:
    """The largest error of a case; for some, what its launches and helpers cost too."""
    case = CASES[name]
    loads = [Load(priority, arguments) for priority, arguments in case.loads]
    with _card(loads) as machine:
        _begin(loads)
        helpers = _helper_s(loads)
        got = sharing.shares(machine, len(loads), effort.seconds)
        helpers = [late - early for early, late in zip(helpers, _helper_s(loads), strict=True)]
        longest_ms = max(longest for load in loads for _, longest in load.end()) / 1000
    error = max(abs(100 * part / sum(got) - want) for part, want in zip(got, case.wanted, strict=True))
    told = " / ".join(f"{part:.1f}" for part in got)
    yield Figure(
        f"share_{name}", error, f"{told} % of the card, busy {sum(got):.1f} %, longest wait {longest_ms:.0f} ms"
    )
    if name == "20_40":
        yield Figure("shared_busy_percent", sum(got), "of the card, at 20 and 40")
        percent = 100 * max(helpers) / effort.seconds
        yield Figure("helper_cpu_percent", percent, "of a processor, the helper that took most at 20 and 40")
    if name == "10_90":
        yield Figure("longest_wait_ms_10_90", longest_ms, "for a launch")


def lone_figures(effort: Effort) -> Iterator[Figure]:
    loads = [Load("20", ("1000",))]
    with _card(loads) as machine:
        assert loads[0].container is not None
        pids = loads[0].container.pids()
        before = sum(map(_processor_s, pids))
        time.sleep(effort.seconds / 2)
        idle = (sum(map(_processor_s, pids)) - before) / (effort.seconds / 2)
        _begin(loads)
        (busy,) = sharing.shares(machine, 1, effort.seconds)
        loads[0].end()
    yield Figure("limiter_idle_cpu_percent", 100 * idle, "of a processor, limiter and guardian")
    yield Figure("lone_busy_percent", busy, "of the card, one container in shared mode")


def sync_loop_figure(effort: Effort) -> Iterator[Figure]:
    """A loop that waits for each of its kernels against one that queues them: both hold the card for as long."""
    loads = [Load("50", ("1000 sync",)), Load("50", ("1000",))]
    with _card(loads) as machine:
        _begin(loads)
        before = _held_us(loads)
        loop, queue = sharing.shares(machine, 2, effort.seconds)
        held = [late - early for early, late in zip(before, _held_us(loads), strict=True)]
    error = abs(100 * held[0] / sum(held) - 50)
    told = f"of the time that both held the card; it worked {loop:.1f} / {queue:.1f} %, less by the loop's own gaps"
    yield Figure("share_sync_loop", error, told)


def _held_us(loads: list[Load]) -> list[int]:
    """How long each container held card 0, as its tenant in the registry says."""
    held = []
    for load in loads:
        assert load.container is not None
        index = load.container.read().cards[0].tenant
        tenants = region.read_registry(load.container.registry_path()).tenants
        held += [tenant.held_us for tenant in tenants if tenant.index == index]
    return held


def pause_figure(effort: Effort) -> Iterator[Figure]:
    """A container that was stopped for a while, in the seconds after it comes back."""
    loads = [Load("50", ("1000",)), Load("50", ("1000",))]
    with _card(loads) as machine:
        _begin(loads)
        loads[0].processes[0].send_signal(signal.SIGSTOP)
        _, alone = sharing.shares(machine, 2, effort.seconds / 3)
        loads[0].processes[0].send_signal(signal.SIGCONT)
        got = sharing.shares(machine, 2, effort.seconds / 3)
    error = abs(100 * got[0] / sum(got) - 50)
    note = f"{got[0]:.1f} / {got[1]:.1f} % after the pause; during it the other had {alone:.1f} %"
    yield Figure("share_after_pause", error, note)


def collectives_figure(effort: Effort) -> Iterator[Figure]:
    """Two containers, each with kernels that need both cards at once."""
    loads = [Load("50", ("1000 cards 2",), devices="0,1") for _ in range(2)]
    with _card(loads, "cards=2") as machine:
        _begin(loads)
        got = sharing.shares(machine, 2, effort.seconds)
    error = abs(100 * got[0] / sum(got) - 50)
    yield Figure("share_collectives", error, f"{got[0]:.1f} / {got[1]:.1f} % of the first of two cards")


def soak_figure(effort: Effort) -> Iterator[Figure]:
    """Shares after a while of random deaths and stops, among four containers of two processes each."""
    loads = [Load("25", ("1000", "1000")) for _ in range(4)]
    seed = random.randrange(1 << 30)
    with _card(loads) as machine, ExitStack() as newborn:
        _begin(loads)
        begun, before = sharing.busy_ns(machine, 4)
        events = _strike(loads, machine, newborn, random.Random(seed), effort.seconds)
        ended, after = sharing.busy_ns(machine, 4)
        time.sleep(SETTLE_S)
        got = sharing.shares(machine, 4, effort.seconds / 2)
    busy = 100 * (sum(after) - sum(before)) / (ended - begun)
    error = max(abs(100 * part / sum(got) - 25) for part in got)
    told = f"{events} deaths and stops with seed {seed}, the card busy {busy:.0f} % meanwhile, {sum(got):.1f} % after"
    yield Figure("share_after_soak", error, told)


def _strike(loads: list[Load], machine: Machine, newborn: ExitStack, chance: random.Random, seconds: float) -> int:
    """Kills, and replaces, or stops for a moment one process after the other; answers how often."""
    events = 0
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        place, which = chance.randrange(len(loads)), chance.randrange(2)
        load = loads[place]
        victim = load.processes[which]
        if chance.random() < 0.5:
            victim.send_signal(signal.SIGSTOP)
            time.sleep(chance.uniform(0.05, 0.3))
            victim.send_signal(signal.SIGCONT)
        else:
            victim.kill()
            child = sharing.born(machine, load, place, load.arguments[which])
            newborn.callback(sharing.end, child)
            load.processes[which] = child
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        events += 1
        time.sleep(chance.uniform(0.15, 0.4))
    return events


def ceiling_figure(effort: Effort) -> Iterator[Figure]:
    loads = [Load("20", ("1000",), ceiling=True)]
    with _card(loads) as machine:
        _begin(loads)
        (got,) = sharing.shares(machine, 1, effort.seconds)
    yield Figure("ceiling_alone_percent", got, "of the card, asked for 20")


def recovery_figures(_: Effort) -> Iterator[Figure]:
    """The only process of a container is killed or stopped, 5 ms into its turn."""
    for name, number in (("kill", signal.SIGKILL), ("stop", signal.SIGSTOP)):
        times = sorted(_recovery_ms(number) for _ in range(FAILURES))
        told = ", ".join(f"{time_ms:.0f}" for time_ms in times)
        yield Figure(f"recovery_{name}_ms", statistics.median(times), f"until the other's kernels run: {told}")


def _recovery_ms(number: signal.Signals) -> float:
    loads = [Load("50", ("1000",)), Load("50", ("1000",))]
    with _card(loads) as machine:
        _begin(loads)
        victim = loads[0].processes[0]
        _wait_for_turn(loads[0])
        victim.send_signal(number)
        failed = time.monotonic_ns()
        now, (_, before) = sharing.busy_ns(machine, 2)
        after = before
        while after == before:
            now, (_, after) = sharing.busy_ns(machine, 2)
        # Whoever has just begun works without a break: so its first kernel began as long ago as it worked.
        return (now - (after - before) - failed) / 1e6


def _wait_for_turn(load: Load) -> None:
    """Until a turn of the container is 5 ms old."""
    assert load.container is not None
    tenant = load.container.read().cards[0].tenant
    path = load.container.registry_path()
    while region.read_registry(path).holder == tenant:
        pass
    while region.read_registry(path).holder != tenant:
        pass
    time.sleep(INTO_TURN_S)


@contextmanager
def _card(loads: list[Load], *knobs: str) -> Iterator[Machine]:
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder) / "npu")
        machine.tool("create", *knobs)
        with sharing.sharing(machine, Path(folder), loads):
            yield machine


def _begin(loads: list[Load]) -> None:
    for load in loads:
        load.go()
    time.sleep(SETTLE_S)


def _helper_s(loads: list[Load]) -> list[float]:
    """Processor time of the helper thread of each process."""
    return [_thread_s(process) for load in loads for process in load.processes]


def _thread_s(process: subprocess.Popen[str]) -> float:
    tasks = Path(f"/proc/{process.pid}/task").iterdir()
    return sum(_schedule_s(task) for task in tasks if (task / "comm").read_text() == "vnpu-helper\n")


def _processor_s(pid: int) -> float:
    return sum(map(_schedule_s, Path(f"/proc/{pid}/task").iterdir()))


def _schedule_s(task: Path) -> float:
    return int((task / "schedstat").read_text().split()[0]) / 1e9
