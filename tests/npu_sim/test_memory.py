"""What the device counts."""

from __future__ import annotations

import pytest

from tests.support.simulated_npu import (
    KIB,
    MIB,
    NOT_SUPPORTED,
    OUT_OF_MEMORY,
    PARAM_INVALID,
    RUNTIME,
    Machine,
    flag,
)

HUGE_FIRST, HUGE_ONLY, NORMAL_ONLY = 0, 1, 2
GIB = 1 << 30


@pytest.mark.parametrize(
    ("size", "policy", "counted"),
    [
        (1, HUGE_FIRST, 4 * KIB),
        (4 * KIB, HUGE_FIRST, 8 * KIB),  # aclrtMalloc asks for a little more
        (MIB - 32, HUGE_FIRST, MIB),
        (MIB, HUGE_FIRST, 2 * MIB),
        (3 * MIB, HUGE_FIRST, 4 * MIB),
        (3 * MIB, NORMAL_ONLY, 3 * MIB + 4 * KIB),
        (1, HUGE_ONLY, 2 * MIB),
        (1, 6, GIB),
    ],
)
def test_sizes_are_rounded_to_the_page_that_the_flags_name(
    wired: Machine, size: int, policy: int, counted: int
) -> None:
    with wired.client() as client:
        client.do("aclrtMalloc", "&p", size, policy)
        assert wired.card()["used"] == counted
        client.do("aclrtFree", "p")
        assert wired.card()["used"] == 0


def test_align32_and_config_ask_for_no_more_than_they_must(wired: Machine) -> None:
    with wired.client() as client:
        client.do("aclrtMallocAlign32", "&p", 3 * MIB, NORMAL_ONLY)
        client.do("aclrtMallocWithCfg", "&q", 3 * MIB, NORMAL_ONLY, 0)
        assert wired.card()["used"] == 6 * MIB


ALLOCATIONS = [
    ("aclrtMalloc", (2 * MIB - 32, HUGE_ONLY), "aclrtFree"),
    ("aclrtMallocAlign32", (2 * MIB, HUGE_ONLY), "aclrtFree"),
    ("aclrtMallocCached", (2 * MIB - 32, HUGE_ONLY), "aclrtFree"),
    ("aclrtMallocWithCfg", (2 * MIB, HUGE_ONLY, 0), "aclrtFree"),
    ("aclrtMallocForTaskScheduler", (2 * MIB, HUGE_ONLY, 0), "aclrtFreeWithDevSync"),
    ("rtMalloc", (2 * MIB, 0x800, 33), "rtFree"),
    ("rtMallocCached", (2 * MIB, 0x800, 33), "rtFreeWithDevSync"),
    ("rtsMalloc", (2 * MIB, HUGE_ONLY, 0, 0), "rtsFree"),
    ("rtMemAlloc", (2 * MIB, HUGE_ONLY, 0, 0), "rtFree"),
    ("rtDvppMalloc", (2 * MIB, 6), "rtDvppFree"),
    ("rtDvppMallocWithFlag", (2 * MIB, 0, 6), "rtDvppFree"),
    ("halMemAlloc", (2 * MIB, flag(huge=True)), "halMemFree"),
    ("halMemAlloc", (2 * MIB, flag(huge=True, kind=0)), "halMemFree"),
    ("halMemAlloc", (2 * MIB, flag(huge=True, kind=3)), "halMemFree"),
    ("halMemAlloc", (2 * MIB, flag(huge=True, kind=7)), "halMemFree"),
    ("acldvppMalloc", (2 * MIB - 32,), "acldvppFree"),
]


@pytest.mark.parametrize(("name", "arguments", "free"), ALLOCATIONS)
def test_every_way_to_allocate_is_counted_once(
    wired: Machine, name: str, arguments: tuple[int, ...], free: str
) -> None:
    with wired.client() as client:
        client.do(name, "&p", *arguments)
        assert wired.card()["used"] == 2 * MIB
        client.do(free, "p")
        assert wired.card()["used"] == 0


def test_dvpp_mpi_goes_past_the_runtime(wired: Machine) -> None:
    with wired.client() as client:
        client.do("hi_mpi_dvpp_malloc", 0, "&p", 2 * MIB)
        assert (wired.card()["used"], client.calls("rtDvppMalloc")) == (2 * MIB, 0)
        client.do("hi_mpi_dvpp_free", "p")
        assert wired.card()["used"] == 0


