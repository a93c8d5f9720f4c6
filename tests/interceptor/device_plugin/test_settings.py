from __future__ import annotations

from typing import Any

import pytest

from interceptor.device_plugin.settings import NodeSettings, parse
from interceptor.devices import Device
from vnpu.errors import ConfigError


def test_an_empty_file_means_the_defaults() -> None:
    assert parse(None, "n1") == NodeSettings(soft_slots=10, slots=None, soft=None)


def test_only_the_entry_of_the_node_counts() -> None:
    document = {
        "softSlots": 20,
        "nodes": [
            {"name": "n2", "hami-vnpu-core": True},
            {"name": "n1", "vDeviceCount": 6, "filterDevices": {"uuid": ["A"], "index": [1]}},
        ],
    }
    assert parse(document, "n1") == NodeSettings(20, 6, None, frozenset({"A"}), frozenset({1}))
    assert parse(document, "n2") == NodeSettings(20, None, soft=True)
    assert parse(document, "n3") == NodeSettings(20)


def test_filters_hide_chips_by_uuid_and_cards_by_number() -> None:
    settings = NodeSettings(hidden_uuids=frozenset({"A"}), hidden_cards=frozenset({1}))
    devices = [
        Device("A", "x", 0, 0, 0),
        Device("B", "x", 1, 0, 2),
        Device("C", "x", 1, 1, 3),
        Device("D", "x", 2, 0, 4),
    ]
    assert [device.uuid for device in devices if settings.offers(device)] == ["D"]


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ([], ""),
        ({"softslots": 3}, "softslots"),
        ({"softSlots": 0}, "softSlots"),
        ({"nodes": {}}, "nodes"),
        ({"nodes": [{}]}, "nodes[0].name"),
        ({"nodes": [{"name": "n1"}, {"name": "n1"}]}, "nodes[1].name"),
        ({"nodes": [{"name": "n1", "hami-vnpu-core": "true"}]}, "nodes[0].hami-vnpu-core"),
        ({"nodes": [{"name": "n1", "vDeviceCount": -1}]}, "nodes[0].vDeviceCount"),
        ({"nodes": [{"name": "n1", "filterDevices": {"uuids": []}}]}, "nodes[0].filterDevices.uuids"),
        ({"nodes": [{"name": "n1", "filterDevices": {"uuid": ["a;b"]}}]}, "nodes[0].filterDevices.uuid[0]"),
        ({"nodes": [{"name": "n1", "filterDevices": {"index": ["1"]}}]}, "nodes[0].filterDevices.index[0]"),
        ({"nodes": [{"name": "n1", "filterDevices": {"index": 1}}]}, "nodes[0].filterDevices.index"),
    ],
)
def test_a_fault_is_an_error_that_names_its_field(document: Any, path: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse(document, "n9")
    assert raised.value.path == path
