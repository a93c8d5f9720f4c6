"""Processes that are killed, stopped, forked: the books stay right and the others go on."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.containers import eventually
from tests.support.simulated_npu import MIB, Machine, flag

SLOTS = 512
NO_TRACE = 77


def program(machine: Machine, *arguments: str) -> subprocess.Popen[str]:
    """A program of the simulator's own, under the first wiring: it uses the driver alone."""
    machine.wiring = "nested"
    command = [str(machine.folder / arguments[0]), *arguments[1:]]
    return subprocess.Popen(command, env=machine.environment(), stdout=subprocess.PIPE, text=True)


def consistent(status: dict[str, Any]) -> bool:
    """Does what the tags hold and had sum up to what the card says?"""
    card = status["cards"][0]
    on_card = [tag["cards"][0] for tag in status["tags"]]
    held = sum(tag["app"] + tag["overhead"] for tag in on_card)
    return (held, sum(tag["busy_ns"] for tag in on_card)) == (card["used"], card["busy_ns"])


def test_the_memory_of_a_killed_process_is_free(wired: Machine) -> None:
    with wired.client(NPU_SIM_TAG="other") as other:
        with wired.client(NPU_SIM_TAG="killed") as killed:
            killed.do("halMemAlloc", "&p", 900 * MIB, flag())
            assert other.call("halMemAlloc", "&p", 600 * MIB, flag()).code == 6
        assert wired.card()["used"] == 0
        other.do("halMemAlloc", "&p", 1024 * MIB, flag())
        assert (wired.tag("killed")["app"], wired.tag("killed")["peak"]) == (0, 900 * MIB)
        assert [process["tag"] for process in wired.status()["processes"]] == ["other"]


def test_the_memory_of_an_ended_process_is_free(wired: Machine) -> None:
    client = wired.client()
    client.do("halMemAlloc", "&p", 900 * MIB, flag())
    assert client.end() == 0
    assert wired.card()["used"] == 0
    client.kill()


def test_a_stopped_process_keeps_its_memory_and_blocks_nobody(wired: Machine) -> None:
    with wired.client() as stopped, wired.client() as other:
        stopped.do("halMemAlloc", "&p", 600 * MIB, flag())
        stopped.signal(signal.SIGSTOP)
        assert other.call("halMemAlloc", "&p", 600 * MIB, flag()).code == 6
        other.do("halMemAlloc", "&p", 400 * MIB, flag())
        assert wired.card()["used"] == 1000 * MIB


@pytest.mark.parametrize("how", ["fork", "clone"])
def test_a_child_owns_nothing_of_its_parents(wired: Machine, how: str) -> None:
    with wired.client() as parent:
        parent.do("halMemAlloc", "&p", 600 * MIB, flag())
        assert parent.call("halMemFree", "p", how=how).code == 3
        assert parent.call("halMemAlloc", "&q", 600 * MIB, flag(), how=how).code == 6
        parent.do("halMemAlloc", "&q", 300 * MIB, flag(), how=how)
        assert wired.card()["used"] == 600 * MIB
        parent.do("halMemFree", "p")
        assert wired.card()["used"] == 0


def test_a_parent_that_is_killed_leaves_nothing_to_its_child(wired: Machine) -> None:
    with wired.client() as parent:
        parent.do("halMemAlloc", "&p", 600 * MIB, flag())
        parent.kernel("k", 60_000_000)
        parent.launch("k")
        parent.start("fork pause")
        assert eventually(lambda: children(parent.process.pid) != [])
        (child,) = children(parent.process.pid)
    try:
        assert wired.card()["used"] == 0
        os.kill(child, 0)
    finally:
        os.kill(child, signal.SIGKILL)


def children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(child) for child in text.split()]


def test_threads_of_a_process_hold_memory_together(wired: Machine) -> None:
    with wired.client() as client:
        client.do("halMemAlloc", "&p", 8 * MIB, flag(), how="thread")
        client.do("halMemAlloc", "&q", 8 * MIB, flag(), how="thread")
        (process,) = wired.status()["processes"]
        assert process["cards"][0]["app"] == 16 * MIB


