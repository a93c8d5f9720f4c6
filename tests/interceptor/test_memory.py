from __future__ import annotations

import os
import re
import subprocess
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from interceptor import region
from tests.support import native
from tests.support.containers import Container, eventually
from tests.support.npu_client import (
    HAL_NOT_SUPPORTED,
    HAL_OUT_OF_MEMORY,
    MIB,
    NOT_SUPPORTED,
    OUT_OF_MEMORY,
    Client,
    Machine,
    client,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

QUOTA = 1024 * MIB
MOST = 600 * MIB

APP_FLAG = 33 << 56 | 1 << 14
RUNTIME_FLAG = 7 << 56 | 1 << 14
HUGE = 1 << 17
KIND_DEVICE = 1 << 10
KIND_HOST = 2 << 10

# For each name: what it is called with (SIZE: 600 MiB), what frees it, and how often a second call is refused.
ALLOCATIONS: dict[str, tuple[str, str]] = {
    "aclrtMalloc": ("&a SIZE 0", "aclrtFree $a"),
    "aclrtMallocAlign32": ("&a SIZE 0", "aclrtFree $a"),
    "aclrtMallocCached": ("&a SIZE 0", "aclrtFreeWithDevSync $a"),
    "aclrtMallocWithCfg": ("&a SIZE 0 0", "aclrtFree $a"),
    "aclrtMallocForTaskScheduler": ("&a SIZE 0 0", "aclrtFree $a"),
    "aclrtMallocPhysical": ("&a SIZE @a 0", "aclrtFreePhysical $a"),
    "aclrtMemAllocManaged": ("&a SIZE 0", "aclrtFree $a"),
    "aclrtMemPoolMallocAsync": ("&a SIZE $p 0", "aclrtMemPoolFreeAsync $a 0"),
    "acldvppMalloc": ("&a SIZE", "acldvppFree $a"),
    "hi_mpi_dvpp_malloc": ("0 &a SIZE", "hi_mpi_dvpp_free $a"),
    "rtMalloc": ("&a SIZE 0 33", "rtFree $a"),
    "rtMallocCached": ("&a SIZE 0 33", "rtFreeWithDevSync $a"),
    "rtsMalloc": ("&a SIZE 0 0 0", "rtsFree $a"),
    "rtMemAlloc": ("&a SIZE 0 0 0", "rtFree $a"),
    "rtMallocPhysical": ("&a SIZE @r 0", "rtFreePhysical $a"),
    "rtsMemMallocPhysical": ("&a SIZE 0 0", "rtsMemFreePhysical &a"),
    "rtDvppMalloc": ("&a SIZE 6", "rtDvppFree $a"),
    "rtDvppMallocWithFlag": ("&a SIZE 0 6", "rtDvppFree $a"),
    "rtMemAllocManaged": ("&a SIZE 0 33", "rtMemFreeManaged $a"),
    "rtMallocManaged": ("&a SIZE 0 33", "rtFreeManaged $a"),
    "rtMemPoolMallocAsync": ("&a SIZE $p 0", "rtMemPoolFreeAsync $a 0"),
    "halMemAlloc": (f"&a SIZE {APP_FLAG | KIND_DEVICE | HUGE}", "halMemFree $a"),
    "halMemCreate": ("&a SIZE @r 0", "halMemRelease $a"),
}
IN_POOLS = {"aclrtMemPoolMallocAsync", "rtMemPoolMallocAsync"}
OLD_NAMES = {"rtMallocManaged"}
"""Which only older releases have."""


def rows(kind: str) -> set[str]:
    text = (native.TOP / "interceptor" / "src" / "hooks.def").read_text()
    return set(re.findall(rf"^VNPU_{kind}\(\w+, (\w+)", text, re.MULTILINE))


def test_every_hook_that_allocates_or_frees_is_tested() -> None:
    freed = {free.split()[0] for _, free in ALLOCATIONS.values()}

    assert rows("ALLOCATE") == set(ALLOCATIONS) - {"halMemAlloc", "halMemCreate"}
    assert rows("FREE") == freed - {"halMemFree", "halMemRelease"}


@pytest.fixture(params=["nested", "fused", "sanitized"])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    """One of each wiring, and one where the library runs under AddressSanitizer and UndefinedBehaviorSanitizer."""
    if request.param == "sanitized":
        return Machine(tmp_path / "npu", preload=native.sanitized("address"))
    return Machine(tmp_path / "npu", request.param)


@pytest.fixture
def kept(container: Container) -> Iterator[Container]:
    with container.running():
        yield container


def prepare(npu: Client) -> None:
    """Buffers for physical memory of device 0 in huge pages, and for a pool."""
    for offset, number in ((12, 0), (16, 1)):  # location: id, type device
        npu.ask(f"poke a {offset} 32 {number}")
    npu.ask("poke a 8 32 4")  # HBM in huge pages
    for offset, number in ((0, 1), (8, 33), (12, 1)):  # side device, module, huge page
        npu.ask(f"poke r {offset} 32 {number}")
    for offset, number in ((0, 1), (4, 0)):  # pool: side device, device
        npu.ask(f"poke m {offset} 32 {number}")


def books(container: Container) -> tuple[int, int]:
    card = container.read().cards[0]
    return card.used, card.overhead


def device(machine: Machine, card: int = 0) -> int:
    return machine.status()["cards"][card]["used"]


def size(arguments: str, number: int) -> str:
    return arguments.replace("SIZE", str(number))


@pytest.mark.parametrize("way", ["linked", "local"])
@pytest.mark.parametrize("name", sorted(ALLOCATIONS))
def test_counted_once_refused_and_freed(kept: Container, machine: Machine, name: str, way: str) -> None:
    allocate, free = ALLOCATIONS[name]
    if machine.preload and way == "local" and name.startswith("hal"):
        pytest.skip("a driver that is looked up is reached past a library that leaves dlsym out")
    if name in OLD_NAMES:
        # The client was linked with a later release.
        machine.wiring, way = "old", "local" if way == "local" else "global"
    if "Managed" in name:
        machine.tool("create", "chip=Ascend950")
    refusal = HAL_OUT_OF_MEMORY if name.startswith("hal") else OUT_OF_MEMORY
    with client(kept, machine, way=way) as npu:
        prepare(npu)
        assert name not in IN_POOLS or npu.call("rtMemPoolCreate", "&p", "@m") == 0
        before, overhead = books(kept)
        assert before + overhead == device(machine)

        assert npu.call(name, *size(allocate, MOST).split()) == 0
        used, overhead = books(kept)
        assert MOST <= used - before <= MOST + 2 * MIB
        assert used + overhead == device(machine)

        again = allocate.replace("&a", "&b")
        assert npu.call(name, *size(again, MOST).split()) == refusal
        assert npu.get("b") == 0
        assert books(kept) == (used, overhead)
        assert device(machine) == used + overhead

        assert npu.call(*free.split()) == 0
        if name in IN_POOLS:
            assert books(kept)[0] == used, "the pool has not given it back yet"
            assert npu.call("rtMemPoolTrimTo", "$p", 0) == 0
        assert eventually(lambda: books(kept)[0] == before)
        assert sum(books(kept)) == device(machine)


@pytest.mark.parametrize("way", ["linked", "local"])
@pytest.mark.parametrize("name", ["aclrtMalloc", "rtMalloc"])
def test_the_very_first_call_that_reaches_the_driver_is_counted_once(
    kept: Container, machine: Machine, name: str, way: str
) -> None:
    """Only then it shows whether the driver's calls pass through the library: contexts cost nothing here."""
    machine.tool("create", "context_mib=0", "stream_kib=0")
    allocate, free = ALLOCATIONS[name]
    with client(kept, machine, way=way) as npu:
        assert device(machine) == 0
        assert npu.call(name, *size(allocate, MOST).split()) == 0
        assert MOST <= sum(books(kept)) == device(machine)
        assert npu.call(*free.split()) == 0
        assert sum(books(kept)) == device(machine) == 0


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("aclrtMallocHost", "&a SIZE"),
        ("rtMallocHost", "&a SIZE 33"),
        ("rtMalloc", f"&a SIZE {0x81} 33"),
        ("halMemAlloc", f"&a SIZE {APP_FLAG | KIND_HOST}"),
        ("rtReserveMemAddress", "&a SIZE 0 0 0"),
    ],
)
def test_host_memory_and_addresses_are_not_counted(
    kept: Container, machine: Machine, name: str, arguments: str
) -> None:
    with client(kept, machine) as npu:
        before = books(kept)
        assert npu.call(name, *size(arguments, 2 * QUOTA).split()) == 0
        assert books(kept) == before


