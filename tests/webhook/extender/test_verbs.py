from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support import objects
from vnpu import names
from vnpu.admission.settings import DevicePlugin, Settings
from vnpu.chips import DEFAULT_CHIPS
from vnpu.errors import InputError
from vnpu.fit.policy import DEFAULT_POLICY
from webhook.extender import pods, verbs, wire
from webhook.extender.state import State

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OURS = Settings(device_plugin=DevicePlugin.VNPU)
HAMIS = Settings(device_plugin=DevicePlugin.HAMI)


def state_of(*nodes: Any, running: tuple[Any, ...] = ()) -> State:
    state = State(DEFAULT_CHIPS, DEFAULT_POLICY)
    for one in nodes:
        one["metadata"] |= {"uid": one["metadata"]["name"], "resourceVersion": "1"}
        state.put_node(one)
    for one in running:
        one["metadata"]["resourceVersion"] = "1"
        read = pods.read(one, DEFAULT_CHIPS)
        assert read is not None
        state.put_pod(read)
    return state


def node(name: str, cards: int = 2, **fields: Any) -> Any:
    return objects.node(*(objects.card(f"{name}-{index}", index) for index in range(cards)), name=name, **fields)


def holder(name: str, uuid: str, memory: int, core: int, **fields: Any) -> Any:
    text = f"{uuid},{objects.CHIP},{memory},{core}:;"
    return objects.pod(name=name, node=uuid.partition("-")[0], text=text, **fields)


def asking(memory: int = 8192, core: int = 20, **fields: Any) -> Any:
    container = objects.container("app", count=1, memory=memory, core=core)
    return objects.pod(container, name="new", node="", phase="Pending", **fields)


class TestFilter:
    def test_refusals_are_equal_where_the_reasons_are_and_the_nearest_tells_what_is_missing(self) -> None:
        state = state_of(
            *(node(name) for name in ("a", "b", "c")),
            objects.node(name="d", offered=None),
            running=(
                *(holder(f"{name}{index}", f"{name}-{index}", 60000, 50) for name in "ab" for index in range(2)),
                holder("c0", "c-0", 50000, 50),
                holder("c1", "c-1", 65536, 50),
            ),
        )
        answer = verbs.filter_nodes(asking(16384), ("a", "b", "c", "d", "e"), state, OURS, NOW)
        assert answer.fits == ()
        assert answer.refused == {
            "a": "CardInsufficientMemory",
            "b": "CardInsufficientMemory",
            "c": "CardInsufficientMemory (nearest: on the best card (c card 0) 848 MiB are missing)",
            "d": "NodeInsufficientDevice",
            "e": "the extender does not know the node yet",
        }

    def test_where_a_node_fits_nobody_is_nearest(self) -> None:
        state = state_of(node("a"), node("b"), running=(*(holder(f"b{i}", f"b-{i}", 65536, 100) for i in range(2)),))
        answer = verbs.filter_nodes(asking(), ("b", "a"), state, OURS, NOW)
        assert answer.fits == ("a",)
        assert answer.refused == {"b": "CardInsufficientMemory"}

    def test_nothing_changes(self) -> None:
        state = state_of(node("a"))
        before = state.index.held("a-0")
        verbs.filter_nodes(asking(), ("a",), state, OURS, NOW)
        assert not state.assumed
        assert state.index.held("a-0") == before

    @pytest.mark.parametrize("memory", [70000, 0])
    def test_what_no_card_may_give_is_refused_everywhere_for_the_same(self, memory: int) -> None:
        answer = verbs.filter_nodes(asking(memory), ("a", "b"), state_of(node("a"), node("b")), OURS, NOW)
        assert not answer.fits
        assert len(set(answer.refused.values())) == 1
        assert "-memory" in answer.refused["a"]

    def test_a_pod_without_an_npu_is_none_of_ours(self) -> None:
        plain = objects.pod(objects.container("app"), node="", phase="Pending")
        answer = verbs.filter_nodes(plain, ("a",), state_of(node("a")), OURS, NOW)
        assert "none asks for an NPU" in answer.refused["a"]

    @pytest.mark.parametrize(
        ("section", "field", "odd"),
        [("metadata", "annotations", "x"), ("spec", "containers", 5), ("spec", "containers", [None])],
    )
    def test_what_is_no_pod_fits_nowhere(self, section: str, field: str, odd: Any) -> None:
        document = asking()
        document[section][field] = odd
        state = state_of(node("a"))
        answer = verbs.filter_nodes(document, ("a",), state, OURS, NOW)
        assert field in answer.refused["a"]
        assert verbs.scores(document, ("a",), state, OURS) == {"a": 0}

    @pytest.mark.parametrize(("settings", "lock", "silent"), [(OURS, "", True), (HAMIS, "", False), (HAMIS, "x", True)])
    def test_a_device_plugin_that_does_not_answer_is_not_counted_on(
        self, settings: Settings, lock: str, *, silent: bool
    ) -> None:
        marks = {names.BIND_PHASE: names.BIND_PHASE_ALLOCATING, names.BIND_TIME: "100"}
        waits = holder("w", "a-0", 8192, 20, phase="Pending", annotations=marks)
        state = state_of(node("a", annotations={names.NODE_LOCK: lock} if lock else None), node("b"), running=(waits,))
        answer = verbs.filter_nodes(asking(), ("a", "b"), state, settings, NOW)
        assert ("a" in answer.refused) is silent
        assert "b" in answer.fits


