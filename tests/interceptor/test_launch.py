"""Launches: each goes through the gate once, captures do not, and nobody waits for the dead."""

from __future__ import annotations

import re
import signal
import time
from typing import TYPE_CHECKING

import pytest

from tests.support import native, simulated_npu
from tests.support.containers import Container, eventually, freeze, kill
from tests.support.npu_client import NOT_SUPPORTED, Machine, client

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DENIED = 507899


def launches() -> list[str]:
    text = (native.TOP / "interceptor" / "src" / "hooks.def").read_text()
    return re.findall(r"^VNPU_LAUNCH\(\w+, (\w+)", text, re.MULTILINE)


@pytest.fixture(params=["nested", "fused"])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    return Machine(tmp_path / "npu", request.param)


@pytest.fixture
def kept(container: Container) -> Iterator[Container]:
    with container.running():
        yield container


@pytest.mark.parametrize("way", ["linked", "local"])
def test_every_way_to_launch_takes_the_turn(kept: Container, machine: Machine, way: str) -> None:
    for name in launches():
        with client(kept, machine, way=way) as npu:
            assert not kept.has_work(npu.process.pid)
            # No arguments: the gate is in front of the real call, which then refuses them.
            assert npu.call(name, 0, 0, 0, 0, 0, 0, 0, 0) not in {None, NOT_SUPPORTED}, name
            assert kept.has_work(npu.process.pid), name
            assert kept.holder() == kept.read().cards[0].tenant


def test_sizes_that_come_by_value_arrive(kept: Container, tmp_path: Path) -> None:
    """Each dimension of the grid and of the block: the simulated NPU refuses one that is 0."""
    machine = simulated_npu.Machine(tmp_path / "npu")
    good = (2 << 32 | 3, 4, 5 << 32 | 6, 7)
    with machine.client(preload=str(native.library()), **kept.env) as npu:
        npu.do("aclrtBinaryLoadFromData", "'binary", 6, 0, "&b")
        npu.do("aclrtBinaryGetFunction", "b", "'function_1us", "&f")
        for name in ("aclrtLaunchSIMTKernelWithHostArgs", "rtLaunchSIMTKernelWithArgsArray"):
            npu.do(name, "f", *good, 0, 0, 0, 0, 0, 0, 0)
            for place, size in enumerate(good):
                for mask in (0xFFFFFFFF, ~0xFFFFFFFF) if place in {0, 2} else (0xFFFFFFFF,):
                    bad = [*good[:place], size & ~mask, *good[place + 1 :]]
                    assert npu.call(name, "f", *bad, 0, 0, 0, 0, 0, 0, 0).code == simulated_npu.PARAM_INVALID
        npu.do("aclrtSynchronizeDevice")
    assert machine.card()["kernels"] == 2


def test_a_launch_reaches_the_card(kept: Container, machine: Machine) -> None:
    with client(kept, machine) as npu:
        npu.kernel(100)
        for _ in range(20):
            assert npu.launch() == 0
        assert npu.call("aclrtSynchronizeDevice") == 0
        assert machine.status()["cards"][0]["kernels"] == 20


@pytest.mark.parametrize(
    "words",
    [
        "aclmdlExecute $m 0 0",
        "aclmdlExecuteV2 $m 0 0 0 0",
        "aclmdlExecuteAsync $m 0 0 0",
        "aclmdlExecuteAsyncV2 $m 0 0 0 0",
    ],
)
def test_a_whole_model_is_one_launch(kept: Container, machine: Machine, words: str) -> None:
    with client(kept, machine) as npu:
        npu.kernel(100)
        assert npu.call("aclmdlLoadFromMem", "@k", 32, "&m") == 0
        assert not kept.has_work(npu.process.pid)
        assert npu.call(*words.split()) == 0
        assert kept.has_work(npu.process.pid)
        assert npu.call("aclrtSynchronizeDevice") == 0
        assert machine.status()["cards"][0]["busy_ns"] == 100_000


def test_a_capture_waits_for_nothing_and_a_replay_for_the_turn(kept: Container, machine: Machine) -> None:
    with client(kept, machine) as npu:
        npu.kernel(100)
        assert npu.call("aclrtCreateStream", "&s") == 0
        assert npu.call("rtStreamBeginCapture", "$s", 0) == 0
        for _ in range(40):
            assert npu.launch("$s") == 0
        assert kept.read().cards[0].waits == 0, "what is recorded does not run"
        assert npu.call("rtStreamEndCapture", "$s", "&g") == 0
        assert npu.call("aclmdlRIExecuteAsync", "$g", "$s") == 0
        assert kept.holder() == kept.read().cards[0].tenant
        assert npu.call("aclrtSynchronizeStream", "$s") == 0
        assert machine.status()["cards"][0]["busy_ns"] >= 40 * 100_000


