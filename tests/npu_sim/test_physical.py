"""Physical memory with addresses of its own, and pools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.simulated_npu import MIB, NOT_SUPPORTED, OUT_OF_MEMORY, PARAM_INVALID, Machine, flag

if TYPE_CHECKING:
    from tests.support.simulated_npu import Client

HBM_HUGE = 4
HOST, DEVICE = 0, 1
PIECE = 2 * MIB


def describe(client: Client, *, side: int = DEVICE, attribute: int = HBM_HUGE, device: int = 0) -> None:
    """An aclrtPhysicalMemProp in the variable ``prop``."""
    for offset, value in ((0, 0), (4, 0), (8, attribute), (12, device), (16, side)):
        client.do("poke", "prop", offset, 4, value)


def test_physical_memory_lives_as_long_as_a_mapping(wired: Machine) -> None:
    with wired.client() as client:
        describe(client)
        client.do("aclrtReserveMemAddress", "&v", 4 * PIECE, 0, 0, 0)
        assert wired.card()["used"] == 0
        client.do("aclrtMallocPhysical", "&h", PIECE, "&prop", 0)
        client.do("aclrtMapMem", "v", PIECE, 0, "h", 0)
        client.do("aclrtMemset", "v", PIECE, 7, PIECE)
        client.do("aclrtFreePhysical", "h")
        assert wired.card()["used"] == PIECE
        client.do("aclrtUnmapMem", "v")
        assert wired.card()["used"] == 0
        client.do("aclrtReleaseMemAddress", "v")


def test_addresses_need_no_context_and_come_in_whole_pages(wired: Machine) -> None:
    with wired.client(device=None) as client:
        assert client.do("aclrtReserveMemAddress", "&v", 512, 0, 0, 1)["v"] % PIECE == 0
        client.do("aclrtReleaseMemAddress", "v")
        assert client.call("aclrtReleaseMemAddress", "v").code == PARAM_INVALID


def test_a_handle_that_was_retained_is_freed_twice(wired: Machine) -> None:
    with wired.client() as client:
        describe(client)
        client.do("aclrtReserveMemAddress", "&v", PIECE, 0, 0, 0)
        client.do("aclrtMallocPhysical", "&h", PIECE, "&prop", 0)
        client.do("aclrtMapMem", "v", PIECE, 0, "h", 0)
        assert client.do("aclrtMemRetainAllocationHandle", "v", "&again")["again"] == client.value("h")
        client.do("aclrtUnmapMem", "v")
        client.do("aclrtFreePhysical", "h")
        assert wired.card()["used"] == PIECE
        client.do("aclrtFreePhysical", "again")
        assert wired.card()["used"] == 0
        assert client.call("aclrtFreePhysical", "again").code == PARAM_INVALID


def test_an_imported_handle_holds_nothing_of_its_own(wired: Machine) -> None:
    with wired.client() as client:
        describe(client)
        client.do("aclrtMallocPhysical", "&h", PIECE, "&prop", 0)
        client.do("aclrtMemExportToShareableHandle", "h", 0, 0, "&s")
        client.do("aclrtMemImportFromShareableHandle", "s", 0, "&i")
        assert client.value("i") != client.value("h")
        client.do("aclrtFreePhysical", "i")
        assert wired.card()["used"] == PIECE
        client.do("aclrtFreePhysical", "h")
        assert wired.card()["used"] == 0
        assert client.call("aclrtMemImportFromShareableHandle", 99, 0, "&i").code == NOT_SUPPORTED


def test_only_the_device_side_is_counted_whatever_the_attribute_says(wired: Machine) -> None:
    with wired.client() as client:
        describe(client, side=HOST)
        client.do("aclrtMallocPhysical", "&h", PIECE, "&prop", 0)
        assert wired.card()["used"] == 0
        client.do("aclrtFreePhysical", "h")


def test_physical_memory_is_denied_like_any_other(wired: Machine) -> None:
    with wired.client() as client:
        describe(client)
        client.do("halMemAlloc", "&rest", 1024 * MIB - MIB, flag())
        client.do("poke", "h", 0, 8, 77)
        denied = client.call("aclrtMallocPhysical", "&h", PIECE, "&prop", 0)
        assert (denied.code, denied["h"]) == (OUT_OF_MEMORY, 77)


def test_sizes_of_physical_memory_are_whole_pages(wired: Machine) -> None:
    with wired.client() as client:
        describe(client)
        assert client.call("aclrtMallocPhysical", "&h", MIB, "&prop", 0).code == PARAM_INVALID
        describe(client, attribute=5)
        client.do("aclrtMallocPhysical", "&h", MIB, "&prop", 0)
        assert client.do("aclrtMemGetAllocationGranularity", "&prop", 0, "&g")["g"] == 4096


def test_rts_physical_memory_is_freed_by_the_address_of_its_handle(wired: Machine) -> None:
    with wired.client() as client:
        client.do("rtsMemMallocPhysical", "&h", PIECE, 0, 0)
        assert wired.card()["used"] == PIECE
        client.do("rtsMemFreePhysical", "&h")
        assert wired.card()["used"] == 0


def pool(client: Client) -> None:
    """A pool in the variable ``pool``."""
    for offset, value in ((0, 0), (4, 0), (8, 0), (12, DEVICE)):
        client.do("poke", "props", offset, 4, value)
    client.do("aclrtMemPoolCreate", "&pool", "&props")


def test_a_pool_keeps_what_is_freed_until_it_is_trimmed(wired: Machine) -> None:
    with wired.client() as client:
        pool(client)
        client.do("aclrtMemPoolMallocAsync", "&p", 3 * MIB, "pool", 0)
        client.do("aclrtMemPoolMallocAsync", "&q", 2 * MIB, "pool", 0)
        assert wired.card()["used"] == 6 * MIB
        client.do("aclrtMemPoolFreeAsync", "p", 0)
        assert wired.card()["used"] == 6 * MIB
        client.do("aclrtMemPoolMallocAsync", "&r", 2 * MIB, "pool", 0)
        assert wired.card()["used"] == 6 * MIB
        client.do("aclrtMemPoolTrimTo", "pool", 0)
        assert wired.card()["used"] == 4 * MIB
        client.do("aclrtMemPoolDestroy", "pool")
        assert wired.card()["used"] == 0


def test_a_pool_that_cannot_grow_denies(wired: Machine) -> None:
    with wired.client() as client:
        pool(client)
        client.do("halMemAlloc", "&rest", 1024 * MIB - MIB, flag())
        client.do("poke", "p", 0, 8, 77)
        denied = client.call("aclrtMemPoolMallocAsync", "&p", MIB, "pool", 0)
        assert (denied.code, denied["p"]) == (OUT_OF_MEMORY, 77)


def test_later_releases_trim_pools_before_they_deny(wired: Machine) -> None:
    with wired.client() as client:
        pool(client)
        client.do("aclrtMemPoolMallocAsync", "&p", 1024 * MIB, "pool", 0)
        client.do("aclrtMemPoolFreeAsync", "p", 0)
        code = client.call("aclrtMalloc", "&q", 2 * MIB, 0).code
        assert code == (0 if wired.wiring == "fused" else OUT_OF_MEMORY)