@pytest.mark.parametrize(
    ("bytes_wanted", "flag", "counted"),
    [
        (1, APP_FLAG | KIND_DEVICE, 4096),
        (4096, APP_FLAG | KIND_DEVICE, 4096),
        (4097, APP_FLAG | KIND_DEVICE, 8192),
        (1, APP_FLAG | KIND_DEVICE | HUGE, 2 * MIB),
        (2 * MIB + 1, APP_FLAG | KIND_DEVICE | HUGE, 4 * MIB),
        (QUOTA, APP_FLAG | KIND_DEVICE | HUGE, None),
        (2**62, APP_FLAG | KIND_DEVICE, None),
        (0, APP_FLAG | KIND_DEVICE, None),
    ],
)
def test_sizes_are_rounded_as_the_device_rounds_them(
    kept: Container, machine: Machine, bytes_wanted: int, flag: int, counted: int | None
) -> None:
    with client(kept, machine) as npu:
        before, _ = books(kept)
        result = npu.call("halMemAlloc", "&a", bytes_wanted, flag)

        assert (result == 0) == (counted is not None)
        assert books(kept)[0] - before == (counted or 0)
        assert sum(books(kept)) == device(machine)


def test_an_application_can_use_quota_minus_overhead_to_the_page(kept: Container, machine: Machine) -> None:
    with client(kept, machine) as npu:
        free, total = npu.memory_info()
        assert total == QUOTA
        assert free == QUOTA - books(kept)[1]

        assert npu.call("halMemAlloc", "&a", free + 1, APP_FLAG | KIND_DEVICE) == HAL_OUT_OF_MEMORY
        assert npu.call("halMemAlloc", "&a", free, APP_FLAG | KIND_DEVICE) == 0
        assert npu.memory_info() == (0, QUOTA)
        assert device(machine) == QUOTA
        assert npu.call("halMemAlloc", "&b", 1, APP_FLAG | KIND_DEVICE) == HAL_OUT_OF_MEMORY
        assert npu.call("halMemAlloc", "&b", MIB, RUNTIME_FLAG | KIND_DEVICE) == 0, "the runtime is never refused"
        assert npu.memory_info() == (0, QUOTA)


