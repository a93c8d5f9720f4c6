"""Kernels in real time. Bounds are wide, since the machine is shared: what must not happen at all is exact."""

from __future__ import annotations

import signal
import struct
import time

import pytest

from tests.support.simulated_npu import MS, Client, Machine

WAIT_TIMEOUT = 107019
STREAM_NOT_COMPLETE = 507004
EVENT_NOT_COMPLETE = 507006
NO_EVENT = 207007
FOREVER_US = 600_000_000


@pytest.fixture
def two_cards(machine: Machine) -> Machine:
    machine.state.unlink()
    machine.tool("create", "cards=2", "memory_mib=1024", "context_mib=0", "stream_kib=0", "kernel_us=0")
    return machine


def float_of(bits: int) -> float:
    value: float = struct.unpack("<f", struct.pack("<I", bits & 0xFFFFFFFF))[0]
    return value


def synchronise(client: Client, stream: str = "0") -> float:
    """How long it took, in ms."""
    return client.do("aclrtSynchronizeStream", stream).ns / MS


def test_a_kernel_takes_its_time(wired: Machine) -> None:
    with wired.client() as client:
        client.kernel("k", 50_000)
        start = time.monotonic()
        client.launch("k")
        synchronise(client)
        assert time.monotonic() - start >= 0.05
        assert client.call("aclrtStreamQuery", 0, "&status")["status"] == 0
        assert wired.card()["busy_ns"] == 50 * MS


def test_the_host_does_not_wait_for_a_kernel(wired: Machine) -> None:
    with wired.client() as client:
        client.kernel("k", FOREVER_US)
        client.launch("k", times=3)
        assert client.call("aclrtStreamQuery", 0, "&status")["status"] == 1


def test_kernels_of_a_card_run_one_at_a_time_whatever_stream_they_come_from(wired: Machine) -> None:
    with wired.client() as client:
        client.kernel("k", 20_000)
        client.do("aclrtCreateStream", "&s")
        start = time.monotonic()
        for stream in ("0", "s", "0", "s"):
            client.launch("k", stream)
        client.do("aclrtSynchronizeDevice")
        assert time.monotonic() - start >= 0.080
        assert wired.card()["busy_ns"] == 80 * MS
        assert wired.card()["kernels"] == 4


def test_cards_run_beside_each_other(two_cards: Machine) -> None:
    with two_cards.client() as first, two_cards.client(device=1) as second:
        for client in (first, second):
            client.kernel("k", FOREVER_US)
            client.launch("k")
        assert [card["running"] for card in two_cards.status()["cards"]] == [True, True]


def test_kernels_end_in_order_in_their_stream(wired: Machine) -> None:
    with wired.client() as client:
        client.kernel("k", 5_000)
        for event in ("a", "b", "c"):
            client.do("aclrtCreateEvent", f"&{event}")
            client.launch("k")
            client.do("aclrtRecordEvent", event, 0)
        assert client.call("aclrtEventElapsedTime", "&ms", "a", "c").code == EVENT_NOT_COMPLETE
        client.do("aclrtSynchronizeEvent", "c")
        for first, last, ms in (("a", "b", 5.0), ("b", "c", 5.0), ("a", "c", 10.0)):
            bits = client.do("aclrtEventElapsedTime", "&ms", first, last)["ms"]
            assert float_of(bits) == pytest.approx(ms, rel=1e-6)


def test_a_stream_waits_for_an_event_of_another(wired: Machine) -> None:
    with wired.client() as client:
        client.kernel("long", 30_000)
        client.kernel("short", 1_000)
        client.do("aclrtCreateStream", "&s")
        client.do("aclrtCreateStream", "&t")
        for event in ("first", "second"):
            client.do("aclrtCreateEvent", f"&{event}")
        client.launch("long", "s")
        client.do("aclrtRecordEvent", "first", "s")
        client.do("aclrtStreamWaitEvent", "t", "first")
        client.do("aclrtRecordEvent", "second", "t")
        assert client.do("aclrtQueryEventStatus", "second", "&status")["status"] == 0
        client.do("aclrtSynchronizeStream", "t")
        assert client.do("aclrtQueryEventStatus", "first", "&status")["status"] == 1
        assert client.do("aclrtQueryEventWaitStatus", "second", "&status")["status"] == 0
        assert float_of(client.do("aclrtEventElapsedTime", "&ms", "first", "second")["ms"]) == 0.0