@pytest.mark.parametrize(("name", "arguments", "free"), ALLOCATIONS)
def test_a_denied_allocation_leaves_the_pointer_alone(
    wired: Machine, name: str, arguments: tuple[int, ...], free: str
) -> None:
    with wired.client() as client:
        client.do("halMemAlloc", "&rest", GIB - MIB, flag())
        client.do("poke", "p", 0, 8, 77)
        denied = client.call(name, "&p", *arguments)
        assert denied.code == (6 if name == "halMemAlloc" else OUT_OF_MEMORY)
        assert denied["p"] == 77
        assert wired.card()["used"] == GIB - MIB
        client.do("halMemFree", "rest")
        client.do(name, "&p", *arguments)
        client.do(free, "p")


def test_capacity_is_exact_to_the_byte(wired: Machine) -> None:
    with wired.client() as client:
        client.do("halMemAlloc", "&p", GIB - 4 * KIB, flag())
        client.do("halMemAlloc", "&q", 4 * KIB, flag())
        assert client.call("halMemAlloc", "&r", 1, flag()).code == 6


def test_a_denied_rt_malloc_tries_huge_pages_and_then_normal_ones(wired: Machine) -> None:
    with wired.client() as client:
        before = client.calls("halMemAlloc")
        assert client.call("rtMalloc", "&p", 2 * GIB, 0, 33).code == OUT_OF_MEMORY
        assert client.calls("halMemAlloc") - before == 2


def test_what_does_not_fit_in_huge_pages_may_fit_in_normal_ones(wired: Machine) -> None:
    with wired.client() as client:
        client.do("halMemAlloc", "&rest", GIB - 3 * MIB, flag())
        client.do("aclrtMallocAlign32", "&p", 3 * MIB, HUGE_FIRST)
        assert wired.card()["used"] == GIB


def test_host_memory_is_not_counted(wired: Machine) -> None:
    with wired.client() as client:
        client.do("aclrtMallocHost", "&p", 8 * MIB)
        client.do("aclrtMallocHostWithCfg", "&q", 8 * MIB, 0)
        client.do("rtMalloc", "&r", 8 * MIB, 0x81, 33)
        client.do("rtMalloc", "&s", 8 * MIB, 0x90, 33)
        client.do("aclrtHostRegister", "p", 8 * MIB, 0, "&t")
        assert wired.card()["used"] == 0
        for name, free in (("p", "aclrtFreeHost"), ("q", "aclrtFreeHost"), ("r", "aclrtFree"), ("s", "rtFree")):
            client.do(free, name)


def test_an_unknown_pointer_is_an_error_and_changes_nothing(wired: Machine) -> None:
    with wired.client() as client:
        client.do("aclrtMalloc", "&p", MIB, NORMAL_ONLY)
        used = wired.card()["used"]
        assert client.call("aclrtFree", 4096).code == PARAM_INVALID
        client.do("aclrtFree", "p")
        assert client.call("aclrtFree", "p").code == PARAM_INVALID
        assert (used, wired.card()["used"]) == (MIB + 4 * KIB, 0)


def test_bad_parameters_are_the_callers_fault(wired: Machine) -> None:
    with wired.client() as client:
        assert client.call("aclrtMalloc", "&p", 0, 0).code == 100000
        assert client.call("aclrtMalloc", 0, 16, 0).code == 100000
        assert client.call("rtMalloc", "&p", 0, 0, 33).code == PARAM_INVALID
        assert client.call("halMemAlloc", "&p", 0, flag()).code == 3
        assert client.call("halMemAlloc", "&p", 16, flag(card=9)).code == 2


def test_memory_may_be_freed_by_another_thread(wired: Machine) -> None:
    with wired.client() as client:
        client.do("halMemAlloc", "&p", MIB, flag())
        client.do("halMemFree", "p", how="thread")
        assert wired.card()["used"] == 0