def test_streams_come_and_go(kept: Container, machine: Machine) -> None:
    with client(kept, machine, NPU_SIM_EVENT_LIMIT="64") as npu:
        npu.kernel(10)
        for _ in range(40):
            assert npu.call("aclrtCreateStream", "&s") == 0
            for _ in range(3):
                assert npu.launch("$s") == 0
            assert npu.call("aclrtSynchronizeStream", "$s") == 0
            assert npu.call("aclrtDestroyStream", "$s") == 0


def test_threads_launch_side_by_side(kept: Container, machine: Machine) -> None:
    with client(kept, machine) as npu:
        npu.kernel(10)
        assert npu.call("aclrtCreateStream", "&s") == 0
        assert npu.ask("burst 200 rtKernelLaunch 0 1 @k 32 0 $s") == "400"
        assert npu.call("aclrtSynchronizeStream", "$s") == 0
        assert machine.status()["cards"][0]["kernels"] == 400


def test_an_idle_holder_gives_way_at_once(kept: Container, neighbour: Container, machine: Machine) -> None:
    with neighbour.running(), client(kept, machine) as npu, client(neighbour, machine) as other:
        for one in (npu, other):
            one.kernel(10)
        assert npu.launch() == 0
        assert npu.call("aclrtSynchronizeDevice") == 0
        assert other.launch() == 0
        assert kept.holder() == neighbour.read().cards[0].tenant


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_others_go_on_when_a_holder_is_killed_or_stopped(
    kept: Container, neighbour: Container, machine: Machine, number: signal.Signals
) -> None:
    with neighbour.running(), client(kept, machine) as npu, client(neighbour, machine) as other:
        for one in (npu, other):
            one.kernel(1000)
        assert npu.launch() == 0
        kill(npu.process.pid, number)
        before = time.monotonic()
        assert other.launch() == 0
        assert time.monotonic() - before < 1
        if number == signal.SIGSTOP:
            kill(npu.process.pid, signal.SIGCONT)
            assert npu.launch() == 0


def test_launches_wait_for_a_limiter_that_died_and_then_fail(container: Container, machine: Machine) -> None:
    with (
        container.running(),
        client(container, machine, library=native.library_with_faults(), VNPU_TEST_GONE_MS="1500") as npu,
    ):
        npu.kernel(10)
        assert npu.launch() == 0
        limiter, guardian = container.pids()
        kill(guardian, signal.SIGSTOP)
        kill(limiter)
        kill(guardian)
        assert eventually(lambda: npu.launch() == DENIED)
        assert container.limiter("start").returncode == 0
        assert eventually(lambda: npu.launch() == 0)


def test_a_limiter_that_comes_back_is_hardly_noticed(container: Container, machine: Machine) -> None:
    with container.running(), client(container, machine) as npu:
        npu.kernel(10)
        for _ in range(3):
            generation = container.read().generation
            kill(container.pids()[0])
            assert eventually(lambda before=generation: container.read().generation > before)
            assert npu.launch() == 0


def test_launches_go_on_as_soon_as_a_limiter_is_back(container: Container, machine: Machine) -> None:
    with container.running(), client(container, machine) as npu:
        npu.kernel(10)
        for _ in range(2):
            limiter, guardian = container.pids()
            freeze(guardian)
            kill(limiter)
            npu.start_launch()
            while npu.answers(within_s=0.3):
                assert npu.answer() == "0"
                npu.start_launch()
            kill(guardian, signal.SIGCONT)
            assert eventually(lambda dead=limiter: container.pids()[0] != dead)
            before = time.monotonic()
            assert npu.answer() == "0"
            assert time.monotonic() - before < 0.5


@pytest.mark.parametrize("point", ["handed-over", "closed", "passing"])
@pytest.mark.parametrize("action", ["kill", "stop"])
def test_a_death_in_the_middle_of_a_change_of_turns(
    kept: Container, neighbour: Container, machine: Machine, point: str, action: str
) -> None:
    with (
        neighbour.running(),
        client(kept, machine, library=native.library_with_faults(), VNPU_FAULT=f"{point}:{action}:2") as npu,
        client(neighbour, machine) as other,
    ):
        npu.kernel(500)
        other.kernel(500)
        assert npu.process.stdin is not None
        npu.process.stdin.write("burst 300 rtKernelLaunch 0 1 @k 32 0 0\n")
        npu.process.stdin.flush()
        longest = 0.0
        for _ in range(150):
            before = time.monotonic()
            assert other.launch() == 0
            longest = max(longest, time.monotonic() - before)
        assert longest < 2