def test_work_of_one_stream_waits_across_cards(two_cards: Machine) -> None:
    with two_cards.client() as client:
        client.kernel("k", 30_000)
        client.do("aclrtCreateEvent", "&e")
        start = time.monotonic()
        client.launch("k")
        client.do("aclrtRecordEvent", "e", 0)
        client.do("aclrtSetDevice", 1)
        client.do("aclrtStreamWaitEvent", 0, "e")
        client.launch("k")
        synchronise(client)
        assert time.monotonic() - start >= 0.06


def test_waits_time_out(wired: Machine) -> None:
    with wired.client() as client:
        client.kernel("k", FOREVER_US)
        client.do("aclrtCreateEvent", "&e")
        client.launch("k")
        client.do("aclrtRecordEvent", "e", 0)
        assert client.call("aclrtSynchronizeStreamWithTimeout", 0, 10).code == WAIT_TIMEOUT
        assert client.call("aclrtSynchronizeDeviceWithTimeout", 10).code == WAIT_TIMEOUT
        assert client.call("aclrtSynchronizeEventWithTimeout", "e", 10).code == WAIT_TIMEOUT
        assert client.call("rtStreamQuery", 0).code == STREAM_NOT_COMPLETE
        assert client.call("rtEventQuery", "e").code == EVENT_NOT_COMPLETE


def test_a_full_queue_blocks_the_launch(wired: Machine) -> None:
    with wired.client(NPU_SIM_DEPTH="4") as client:
        client.kernel("k", 1_000)
        client.launch("k", times=20)
        synchronise(client)
        client.kernel("k", FOREVER_US)
        client.launch("k", times=4)
        client.start("rtKernelLaunch 0 1 &k 32 0 0")
        assert not client.answers(within_s=0.1)


def test_events_are_finite(wired: Machine) -> None:
    with wired.client(NPU_SIM_EVENT_LIMIT="2") as client:
        client.do("aclrtCreateEvent", "&a")
        client.do("aclrtCreateEvent", "&b")
        assert client.call("aclrtCreateEvent", "&c").code == NO_EVENT
        client.do("aclrtDestroyEvent", "a")
        client.do("aclrtCreateEvent", "&c")


def test_the_name_of_a_kernel_may_tell_its_time(wired: Machine) -> None:
    wired.tool("set", "kernel_us=700")
    with wired.client() as client:
        client.do("aclrtBinaryLoadFromData", "'binary", 6, 0, "&b")
        for name in ("add_250us", "mul_3ms", "anything"):
            client.do("aclrtBinaryGetFunction", "b", f"'{name}", "&f")
            client.do("aclrtLaunchKernelWithHostArgs", "f", 1, 0, 0, 0, 0, 0, 0)
        synchronise(client)
        assert wired.card()["busy_ns"] == 250_000 + 3 * MS + 700_000


def test_streams_and_events_that_are_gone_are_told(wired: Machine) -> None:
    with wired.client() as client:
        client.do("aclrtCreateStream", "&s")
        client.do("aclrtCreateEvent", "&e")
        client.do("aclrtDestroyStream", "s")
        client.do("aclrtDestroyEvent", "e")
        assert client.call("aclrtSynchronizeStream", "s").code == 107017
        assert client.call("aclrtRecordEvent", "e", 0).code == 107000


def test_a_stream_belongs_to_a_context(two_cards: Machine) -> None:
    with two_cards.client() as client:
        client.do("aclrtCreateStream", "&s")
        client.do("aclrtSetDevice", 1)
        assert client.call("rtKernelLaunch", 0, 1, 0, 0, 0, "s").code == 107003


def test_a_forced_end_of_a_stream_drops_what_has_not_begun(wired: Machine) -> None:
    with wired.client() as client:
        client.kernel("k", 100_000)
        client.do("aclrtCreateStream", "&s")
        client.launch("k", "s", times=100)
        client.do("aclrtDestroyStreamForce", "s")
        client.launch("k")
        synchronise(client)
        assert wired.card()["kernels"] < 50


# Several processes ----------------------------------------------------------------------------------------------------