def test_failures_of_the_device_pass_through_and_change_nothing(kept: Container, machine: Machine) -> None:
    with client(kept, machine, NPU_SIM_FAIL="halMemAlloc:0:3,halMemFree:1:4", device=None) as npu:
        assert npu.call("rtSetDevice", 0) != 0
        assert npu.call("halMemAlloc", "&a", MIB, APP_FLAG | KIND_DEVICE) == 3
        assert books(kept) == (0, 0)


def test_a_free_that_fails_is_no_free(kept: Container, machine: Machine) -> None:
    with client(kept, machine, NPU_SIM_FAIL="halMemFree:1:4") as npu:
        assert npu.call("halMemAlloc", "&a", MIB, APP_FLAG | KIND_DEVICE) == 0
        assert npu.call("halMemFree", "$a") == 4
        assert books(kept)[0] == MIB
        assert npu.call("halMemFree", "$a") == 0
        assert books(kept)[0] == 0


def test_unknown_pointers_pass_and_change_nothing(kept: Container, machine: Machine) -> None:
    with client(kept, machine) as npu:
        assert npu.call("aclrtMalloc", "&a", MIB, 0) == 0
        before = books(kept)
        for name in ("aclrtFree", "rtFree", "halMemFree", "rtFreePhysical"):
            assert npu.call(name, 0x1234000) != 0
        assert books(kept) == before


def test_physical_memory_is_counted_until_its_last_reference_goes(kept: Container, machine: Machine) -> None:
    with client(kept, machine) as npu:
        prepare(npu)
        before, _ = books(kept)
        assert npu.call("rtMallocPhysical", "&a", 64 * MIB, "@r", 0) == 0
        assert npu.call("rtReserveMemAddress", "&v", 64 * MIB, 0, 0, 0) == 0
        assert npu.call("rtMapMem", "$v", 64 * MIB, 0, "$a", 0) == 0
        assert npu.call("rtMemRetainAllocationHandle", "$v", "&c") == 0
        for release, left in (
            ("rtFreePhysical $a", 64 * MIB),
            ("rtUnmapMem $v", 64 * MIB),
            ("rtFreePhysical $c", 0),
        ):
            assert npu.call(*release.split()) == 0
            assert books(kept)[0] - before == left
            assert sum(books(kept)) == device(machine)


