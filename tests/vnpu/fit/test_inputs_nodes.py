"""Nodes from the command line, from inventories and from Kubernetes; running pods."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import objects
from vnpu.chips import DEFAULT_CHIPS
from vnpu.documents import Document, DocumentError
from vnpu.errors import ConfigError
from vnpu.fit.arguments import CardGroup
from vnpu.fit.nodes import NodeList, running_pods
from vnpu.fit.terms import Surroundings, Taint

INVENTORY = {"nodes": [{"name": "n1", "chip": "Ascend910B3", "cards": 1}]}


def document(value: Any, number: int = 1) -> Document:
    return Document("nodes.yaml", number, "", value)


def read(*values: Any) -> NodeList:
    nodes = NodeList(DEFAULT_CHIPS)
    for number, value in enumerate(values, start=1):
        nodes.add_document(document(value, number))
    return nodes


def test_soft_nodes_of_the_command_line() -> None:
    nodes = NodeList(DEFAULT_CHIPS)
    nodes.add_cards([CardGroup("Ascend910B3", 2), CardGroup("Ascend310P", 1)])
    assert [(node.name, node.soft, len(node.cards)) for node in nodes.nodes] == [
        ("node-0", True, 2),
        ("node-1", True, 1),
    ]
    assert [card.slots for node in nodes.nodes for card in node.cards] == [10, 10, 10]
    with pytest.raises(ConfigError, match=r'--card: "Ascend910B": known chips are .*Ascend910B3'):
        NodeList(DEFAULT_CHIPS).add_cards([CardGroup("Ascend910B", 8)])


def test_kubernetes_nodes_and_inventories_together() -> None:
    nodes = read(objects.node(objects.card("A", 0), objects.card("B", 1), name="k1"), INVENTORY)
    assert [(node.name, [card.uuid for card in node.cards]) for node in nodes.nodes] == [
        ("k1", ["A", "B"]),
        ("n1", ["n1-0"]),
    ]
    assert nodes.warnings == []


def test_a_node_written_by_hand_needs_no_status() -> None:
    node = objects.node(objects.card("A"))
    del node["status"]
    (found,) = read(node).nodes
    assert [card.healthy for card in found.cards] == [True]


@pytest.mark.parametrize("where", ["capacity", "allocatable"])
def test_cards_that_are_offered_and_not_registered_are_told(where: str) -> None:
    node = objects.node(name="worker")
    offers = {**node, "status": {where: {"huawei.com/Ascend910B3": "8", "huawei.com/Ascend310P": "0", "cpu": "4"}}}
    (warning,) = read(offers).warnings
    assert warning.endswith(": absent, though kubelet offers 8 huawei.com/Ascend910B3: no card is known")


def test_an_unschedulable_node_takes_nothing() -> None:
    nodes = read({**objects.node(objects.card("A")), "spec": {"unschedulable": True}})
    assert nodes.nodes[0].unsafe == "it is unschedulable (kubectl cordon)"
    assert nodes.warnings == ["node n1 takes no new slices: it is unschedulable (kubectl cordon)"]
    for spec in ({"unschedulable": False}, {}, None):
        assert read({**objects.node(objects.card("A")), "spec": spec}).nodes[0].unsafe == ""


@pytest.mark.parametrize(
    ("conditions", "unsafe"),
    [
        ([{"type": "Ready", "status": "False"}], 'it is not ready (condition Ready is "False")'),
        ([{"type": "DiskPressure", "status": "False"}, {"type": "Ready", "status": "Unknown"}], 'Ready is "Unknown")'),
        ([{"type": "Ready"}], "it is not ready (condition Ready is absent)"),
        ([{"type": "Ready", "status": "True"}, {"type": "MemoryPressure", "status": "True"}], ""),
        ([], ""),
        (None, ""),
        ([7], ""),
    ],
)
def test_a_node_that_is_not_ready_takes_nothing(conditions: Any, unsafe: str) -> None:
    node = objects.node(objects.card("A"))
    node["status"]["conditions"] = conditions
    (found,) = read(node).nodes
    assert found.unsafe.endswith(unsafe)
    assert bool(found.unsafe) is bool(unsafe)


def test_everything_that_keeps_pods_away_is_said() -> None:
    node = objects.node(annotations={"hami.io/node-register-Ascend910B3": "[{"})
    node["spec"] = {"unschedulable": True}
    node["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    (found,) = read(node).nodes
    assert found.unsafe.startswith("metadata.annotations[hami.io/node-register-")
    assert found.unsafe.endswith('; it is unschedulable (kubectl cordon); it is not ready (condition Ready is "False")')


def test_labels_and_taints_are_kept_beside_the_cards() -> None:
    kubernetes = objects.node(objects.card("A"), name="k")
    kubernetes["metadata"]["labels"] = {"zone": "a"}
    kubernetes["spec"] = {"taints": [{"key": "npu", "effect": "NoSchedule"}]}
    labelled = {"nodes": [{"name": "i", "chip": "Ascend910B3", "cards": 1, "labels": {"zone": "b"}}]}
    nodes = read(kubernetes, labelled, INVENTORY)
    nodes.add_cards([CardGroup("Ascend910B3", 1)])
    assert nodes.surroundings == {
        "k": Surroundings({"zone": "a"}, (Taint("npu", "", "NoSchedule"),)),
        "i": Surroundings({"zone": "b"}),
        "n1": Surroundings(),
        "node-0": Surroundings(),
    }


def test_what_cannot_be_read_is_unsafe_and_said() -> None:
    nodes = read(objects.node(annotations={"hami.io/node-register-Ascend910B3": "[{"}))
    assert nodes.nodes[0].unsafe
    assert nodes.warnings[-1].startswith("node n1 takes no new slices: metadata.annotations[hami.io/node-register-")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([7], "document 1: 7: Kubernetes Nodes or an inventory"),
        ([[]], r"document 1: \[\]: "),
        ([{"kind": "Pod"}], 'document 1: kind: "Pod": Node, or an inventory'),
        ([{"kind": "Node"}], r"document 1: metadata\.name: absent"),
        ([{**objects.node(), "spec": 7}], "document 1: spec: 7"),
        ([{**objects.node(), "spec": {"taints": {}}}], r"document 1: spec\.taints: {}: a list"),
        ([{"node": []}], "document 1: node: .*did you mean nodes"),
        ([INVENTORY, INVENTORY], 'document 2: "n1": a node of this name stands at nodes.yaml, document 1 already'),
        ([INVENTORY, objects.node()], 'document 2: "n1": a node of this name'),
    ],
)
def test_faults_name_the_document(values: list[Any], words: str) -> None:
    with pytest.raises(DocumentError, match=words):
        read(*values)


def test_running_pods() -> None:
    pod = objects.pod()
    assert list(running_pods([document(pod)])) == [pod]
    for value, words in (
        ({"kind": "Node"}, 'kind: "Node": Pod is expected'),
        ({}, "kind: absent: Pod is expected"),
        ("Pod", '"Pod": a Pod is expected'),
    ):
        with pytest.raises(DocumentError, match=words):
            list(running_pods([document(value)]))
