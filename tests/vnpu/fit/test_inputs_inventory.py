"""Nodes written down by hand."""

from __future__ import annotations

from typing import Any

import pytest

from vnpu.chips import DEFAULT_CHIPS
from vnpu.errors import ConfigError
from vnpu.fit import inventory


def parse(**fields: Any) -> Any:
    return inventory.parse({"nodes": [{"name": "n1", "chip": "Ascend910B3", "cards": 2} | fields]}, DEFAULT_CHIPS)[
        0
    ].node


def test_a_hard_node_by_default() -> None:
    node = parse()
    assert (node.name, node.soft, node.unsafe, node.cordoned) == ("n1", False, "", frozenset())
    assert [(card.uuid, card.index) for card in node.cards] == [("n1-0", 0), ("n1-1", 1)]
    card = node.cards[0]
    assert (card.chip, card.memory_mib, card.ai_core, card.ai_cpu) == ("Ascend910B3", 65536, 20, 7)
    assert (card.slots, card.healthy, card.network_id) == (4, True, None)


def test_a_soft_node_has_ten_slots_unless_it_says_so() -> None:
    assert parse(soft=True).cards[0].slots == 10
    assert parse(soft=True, slots=64).cards[0].slots == 64
    assert parse(slots=2).cards[0].slots == 2
    assert parse(soft=True, slots=None).cards[0].slots == 10


def test_health_and_labels() -> None:
    assert not any(card.healthy for card in parse(healthy=False, labels={"zone": "a"}).cards)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ([], "a mapping is expected"),
        ({}, "nodes: absent: a list of nodes"),
        ({"nodes": {}}, "nodes: {}: a list of nodes"),
        ({"node": []}, "node: .*unknown key; did you mean nodes"),
        ({"nodes": [7]}, r"nodes\[0\]: 7: a mapping"),
        ({"nodes": [{"name": "n", "chip": "Ascend910B3", "card": 8}]}, r"nodes\[0\].card: 8: .*did you mean cards"),
        ({"nodes": [{"name": "n", "chip": "Ascend910B3"}]}, r"nodes\[0\].cards: absent: a whole number from 1 to 1024"),
        ({"nodes": [{"name": "n", "chip": "Ascend910B", "cards": 1}]}, r"\.chip: \"Ascend910B\": known chips are Asc"),
        ({"nodes": [{"chip": "Ascend910B3", "cards": 1}]}, r"nodes\[0\].name: absent"),
    ],
)
def test_faults_name_the_field(document: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        inventory.parse(document, DEFAULT_CHIPS)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("name", "N1", "lower-case"),
        ("name", "n,1", "lower-case"),
        ("name", "-n1", "lower-case"),
        ("name", "n" * 254, "at most 253"),
        ("name", 1, "text"),
        ("cards", "8", "a whole number"),
        ("cards", True, "a whole number"),
        ("cards", 1025, "from 1 to 1024"),
        ("cards", 10**12, "from 1 to 1024"),
        ("soft", "true", "without quotes"),
        ("healthy", 1, "true or false"),
        ("slots", 0, "from 1"),
        ("labels", ["a"], "a mapping"),
        ("labels", {"zone": 1}, r"labels\.zone: 1: a text"),
    ],
)
def test_values_that_are_no_good(field: str, value: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        parse(**{field: value})
    assert caught.value.path.startswith(f"nodes[0].{field}")