@pytest.mark.parametrize("last", ["a", "i"])
def test_physical_memory_stays_for_as_long_as_the_process_imports_it(
    kept: Container, machine: Machine, last: str
) -> None:
    (first,) = {"a", "i"} - {last}
    with client(kept, machine) as npu:
        prepare(npu)
        before, _ = books(kept)
        for words in (
            f"rtMallocPhysical &a {MOST} @r 0",
            "aclrtMemExportToShareableHandle $a 0 0 &s",
            "aclrtMemImportFromShareableHandle $s 0 &i",
            f"rtReserveMemAddress &v {MOST} 0 0 0",
            f"rtMapMem $v {MOST} 0 $i 0",
            "rtUnmapMem $v",
            f"rtFreePhysical ${first}",
        ):
            assert npu.call(*words.split()) == 0
        assert books(kept)[0] - before == MOST
        assert sum(books(kept)) == device(machine)
        assert npu.call("rtMallocPhysical", "&b", MOST, "@r", 0) == OUT_OF_MEMORY

        assert npu.call("rtFreePhysical", f"${last}") == 0
        assert books(kept)[0] == before
        assert sum(books(kept)) == device(machine)
        assert npu.call("rtMallocPhysical", "&b", MOST, "@r", 0) == 0


def test_a_device_reset_gives_everything_back(kept: Container, machine: Machine) -> None:
    with client(kept, machine) as npu:
        prepare(npu)
        assert npu.call("rtMemPoolCreate", "&p", "@m") == 0
        assert npu.call("aclrtSetDevice", 0) == 0
        assert npu.call("aclrtMalloc", "&a", MOST, 0) == 0
        assert npu.call("aclrtResetDevice", 0) == 0
        assert books(kept)[0] >= MOST, "the device is still in use"
        assert npu.call("aclrtResetDevice", 0) == 0
        assert books(kept) == (0, 0)
        assert device(machine) == 0


@pytest.mark.parametrize("name", ["aclrtResetDeviceForce", "rtDeviceResetForce", "rtDeviceReset"])
def test_every_way_to_reset(kept: Container, machine: Machine, name: str) -> None:
    with client(kept, machine) as npu:
        assert npu.call("aclrtMalloc", "&a", MOST, 0) == 0
        assert npu.call(name, 0) == 0
        assert books(kept) == (0, 0)
        assert device(machine) == 0


def test_what_a_killed_process_held_is_free_at_once(kept: Container, machine: Machine) -> None:
    for _ in range(5):
        with client(kept, machine) as npu:
            assert npu.call("aclrtMalloc", "&a", MOST, 0) == 0
            npu.process.kill()
            npu.process.wait()
    assert eventually(lambda: books(kept) == (0, 0))