def test_the_kernel_handed_in_first_goes_first(wired: Machine) -> None:
    with wired.client(NPU_SIM_TAG="a") as first, wired.client(NPU_SIM_TAG="b") as second:
        for client in (first, second):
            client.kernel("k", 5_000)
        first.launch("k", times=20)
        second.launch("k")
        synchronise(second)
        assert first.call("aclrtStreamQuery", 0, "&status")["status"] == 0


def test_or_streams_take_turns(wired: Machine) -> None:
    wired.tool("set", "arbiter=rr")
    with wired.client(NPU_SIM_TAG="a") as first, wired.client(NPU_SIM_TAG="b") as second:
        for client in (first, second):
            client.kernel("k", 100_000)
        first.launch("k", times=50)
        second.launch("k")
        synchronise(second)
        assert wired.tag("a")["kernels"] < 25


def test_device_time_is_told_by_tag_and_process(wired: Machine) -> None:
    with wired.client(NPU_SIM_TAG="a") as first, wired.client(NPU_SIM_TAG="b") as second:
        first.kernel("k", 3_000)
        second.kernel("k", 1_000)
        first.launch("k", times=4)
        second.launch("k", times=5)
        synchronise(second)
        assert (wired.tag("a")["busy_ns"], wired.tag("b")["busy_ns"]) == (12 * MS, 5 * MS)
        assert (wired.tag("a")["kernels"], wired.tag("b")["kernels"]) == (4, 5)
        by_pid = {process["pid"]: process["cards"][0]["busy_ns"] for process in wired.status()["processes"]}
        assert by_pid == {first.process.pid: 12 * MS, second.process.pid: 5 * MS}


def test_a_running_kernel_counts_as_far_as_it_has_come(wired: Machine) -> None:
    with wired.client() as client:
        client.kernel("k", FOREVER_US)
        client.launch("k")
        before = wired.tag()["busy_ns"]
        time.sleep(0.02)
        after = wired.tag()["busy_ns"]
        assert after - before >= 20 * MS
        assert wired.card()["running"]


def test_the_card_goes_on_while_its_clients_are_stopped(wired: Machine) -> None:
    with wired.client(NPU_SIM_TAG="a") as stopped, wired.client(NPU_SIM_TAG="b") as other:
        for client in (stopped, other):
            client.kernel("k", 10_000)
        stopped.launch("k", times=5)
        stopped.signal(signal.SIGSTOP)
        other.launch("k")
        synchronise(other)
        assert wired.tag("a")["kernels"] == 5


def test_what_a_killed_process_handed_in_is_dropped_but_for_the_running_kernel(wired: Machine) -> None:
    with wired.client(NPU_SIM_TAG="b") as other:
        other.kernel("k", 1_000)
        with wired.client(NPU_SIM_TAG="a") as killed:
            killed.kernel("k", 300_000)
            killed.launch("k", times=100)
            other.do("aclrtStreamQuery", 0, "&status")
        other.launch("k")
        synchronise(other)
        assert 1 <= wired.tag("a")["kernels"] < 50


def test_members_of_a_group_end_only_when_all_have_started(two_cards: Machine) -> None:
    with two_cards.client() as first, two_cards.client(device=1) as second:
        for client in (first, second):
            client.kernel("k", 10_000, group=7, members=2)
        first.launch("k")
        assert first.call("aclrtSynchronizeStreamWithTimeout", 0, 50).code == WAIT_TIMEOUT
        second.launch("k")
        synchronise(first)
        synchronise(second)
        assert two_cards.card(0)["busy_ns"] >= 60 * MS
        assert two_cards.card(1)["busy_ns"] == 10 * MS


def test_groups_in_different_orders_block_each_other(two_cards: Machine) -> None:
    with two_cards.client() as first, two_cards.client(device=1) as second:
        for client, order in ((first, (1, 2)), (second, (2, 1))):
            client.do("aclrtCreateStream", "&s")
            for group, stream in zip(order, ("0", "s"), strict=True):
                client.kernel("k", 1_000, group=group, members=2)
                client.launch("k", stream)
        assert first.call("aclrtSynchronizeDeviceWithTimeout", 50).code == WAIT_TIMEOUT
        assert second.call("aclrtSynchronizeDeviceWithTimeout", 50).code == WAIT_TIMEOUT
