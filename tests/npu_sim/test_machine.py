"""The machine's file, its knobs, and the tool."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.support.simulated_npu import MIB, MS, Machine, flag

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def none_yet(state: Path) -> Machine:
    return Machine(state)


def test_whoever_comes_first_makes_the_machine_and_all_use_the_same(none_yet: Machine) -> None:
    command = [str(none_yet.folder / "npu-client"), str(none_yet.folder / "libascend_hal.so")]
    racers = [
        subprocess.Popen(
            command,
            env=none_yet.environment(NPU_SIM_MEMORY_MIB="64"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(16)
    ]
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write(f"halMemAlloc &p {MIB} {flag()}\n")
        racer.stdin.flush()
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline().startswith("0 ")
    assert none_yet.card()["used"] == 16 * MIB
    assert [path.name for path in none_yet.state.parent.iterdir()] == ["machine"]
    for racer in racers:
        racer.communicate()


def test_the_environment_sets_the_knobs_of_a_new_machine(none_yet: Machine) -> None:
    with none_yet.client(NPU_SIM_CARDS="3", NPU_SIM_CHIP="Ascend910B4", NPU_SIM_CONTEXT_MIB="5"):
        status = none_yet.status()
        assert (len(status["cards"]), status["chip"]) == (3, "Ascend910B4")
        assert status["tags"][0]["cards"][0]["overhead"] == 6 * MIB + 2 * MIB  # 5 in huge pages, and a stream


@pytest.mark.parametrize(
    "knob",
    ["cards=0", "cards=17", "memory_mib=0", "memory_mib=x", "kernel_us=-1", "arbiter=lifo", "chip=H100", "colour=1"],
)
def test_knobs_that_make_no_sense_are_refused(none_yet: Machine, knob: str) -> None:
    result = none_yet.run("npu-sim", "create", knob)
    assert (result.returncode, knob in result.stderr) == (1, True)
    assert not none_yet.state.exists()


def test_bad_environment_makes_no_machine(none_yet: Machine) -> None:
    result = none_yet.run("npu-sim", "create", NPU_SIM_MEMORY_MIB="much")
    assert (result.returncode, "NPU_SIM_MEMORY_MIB=much" in result.stderr) == (1, True)
    assert list(none_yet.state.parent.iterdir()) == []


def test_wrong_calls_of_the_tool(machine: Machine) -> None:
    for arguments in ((), ("set",), ("status", "now"), ("expect", "a"), ("expect", "a", "b"), ("make",)):
        assert machine.run("npu-sim", *arguments).returncode == 2, arguments
    assert machine.run("npu-sim", "create").returncode == 1
    assert machine.run("npu-sim", "set", "cards=2").returncode == 1


@pytest.mark.parametrize("content", [b"", b"not a machine", b"\0" * 4096])
def test_a_foreign_file_is_refused(none_yet: Machine, content: bytes) -> None:
    none_yet.state.write_bytes(content)
    assert none_yet.run("npu-sim", "status").returncode == 1
    with none_yet.client(device=None) as client:
        assert client.call("halMemAlloc", "&p", 1, flag()).code == 1
        assert client.call("aclrtSetDevice", 0).code != 0
    assert none_yet.state.read_bytes() == content


def test_a_symlink_is_refused(machine: Machine) -> None:
    link = machine.state.parent / "link"
    link.symlink_to(machine.state)
    assert Machine(link).run("npu-sim", "status").returncode == 1


def test_knobs_may_be_turned_while_the_machine_runs(machine: Machine) -> None:
    with machine.client() as client:
        machine.tool("set", "memory_mib=10", "kernel_us=3000")
        assert client.call("halMemAlloc", "&p", 11 * MIB, flag()).code == 6
        client.do("rtKernelLaunch", 0, 1, 0, 0, 0, 0)
        client.do("aclrtSynchronizeDevice")
        assert machine.card()["busy_ns"] == 3 * MS


def test_calls_fail_when_the_knob_says_so(wired: Machine) -> None:
    knobs = "halMemAlloc:2:6,aclrtFree:0:507899"
    with wired.client(NPU_SIM_FAIL=knobs) as client:
        assert [client.call("halMemAlloc", "&p", 1, flag()).code for _ in range(3)] == [0, 6, 0]
        assert client.call("aclrtFree", "p").code == 507899
        assert client.call("aclrtFree", "p").code == 507899


def test_failures_of_the_driver_are_told_by_the_runtime(wired: Machine) -> None:
    for code, told in ((6, 207001), (0xFFFE, 207000), (3, 107000), (2, 107001), (99, 507899)):
        with wired.client(NPU_SIM_FAIL=f"halMemAlloc:0:{code}") as client:
            assert client.call("aclrtMalloc", "&p", 64, 0).code == told


def test_calls_are_slow_when_the_knob_says_so(wired: Machine) -> None:
    with wired.client(NPU_SIM_DELAY="rtMalloc:30000,halMemFree:20000") as client:
        assert client.do("rtMalloc", "&p", 64, 0, 33).ns >= 30 * MS
        assert client.do("aclrtFree", "p").ns >= 20 * MS


def test_tags_are_told_apart_and_may_be_any_text(machine: Machine) -> None:
    with machine.client(NPU_SIM_TAG='a "b" \\') as client:
        client.do("halMemAlloc", "&p", MIB, flag())
        assert machine.tag('a "b" \\')["app"] == MIB
