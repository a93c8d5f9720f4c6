from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from interceptor.device_plugin import report
from interceptor.device_plugin.settings import NodeSettings
from tests.support.device_plugin import device, inventory
from vnpu import ledger
from vnpu.chips import DEFAULT_CHIPS

NOW = datetime(2026, 8, 21, 10, 0, 0, tzinfo=UTC)
REGISTER = "hami.io/node-register-Ascend910B3"
HANDSHAKE = "hami.io/node-handshake-Ascend910B3"


def test_a_fresh_node_gets_all_annotations_byte_for_byte_as_hami_reads_them() -> None:
    assert report.node_annotations({}, inventory(), NOW) == {
        "hami-vnpu-core": "true",
        REGISTER: '[{"id":"U0","count":10,"devmem":65536,"devcore":100,"type":"Ascend910B3","health":true,'
        '"custominfo":{"NetworkID":0}},{"id":"U1","index":1,"count":10,"devmem":65536,"devcore":100,'
        '"type":"Ascend910B3","health":true,"custominfo":{"NetworkID":0}}]',
        HANDSHAKE: "Reported_2026.08.21 10:00:00",
    }


def test_a_hard_node_tells_ai_cores_and_template_slots() -> None:
    written = report.node_annotations({}, inventory(device(0), soft=False), NOW)
    assert written["hami-vnpu-core"] == "false"
    assert '"count":4,"devmem":65536,"devcore":20,' in written[REGISTER]


def test_what_is_said_is_not_said_again() -> None:
    said = report.node_annotations({}, inventory(), NOW)
    assert report.node_annotations(said, inventory(), NOW + timedelta(minutes=4)) == {}
    changed = report.node_annotations(said, inventory(device(0), device(1, fault="alarm")), NOW)
    assert changed.keys() == {REGISTER}


@pytest.mark.parametrize(
    ("value", "speaks"),
    [
        ("Requesting_2026-08-21 09:59:59", True),
        ("Reported_2026.08.21 09:56:00", False),
        ("Reported_2026.08.21 09:54:00", True),
        ("Reported_2026.08.21 18:00:00", True),
        ("Deleted_2026.08.21 09:59:59", True),
        ("", True),
        (None, True),
    ],
)
def test_the_handshake_is_answered_and_kept_fresh(value: Any, speaks: bool) -> None:  # noqa: FBT001 - a parameter of the case
    said = report.node_annotations({}, inventory(), NOW) | {HANDSHAKE: value}
    written = report.node_annotations(said, inventory(), NOW)
    assert written == ({HANDSHAKE: "Reported_2026.08.21 10:00:00"} if speaks else {})


def test_a_node_without_cards_says_nothing() -> None:
    assert report.node_annotations({}, inventory(device(0, chip="unknown")), NOW) == {}


def test_the_books_read_what_is_written() -> None:
    offered = inventory(device(0), device(5, fault="alarm"), cordoned={"U0"})
    written = report.node_annotations({}, offered, NOW)
    node, warnings = ledger.read_node({"metadata": {"name": "n1", "annotations": written}}, DEFAULT_CHIPS)
    assert warnings == ()
    assert node.cards == tuple(one.card for one in offered.cards)
    assert (node.soft, node.unsafe) == (True, "")


MEMORY = "/status/capacity/huawei.com~1Ascend910B3-memory"
CORE = "/status/capacity/huawei.com~1Ascend910B3-core"


def test_memory_and_core_are_stated_in_the_nodes_status() -> None:
    assert report.node_capacity({"cpu": "8"}, inventory(device(0), device(1, fault="alarm"))) == [
        {"op": "add", "path": MEMORY, "value": "131072"},
        {"op": "add", "path": CORE, "value": "200"},
    ]


def test_what_is_stated_is_not_stated_again_however_it_is_spelled() -> None:
    stated = {"huawei.com/Ascend910B3-memory": "128Ki", "huawei.com/Ascend910B3-core": 200}
    assert report.node_capacity(stated, inventory()) == []


def test_what_kubelet_wiped_is_stated_again() -> None:
    wiped = {"huawei.com/Ascend910B3-memory": "0", "huawei.com/Ascend910B3-core": "200"}
    assert [one["path"] for one in report.node_capacity(wiped, inventory())] == [MEMORY]


def test_a_node_that_turned_hard_takes_its_core_back() -> None:
    stated = {"huawei.com/Ascend910B3-memory": "131072", "huawei.com/Ascend910B3-core": "200"}
    assert report.node_capacity(stated, inventory(soft=False)) == [{"op": "add", "path": CORE, "value": "0"}]
    assert report.node_capacity({"cpu": "8"}, inventory(soft=False, settings=NodeSettings()))[1:] == []


def test_a_node_that_kubelet_has_not_described_waits() -> None:
    assert report.node_capacity({}, inventory()) == []