def test_contexts_streams_and_binaries_cost_memory_of_module_7(wired: Machine) -> None:
    wired.tool("set", "context_mib=16", "stream_kib=2048")
    with wired.client() as client:
        first = wired.tag()
        client.do("aclrtCreateStream", "&s")
        client.do("aclrtBinaryLoadFromData", "'binary", 3 * MIB, 0, "&b")
        full = wired.tag()
        client.do("aclrtBinaryUnLoad", "b")
        client.do("aclrtDestroyStream", "s")
        assert (first["overhead"], first["app"]) == (18 * MIB, 0)  # with the context's own stream
        assert full["overhead"] == 18 * MIB + 2 * MIB + 4 * MIB
        assert wired.tag()["overhead"] == first["overhead"]
        client.do("halMemAlloc", "&p", MIB, flag(module=RUNTIME))
        assert (wired.tag()["overhead"], wired.tag()["app"]) == (19 * MIB, 0)


def test_reset_of_the_device_gives_everything_back(wired: Machine) -> None:
    wired.tool("set", "context_mib=16")
    with wired.client() as client:
        client.do("aclrtSetDevice", 0)  # a second use
        client.do("aclrtMalloc", "&p", MIB, 0)
        client.do("aclrtResetDevice", 0)
        assert wired.card()["used"] > 16 * MIB
        client.do("aclrtResetDevice", 0)
        assert wired.card()["used"] == 0
        assert client.call("aclrtFree", "p").code == 107002


def test_queries_tell_the_kind_of_memory_that_the_chip_has(wired: Machine) -> None:
    with wired.client() as client:
        client.do("aclrtMallocAlign32", "&p", MIB, NORMAL_ONLY)
        hbm = client.do("aclrtGetMemInfo", 1, "&f", "&t")
        plain = client.do("rtMemGetInfo", "&f", "&t")
        assert (hbm["f"], hbm["t"]) == (plain["f"], plain["t"]) == (GIB - MIB, GIB)
        ddr = client.do("aclrtGetMemInfo", 0, "&f", "&t")
        assert (ddr["f"], ddr["t"]) == (0, 0)


def test_a_310p_has_ddr(machine: Machine) -> None:
    machine.state.unlink()
    machine.tool("create", "memory_mib=1024", "chip=Ascend310P3")
    with machine.client() as client:
        assert client.do("aclrtGetMemInfo", 0, "&f", "&t")["t"] == GIB
        assert client.do("aclrtGetMemInfo", 1, "&f", "&t")["t"] == 0


def test_managed_memory_is_there_on_later_chips_only(wired: Machine) -> None:
    with wired.client() as client:
        assert client.call("aclrtMemAllocManaged", "&p", MIB, 0).code == NOT_SUPPORTED
    wired.state.unlink()
    wired.tool("create", "memory_mib=1024", "chip=Ascend950", "context_mib=0", "stream_kib=0")
    with wired.client() as client:
        client.do("aclrtMemAllocManaged", "&p", MIB, 0)
        assert wired.card()["used"] == MIB
        client.do("aclrtFree", "p")
        client.do("rtMemAllocManaged", "&p", MIB, 0, 33)
        client.do("rtMemFreeManaged", "p")
        assert wired.card()["used"] == 0


def test_data_survives_copies(wired: Machine) -> None:
    with wired.client() as client:
        client.do("aclrtMalloc", "&p", 64, 0)
        client.do("poke", "a", 0, 8, 0x1122334455667788)
        client.do("aclrtMemcpy", "p", 64, "&a", 8, 1)
        client.do("aclrtMemcpyAsync", "&b", 64, "p", 8, 2, 0)
        client.do("aclrtMemset", "p", 64, 0x55, 4)
        client.do("aclrtMemcpy", "&c", 64, "p", 8, 2)
        client.do("aclrtSynchronizeStream", 0)
        assert (client.value("b"), client.value("c")) == (0x1122334455667788, 0x1122334455555555)
        assert client.call("aclrtMemcpy", "p", 4, "&a", 8, 1).code == PARAM_INVALID


def test_freed_memory_that_was_written_comes_back_empty(wired: Machine) -> None:
    with wired.client() as client:
        client.do("poke", "a", 0, 8, 1)
        client.do("halMemAlloc", "&p", 4 * KIB, flag())
        client.do("aclrtMemcpy", "p", 8, "&a", 8, 1)
        client.do("halMemFree", "p")
        client.do("halMemAlloc", "&q", 4 * KIB, flag())
        client.do("aclrtMemcpy", "&b", 8, "q", 8, 2)
        assert (client.value("p") == client.value("q"), client.value("b")) == (True, 0)
