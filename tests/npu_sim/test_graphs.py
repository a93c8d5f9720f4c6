"""Capture and replay."""

from __future__ import annotations

import pytest

from tests.support.simulated_npu import MS, Client, Machine

NONE, ACTIVE, INVALIDATED = 0, 1, 2
STREAM_CAPTURED, EVENT_CAPTURED, NOT_CAPTURED, MODE = 107027, 107028, 107029, 107030
CAPTURE_INVALIDATED = 507903


def begin(client: Client) -> None:
    client.kernel("k", 2_000)
    client.do("aclrtCreateStream", "&s")
    client.do("aclrtCreateEvent", "&e")
    client.do("aclmdlRICaptureBegin", "s", 0)


def status(client: Client) -> int:
    return client.do("aclmdlRICaptureGetInfo", "s", "&status", "&m")["status"]


@pytest.mark.parametrize(
    "replay",
    [
        ("aclmdlRIExecuteAsync", "g", "s"),
        ("aclmdlRIExecute", "g", -1),
        ("rtModelExecute", "g", "s", 0),
        ("rtModelExecuteSync", "g", "s", 0, -1),
        ("rtsModelExecute", "g", -1),
        ("rtsModelExecuteAsync", "g", "s"),
    ],
)
def test_a_graph_is_one_kernel_of_all_that_was_captured(wired: Machine, replay: tuple[str | int, ...]) -> None:
    with wired.client() as client:
        begin(client)
        assert status(client) == ACTIVE
        client.launch("k", "s", times=3)
        client.do("aclmdlRICaptureEnd", "s", "&g")
        assert status(client) == NONE
        assert wired.card()["kernels"] == 0
        assert client.call("npu_sim_graph_tasks", "g").code == 3
        for _ in range(2):
            client.do(str(replay[0]), *replay[1:])
        client.do("aclrtSynchronizeDevice")
        assert (wired.card()["kernels"], wired.card()["busy_ns"]) == (2, 12 * MS)
        client.do("aclmdlRIDestroy", "g")
        assert client.call("aclmdlRIExecuteAsync", "g", "s").code == 107000


@pytest.mark.parametrize(
    ("killer", "code"),
    [
        (("aclrtSynchronizeStream", "s"), STREAM_CAPTURED),
        (("aclrtSynchronizeStreamWithTimeout", "s", 10), STREAM_CAPTURED),
        (("aclrtStreamQuery", "s", "&q"), STREAM_CAPTURED),
        (("aclrtSynchronizeEvent", "e"), EVENT_CAPTURED),
        (("aclrtQueryEventStatus", "e", "&q"), EVENT_CAPTURED),
        (("rtEventQuery", "e"), EVENT_CAPTURED),
        (("aclrtSynchronizeDevice",), MODE),
    ],
)
def test_a_synchronise_kills_the_capture(wired: Machine, killer: tuple[str | int, ...], code: int) -> None:
    with wired.client() as client:
        begin(client)
        client.launch("k", "s")
        client.do("aclrtRecordEvent", "e", "s")
        assert client.call(str(killer[0]), *killer[1:]).code == code
        assert status(client) == INVALIDATED
        client.launch("k", "s")
        client.do("poke", "g", 0, 8, 77)
        ended = client.call("aclmdlRICaptureEnd", "s", "&g")
        assert (ended.code, ended["g"]) == (CAPTURE_INVALIDATED, 77)
        assert status(client) == NONE
        client.launch("k", "s")
        client.do("aclrtSynchronizeStream", "s")
        assert wired.card()["kernels"] == 1


def test_a_record_in_a_capture_becomes_part_of_the_graph(wired: Machine) -> None:
    with wired.client() as client:
        begin(client)
        client.launch("k", "s")
        client.do("aclrtRecordEvent", "e", "s")
        client.do("aclmdlRICaptureEnd", "s", "&g")
        assert client.call("npu_sim_graph_tasks", "g").code == 2


def test_other_streams_join_through_an_event(wired: Machine) -> None:
    with wired.client() as client:
        begin(client)
        client.do("aclrtCreateStream", "&t")
        client.do("aclrtCreateEvent", "&f")
        client.do("aclrtRecordEvent", "e", "s")
        client.do("aclrtStreamWaitEvent", "t", "e")
        client.launch("k", "t")
        client.do("aclrtRecordEvent", "f", "t")
        client.do("aclrtStreamWaitEvent", "s", "f")
        client.do("aclmdlRICaptureEnd", "s", "&g")
        assert wired.card()["kernels"] == 0
        client.do("aclmdlRIExecute", "g", -1)
        assert wired.card()["busy_ns"] == 2 * MS
        client.launch("k", "t")
        client.do("aclrtSynchronizeStream", "t")
        assert wired.card()["kernels"] == 2


def test_begin_and_end_come_in_pairs(wired: Machine) -> None:
    with wired.client() as client:
        begin(client)
        assert client.call("aclmdlRICaptureBegin", "s", 0).code == STREAM_CAPTURED
        client.do("aclmdlRICaptureEnd", "s", "&g")
        assert client.call("aclmdlRICaptureEnd", "s", "&g").code == NOT_CAPTURED


def test_other_streams_run_meanwhile(wired: Machine) -> None:
    with wired.client() as client:
        begin(client)
        client.launch("k", "0")
        client.do("aclrtSynchronizeStream", 0)
        assert (wired.card()["kernels"], status(client)) == (1, ACTIVE)