def test_the_dead_of_other_pid_namespaces_hold_up_nobody_for_long(container: Container, machine: Machine) -> None:
    """Nobody sees whether they have closed their files, and the time to do so is given to all of them at once."""
    apart = ("unshare", *(() if os.geteuid() == 0 else ("--map-root-user",)), "--pid", "--fork", "--kill-child")
    if subprocess.run([*apart, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no pid namespace can be had here")
    with container.running(), ExitStack() as stack:
        crowd = [stack.enter_context(client(container, machine, through=apart)) for _ in range(8)]
        npu = stack.enter_context(client(container, machine))
        for one in crowd:
            assert one.ask("pid") == "1"
            assert one.call("halMemAlloc", "&a", 80 * MIB, APP_FLAG | KIND_DEVICE) == 0
        assert npu.call("halMemAlloc", "&a", MOST, APP_FLAG | KIND_DEVICE) == HAL_OUT_OF_MEMORY
        for one in crowd:
            one.process.kill()
        for one in crowd:
            one.process.wait()
        before = time.monotonic()
        assert npu.call("halMemAlloc", "&a", MOST, APP_FLAG | KIND_DEVICE) == 0
        assert time.monotonic() - before < 1


def test_processes_share_one_quota(kept: Container, machine: Machine) -> None:
    with client(kept, machine) as one, client(kept, machine) as other:
        assert one.call("aclrtMalloc", "&a", MOST, 0) == 0
        assert other.call("aclrtMalloc", "&a", MOST, 0) == OUT_OF_MEMORY
        assert one.memory_info() == other.memory_info()
        assert one.call("aclrtFree", "$a") == 0
        assert other.call("aclrtMalloc", "&a", MOST, 0) == 0
        assert len(kept.read().processes) == 2


@pytest.mark.parametrize("verb", ["fork", "clone"])
def test_a_child_owns_nothing_and_takes_nothing_along(kept: Container, machine: Machine, verb: str) -> None:
    """R52: the child of a process that holds memory ends, and the parent's books stay."""
    with client(kept, machine) as npu:
        assert npu.call("aclrtMalloc", "&a", MOST, 0) == 0
        before = books(kept)
        assert npu.ask(f"{verb} pid").isdigit()
        assert books(kept) == before
        assert npu.ask(f"{verb} call halMemFree $a") != "0", "no memory of its parent's"
        assert books(kept) == before
        assert npu.ask(f"{verb} call halMemAlloc &b {MOST} {APP_FLAG | KIND_DEVICE}") == str(HAL_OUT_OF_MEMORY)
        assert npu.ask(f"{verb} call halMemAlloc &b {MIB} {APP_FLAG | KIND_DEVICE}") == "0"
        assert eventually(lambda: books(kept) == before)
        assert npu.call("aclrtMalloc", "&b", MOST, 0) == OUT_OF_MEMORY
        assert npu.call("aclrtFree", "$a") == 0
        assert npu.call("aclrtMalloc", "&a", MOST, 0) == 0


def test_cards_have_quotas_of_their_own(container: Container, machine: Machine) -> None:
    container.devices = "2,5"
    machine.tool("create", "cards=6")
    with container.running(), client(container, machine) as npu:
        assert npu.call("aclrtMalloc", "&a", MOST, 0) == 0
        assert npu.call("aclrtSetDevice", 1) == 0
        assert npu.call("aclrtMalloc", "&b", MOST, 0) == 0
        assert [card.used // (600 * MIB) for card in container.read().cards] == [1, 1]
        assert (device(machine, 2) > MOST, device(machine, 5) > MOST) == (True, True)


def test_visible_devices_of_the_runtime_are_followed(container: Container, machine: Machine) -> None:
    container.devices = "2,5"
    machine.tool("create", "cards=6")
    with container.running(), client(container, machine, ASCEND_RT_VISIBLE_DEVICES="1") as npu:
        free, _ = npu.memory_info()
        assert npu.call("aclrtMalloc", "&a", MOST, 0) == 0
        assert [card.used > 0 for card in container.read().cards] == [False, True]
        assert npu.memory_info()[0] == free - container.read().cards[1].used
        assert npu.call("aclrtMalloc", "&b", MOST, 0) == OUT_OF_MEMORY


@pytest.mark.parametrize("way", ["linked", "local", "global"])
def test_what_this_cann_lacks_is_not_there(kept: Container, tmp_path: Path, way: str) -> None:
    """By dlsym a name that the real CANN lacks resolves to nothing; linked, it says that it is not supported."""
    old = Machine(tmp_path / "npu", "old")
    with client(kept, old, way=way) as npu:
        for name, code in (
            ("aclrtMallocWithCfg", NOT_SUPPORTED),
            ("rtsMalloc", NOT_SUPPORTED),
            ("halMemPoolMalloc", HAL_NOT_SUPPORTED),
        ):
            assert npu.call(name, 0, 0, 0, 0) == (code if way == "linked" else None)
        assert npu.call("aclrtMalloc", "&a", MOST, 0) == 0
        assert npu.call("aclrtMalloc", "&b", MOST, 0) == OUT_OF_MEMORY


def test_a_quota_above_the_card_shows_the_card(container: Container, tmp_path: Path) -> None:
    container.memory = "100000"
    machine = Machine(tmp_path / "npu")
    with container.running(), client(container, machine) as npu:
        free, total = npu.memory_info()

    assert total == 65536 * MIB
    assert free < total


def test_queries_without_context_say_what_cann_says(kept: Container, machine: Machine) -> None:
    with client(kept, machine, device=None) as npu:
        assert npu.call("aclrtGetMemInfo", 1, "&a", "&b") == 107002
        assert npu.call("aclrtSetDevice", 0) == 0
        assert npu.call("aclrtGetMemInfo", 0, "&a", "&b") == 0
        assert npu.get("b") == 0, "a kind of memory that this chip has not"


def test_the_mirror_shows_the_memory(kept: Container, machine: Machine) -> None:
    with client(kept, machine) as npu:
        assert npu.call("aclrtMalloc", "&a", MOST, 0) == 0
        used, overhead = books(kept)

        def mirrored() -> bool:
            card = region.read_mirror(kept.mirror_path).cards[0]
            return (card.used, card.overhead) == (used, overhead)

        assert eventually(mirrored)
        upstream = kept.mirror_path.read_bytes()
        assert int.from_bytes(upstream[8:16], "little") == used + overhead
        assert int.from_bytes(upstream[1080:1084], "little") == npu.process.pid
