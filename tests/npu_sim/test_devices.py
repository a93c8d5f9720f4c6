"""Devices and contexts: who must have one, and how cards are numbered at each level."""

from __future__ import annotations

import pytest

from tests.support.simulated_npu import CONTEXT_NULL, INVALID_DEVICE, MIB, Machine, flag


@pytest.fixture
def four(machine: Machine) -> Machine:
    machine.state.unlink()
    machine.tool("create", "cards=4", "memory_mib=1024", "context_mib=0", "stream_kib=0", "kernel_us=0")
    return machine


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("aclrtGetDevice", ("&d",)),
        ("aclrtMalloc", ("&p", 64, 0)),
        ("aclrtFree", (4096,)),
        ("aclrtMallocHost", ("&p", 64)),
        ("aclrtMallocPhysical", ("&h", 2 * MIB, "&prop", 0)),
        ("aclrtGetMemInfo", (1, "&f", "&t")),
        ("aclrtCreateStream", ("&s",)),
        ("aclrtCreateEvent", ("&e",)),
        ("aclrtSynchronizeStream", (0,)),
        ("aclrtSynchronizeDevice", ()),
        ("aclrtGetCurrentContext", ("&c",)),
        ("aclrtMemcpy", ("&a", 8, "&b", 8, 1)),
        ("rtKernelLaunch", (0, 1, 0, 0, 0, 0)),
        ("rtsMalloc", ("&p", 64, 0, 0, 0)),
        ("rtDvppMalloc", ("&p", 64, 6)),
        ("rtMemGetInfo", ("&f", "&t")),
    ],
)
def test_calls_without_a_context_fail(wired: Machine, name: str, arguments: tuple[int | str, ...]) -> None:
    with wired.client(device=None) as client:
        assert client.call(name, *arguments).code == CONTEXT_NULL


def test_a_context_belongs_to_a_thread(wired: Machine) -> None:
    with wired.client() as client:
        assert client.call("aclrtGetDevice", "&d", how="thread").code == CONTEXT_NULL
        client.do("aclrtGetCurrentContext", "&c")
        client.do("aclrtSetCurrentContext", "c", how="thread")
        client.do("aclrtGetDevice", "&d")


def test_a_forked_child_has_no_context(wired: Machine) -> None:
    with wired.client() as client:
        assert client.call("aclrtGetDevice", "&d", how="fork").code == CONTEXT_NULL
        assert client.call("aclrtMalloc", "&p", 64, 0, how="clone").code == CONTEXT_NULL
        client.do("aclrtSetDevice", 0, how="fork")
        client.do("aclrtGetDevice", "&d")


def test_contexts_are_made_and_end(four: Machine) -> None:
    with four.client() as client:
        assert client.do("aclrtGetPrimaryCtxState", 1, "&f", "&active")["active"] == 0
        client.do("aclrtCreateContext", "&c", 1)
        assert client.do("aclrtGetDevice", "&d")["d"] == 1
        client.do("aclrtSetDevice", 0)
        assert client.do("aclrtGetDevice", "&d")["d"] == 0
        client.do("aclrtSetCurrentContext", "c")
        client.do("aclrtDestroyContext", "c")
        assert client.call("aclrtGetDevice", "&d").code == CONTEXT_NULL
        assert client.call("aclrtSetCurrentContext", "c").code == CONTEXT_NULL
        assert client.call("aclrtSetDevice", 4).code == INVALID_DEVICE
        assert client.call("aclrtSetDevice", -1).code == INVALID_DEVICE


def test_driver_ids_are_physical_and_renumbered_above(four: Machine) -> None:
    with four.client(device=None, ASCEND_VISIBLE_DEVICES="3,1", ASCEND_RT_VISIBLE_DEVICES="1") as client:
        assert client.do("drvGetDevNum", "&n")["n"] == 2
        assert client.do("drvDeviceGetPhyIdByIndex", 0, "&i")["i"] == 3
        assert client.do("aclrtGetDeviceCount", "&n")["n"] == 1
        client.do("aclrtSetDevice", 0)
        client.do("aclrtMallocAlign32", "&p", MIB, 2)
        assert [card["used"] for card in four.status()["cards"]] == [0, MIB, 0, 0]
        client.do("halMemAlloc", "&q", MIB, flag(card=3))
        assert client.call("halMemAlloc", "&q", MIB, flag(card=0)).code == 2
        assert [card["used"] for card in four.status()["cards"]] == [0, MIB, 0, MIB]
        assert client.do("aclrtGetLogicDevIdByUserDevId", 0, "&i")["i"] == 1
        assert client.do("aclrtGetPhyDevIdByLogicDevId", 1, "&i")["i"] == 1
        assert client.do("rtGetVisibleDeviceIdByLogicDeviceId", 1, "&i")["i"] == 0
        assert client.call("aclrtSetDevice", 1).code == INVALID_DEVICE


@pytest.mark.parametrize(
    ("visible", "rt_visible", "count"),
    [
        (None, None, 4),
        ("", None, 0),
        ("2", None, 1),
        ("0,1,9", None, 2),
        (None, "0,2", 2),
        (None, "0,4,1", 1),  # up to the first that makes no sense
        (None, "1,1", 1),
        (None, "x", 0),
        (None, "1, 2", 1),
    ],
)
def test_visible_devices(four: Machine, visible: str | None, rt_visible: str | None, count: int) -> None:
    env = {}
    if visible is not None:
        env["ASCEND_VISIBLE_DEVICES"] = visible
    if rt_visible is not None:
        env["ASCEND_RT_VISIBLE_DEVICES"] = rt_visible
    with four.client(device=None, **env) as client:
        assert client.do("aclrtGetDeviceCount", "&n")["n"] == count


def test_physical_memory_goes_to_the_device_that_it_names(four: Machine) -> None:
    with four.client(ASCEND_VISIBLE_DEVICES="2,3") as client:
        for offset, value in ((8, 4), (12, 1), (16, 1)):
            client.do("poke", "prop", offset, 4, value)
        client.do("aclrtMallocPhysical", "&h", 2 * MIB, "&prop", 0)
        assert [card["used"] for card in four.status()["cards"]] == [0, 0, 0, 2 * MIB]


def test_the_name_of_the_chip(wired: Machine) -> None:
    with wired.client() as client:
        client.do("rtGetSocVersion", "&name", 32)
        assert client.value("name").to_bytes(8, "little") == b"Ascend91"