class TestScores:
    def test_the_fullest_gets_the_highest_under_binpack_and_the_emptiest_under_spread(self) -> None:
        state = state_of(
            node("a"), node("b"), node("c"), running=(holder("b0", "b-0", 8192, 20), holder("c0", "c-0", 4096, 10))
        )
        found = verbs.scores(asking(), ("a", "b", "c"), state, OURS)
        assert (found["a"], found["b"]) == (0, 10)
        assert 0 < found["c"] < 10
        spread = asking(annotations={names.NODE_POLICY: "spread"})
        assert verbs.scores(spread, ("a", "b", "c"), state, OURS)["a"] == 10

    def test_equal_nodes_get_the_same(self) -> None:
        assert verbs.scores(asking(), ("a", "b"), state_of(node("a"), node("b")), OURS) == {"a": 10, "b": 10}

    def test_what_does_not_hold_the_pod_gets_nothing(self) -> None:
        state = state_of(node("a"), node("b", cards=0))
        assert verbs.scores(asking(), ("a", "b", "c"), state, OURS) == {"a": 10, "b": 0, "c": 0}


POD = asking()


class TestWire:
    @pytest.mark.parametrize("name", ["nodenames", "NodeNames"])
    def test_names_of_nodes(self, name: str) -> None:
        question = wire.read_question(json.dumps({"pod": POD, name: ["a", "b"]}).encode())
        answer = json.loads(wire.filtered(question, verbs.Answer(("b",), {"a": "why"})))
        assert answer == {"failedAndUnresolvableNodes": {"a": "why"}, "nodenames": ["b"]}

    def test_whole_nodes(self) -> None:
        nodes = {"items": [{"metadata": {"name": name}, "spec": {}} for name in ("a", "b")]}
        question = wire.read_question(json.dumps({"Pod": POD, "Nodes": nodes}).encode())
        assert question.names == ("a", "b")
        answer = json.loads(wire.filtered(question, verbs.Answer(("b",), {"a": "why"})))
        assert answer["nodes"]["items"] == nodes["items"][1:]
        assert "nodenames" not in answer

    def test_scores(self) -> None:
        assert json.loads(wire.scored({"a": 10, "b": 0})) == [{"host": "a", "score": 10}, {"host": "b", "score": 0}]

    def test_an_order(self) -> None:
        order = {"podName": "p", "podNamespace": "n", "podUID": "u", "node": "a"}
        assert wire.read_order(json.dumps(order).encode()) == ("n", "p", "u", "a")
        assert json.loads(wire.failed("")) == {}
        assert json.loads(wire.failed("no")) == {"error": "no"}

    @pytest.mark.parametrize(
        "body",
        [b"", b"[]", b"{", b'{"pod": 1, "nodenames": []}', b'{"pod": {}, "nodenames": []}', b'{"nodenames": ["a"]}']
        + [json.dumps({"pod": POD, **more}).encode() for more in ({}, {"nodenames": [1]}, {"nodes": {"items": [1]}})],
    )
    def test_what_is_no_question(self, body: bytes) -> None:
        with pytest.raises(InputError):
            wire.read_question(body)

    @pytest.mark.parametrize(
        "body",
        [
            b"{}",
            b"1",
            b'{"podName": "p", "podNamespace": "n", "podUID": "", "node": "a"}',
            b'{"podName": "\\ud800", "podNamespace": "n", "podUID": "u", "node": "a"}',
        ],
    )
    def test_what_is_no_order(self, body: bytes) -> None:
        with pytest.raises(InputError):
            wire.read_order(body)
