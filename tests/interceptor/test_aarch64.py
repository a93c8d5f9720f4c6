"""The library of the other machine, with the simulated NPU of that machine, under qemu-user.

There the kernel does not tell who died (qemu has no robust futexes), so no test here kills anybody.
"""

from __future__ import annotations

import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.support import native
from tests.support.containers import PATIENCE_S, Container, eventually
from tests.support.npu_client import HAL_OUT_OF_MEMORY, MIB, OUT_OF_MEMORY, Machine, client
from vnpu import names

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

QUOTA = 1024 * MIB
MOST = 600 * MIB
ALLOCATIONS = {
    "aclrtMallocAlign32": ("&a SIZE 0", "aclrtFree"),
    "rtMalloc": ("&a SIZE 0 33", "rtFree"),
    "halMemAlloc": (f"&a SIZE {33 << 56 | 1 << 14 | 1 << 10}", "halMemFree"),
}
EXIT_WITHOUT_LIMITER = 71


@pytest.fixture(params=["nested", "fused"])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    native.emulator("aarch64", dynamic=True)
    return Machine(tmp_path / "npu", request.param, arch="aarch64")


@pytest.fixture
def other_container(container: Container) -> Container:
    native.emulator("aarch64", dynamic=True)
    return replace(container, arch="aarch64")


@pytest.fixture
def kept(other_container: Container) -> Iterator[Container]:
    with other_container.running():
        yield other_container


def books(container: Container) -> int:
    card = container.read().cards[0]
    return card.used + card.overhead


def device(machine: Machine) -> int:
    return int(machine.status()["cards"][0]["used"])


@pytest.mark.parametrize("way", ["linked", "local"])
def test_memory_is_counted_once_refused_and_freed(kept: Container, machine: Machine, way: str) -> None:
    with client(kept, machine, way=way) as npu:
        before = books(kept)
        assert before == device(machine)
        for name, (arguments, free) in ALLOCATIONS.items():
            words = arguments.replace("SIZE", str(MOST))
            assert npu.call(name, *words.split()) == 0, name
            assert MOST <= books(kept) - before <= MOST + 2 * MIB, name
            assert books(kept) == device(machine), name

            refusal = HAL_OUT_OF_MEMORY if name.startswith("hal") else OUT_OF_MEMORY
            assert npu.call(name, *words.replace("&a", "&b").split()) == refusal, name
            assert npu.get("b") == 0, name
            assert npu.memory_info() == (QUOTA - books(kept), QUOTA)

            assert npu.call(free, "$a") == 0, name
            assert books(kept) == before == device(machine), name


def test_processes_share_one_quota(kept: Container, machine: Machine) -> None:
    with client(kept, machine) as one, client(kept, machine) as other:
        assert one.call("aclrtMalloc", "&a", MOST, 0) == 0
        assert other.call("aclrtMalloc", "&a", MOST, 0) == OUT_OF_MEMORY
        assert one.memory_info() == other.memory_info()
        assert one.call("aclrtFree", "$a") == 0
        assert other.call("aclrtMalloc", "&a", MOST, 0) == 0


def test_launches_and_replays_reach_the_card(kept: Container, machine: Machine) -> None:
    with client(kept, machine) as npu:
        npu.kernel(100)
        assert npu.call("aclrtCreateStream", "&s") == 0
        assert npu.launch("$s") == 0
        assert npu.call("rtStreamBeginCapture", "$s", 0) == 0
        for _ in range(10):
            assert npu.launch("$s") == 0
        assert npu.call("rtStreamEndCapture", "$s", "&g") == 0
        assert npu.call("aclmdlRIExecuteAsync", "$g", "$s") == 0
        assert npu.call("aclrtSynchronizeStream", "$s") == 0
        assert machine.status()["cards"][0]["busy_ns"] == 11 * 100_000


def test_without_a_limiter_the_process_waits_and_ends(other_container: Container, machine: Machine) -> None:
    library = native.library_with_faults("aarch64")
    with client(
        other_container, machine, device=None, library=library, stderr=subprocess.PIPE, VNPU_TEST_WAIT_MS="300"
    ) as npu:
        assert npu.ask("call aclrtSetDevice 0") == "", "no answer: the process ended"
        assert npu.process.wait(PATIENCE_S) == EXIT_WITHOUT_LIMITER
        assert npu.process.stderr is not None
        first, last = npu.process.stderr.read().splitlines()

    assert first.startswith("vnpu: waiting for the limiter of this container")
    assert last.endswith("there is none")


def test_the_quota_of_the_environment_is_parsed(other_container: Container) -> None:
    other_container.memory = "1024MiB"
    started = other_container.limiter("start")

    assert started.returncode != 0
    assert f'limiter: {names.ENV_MEMORY}: "1024MiB"' in started.stderr


def test_the_limiter_starts_and_stops(other_container: Container) -> None:
    with other_container.running():
        assert other_container.lives()
        assert other_container.read().cards[0].quota == QUOTA
    assert eventually(lambda: not other_container.region_path.exists())