@pytest.mark.parametrize(
    ("operation", "stride"), [("allocate", 13), ("release", 13), ("submit", 3), ("look", 211), ("open", 307)]
)
def test_no_instruction_is_one_at_which_a_process_may_not_stop_or_die(
    machine: Machine, operation: str, stride: int
) -> None:
    stepper = program(machine, "npu-stepper", operation, str(stride))
    output, _ = stepper.communicate()
    if stepper.returncode == NO_TRACE:
        pytest.skip("processes cannot be traced here")
    assert stepper.returncode == 0, output
    assert int(output) > 10


def test_torture(machine: Machine) -> None:
    machine.tool("set", "memory_mib=256")
    seed = random.SystemRandom().randrange(1 << 16)
    torture = program(machine, "npu-torture", "3", "12", str(seed))
    while torture.poll() is None:
        assert consistent(machine.status()), seed
    output, _ = torture.communicate()
    assert torture.returncode == 0, seed
    assert float(output) < 1000, seed
    status = machine.status()
    assert consistent(status), seed
    assert (status["cards"][0]["used"], status["processes"]) == (0, []), seed
    assert status["cards"][0]["peak"] <= 256 * MIB, seed


def test_a_crowd_fits_and_slots_run_out_cleanly(machine: Machine) -> None:
    children = f"""
import os, sys
from cffi import FFI
ffi = FFI()
ffi.cdef("int halMemAlloc(void **pointer, unsigned long long size, unsigned long long flag);")
driver = ffi.dlopen("{machine.folder}/libascend_hal.so")
pointer = ffi.new("void **")
ready, go = os.pipe(), os.pipe()
for _ in range({SLOTS}):
    if os.fork() == 0:
        os.close(go[1])
        code = driver.halMemAlloc(pointer, 4096, {flag()})
        os.write(ready[1], bytes([code]))
        os.read(go[0], 1)
        os._exit(0)
codes = b""
while len(codes) < {SLOTS}:
    codes += os.read(ready[0], {SLOTS})
print(len(codes), sum(codes), flush=True)
print(driver.halMemAlloc(pointer, 4096, {flag()}), flush=True)
sys.stdin.read()
os.close(go[1])
"""
    crowd = subprocess.Popen(
        [sys.executable, "-c", children],
        env=machine.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert crowd.stdout is not None
    assert crowd.stdout.readline() == f"{SLOTS} 0\n"
    assert crowd.stdout.readline() == "1\n"
    status = machine.status()
    assert (len(status["processes"]), status["cards"][0]["used"]) == (SLOTS, SLOTS * 4096)
    crowd.communicate("")
    assert eventually(lambda: machine.card()["used"] == 0)
    with machine.client() as client:
        client.do("halMemAlloc", "&p", 1024 * MIB, flag())


def test_promises_are_judged(wired: Machine) -> None:
    wired.tool("expect", "a", "100")
    with wired.client(NPU_SIM_TAG="a") as first, wired.client(NPU_SIM_TAG="a") as second:
        first.do("halMemAlloc", "&p", 60 * MIB, flag())
        second.do("halMemAlloc", "&p", 40 * MIB, flag())
        assert wired.tag("a")["excesses"] == 0
        second.do("halMemAlloc", "&q", 4096, flag())
        assert (wired.tag("a")["excesses"], wired.tag("a")["peak"]) == (1, 100 * MIB + 4096)


def test_the_killed_are_not_held_against_their_container(wired: Machine) -> None:
    """Also while some of their threads have not ended yet, which a stopped one has not."""
    wired.tool("expect", "a", "100")
    with wired.client(NPU_SIM_TAG="a") as second:
        for _ in range(30):
            with wired.client(NPU_SIM_TAG="a") as first:
                first.do("halMemAlloc", "&p", 90 * MIB, flag())
                first.process.kill()
                second.do("halMemAlloc", "&p", 90 * MIB, flag())
            second.do("halMemFree", "p")
        assert wired.tag("a")["excesses"] == 0


def test_the_overhead_of_the_runtime_breaks_no_promise_by_itself(wired: Machine) -> None:
    wired.tool("expect", "a", "10")
    with wired.client(NPU_SIM_TAG="a") as client:
        client.do("halMemAlloc", "&p", 10 * MIB, flag())
        client.do("halMemAlloc", "&q", MIB, flag(module=7))
        assert wired.tag("a")["excesses"] == 0
        client.do("halMemAlloc", "&r", 4096, flag())
        assert wired.tag("a")["excesses"] == 1
