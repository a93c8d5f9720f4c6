"""The state, told of changes one by one, knows what the ledger makes of the whole at once."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import objects
from vnpu import ledger, names
from vnpu.annotations import ticket as tickets
from vnpu.cards import NO_USE
from vnpu.chips import DEFAULT_CHIPS
from vnpu.errors import AnnotationError
from vnpu.fit.policy import DEFAULT_POLICY
from webhook.extender import pods
from webhook.extender.state import Stage, State

NODES = ("n0", "n1", "n2")
CARDS = tuple(f"{node}-{index}" for node in NODES for index in range(2))


def entry(uuid: str, memory: int = 8192, core: int = 20, chip: str = objects.CHIP) -> str:
    return f"{uuid},{chip},{memory},{core}:;"


TEXTS = (
    *(entry(uuid) for uuid in CARDS),
    entry("n0-0", 60000, 90),
    entry("gone"),
    "not a text",
    entry("n0-0", chip="Ascend310P"),
    None,
)


def node_document(name: str, chance: random.Random, version: int) -> Any:
    mine = [uuid for uuid in CARDS if uuid.startswith(name)]
    if chance.random() < 0.15:  # a card that another node registers as well
        mine[0] = chance.choice(CARDS)
    found = objects.node(*(objects.card(uuid, index) for index, uuid in enumerate(dict.fromkeys(mine))), name=name)
    if chance.random() < 0.1:
        found["metadata"]["annotations"][names.node_register(objects.CHIP)] = "["
    found["metadata"] |= {"uid": f"uid-{name}", "resourceVersion": str(version)}
    return found


def pod_document(name: str, chance: random.Random, version: int) -> Any:
    found = objects.pod(
        name=name,
        node=chance.choice(("", *NODES, "elsewhere")),
        phase=chance.choice(("Pending", "Running", "Running", "Succeeded")),
        text=chance.choice(TEXTS),
        annotations={names.ASSIGNED_NODE: chance.choice(NODES)} if chance.random() < 0.3 else None,
    )
    found["metadata"]["resourceVersion"] = str(version)
    return found


def compare(state: State, nodes: dict[str, Any], running: dict[str, Any]) -> None:
    read = [ledger.read_node(nodes[name], DEFAULT_CHIPS)[0] for name in sorted(nodes)]
    books = ledger.book(read, running.values(), DEFAULT_CHIPS)
    index = state.index
    known = {node.name: node for node in index.nodes}
    assert known.keys() == nodes.keys()
    for node in books.nodes:
        assert bool(known[node.name].unsafe) == bool(node.unsafe), (node.unsafe, known[node.name].unsafe)
        assert known[node.name].cards == node.cards
        for card in node.cards:
            assert index.held(card.uuid) == books.used.get(card.uuid, NO_USE), card.uuid


@given(st.integers(0, 2**32))
def test_one_by_one_is_as_good_as_all_at_once(seed: int) -> None:
    chance = random.Random(seed)
    state = State(DEFAULT_CHIPS, DEFAULT_POLICY)
    nodes: dict[str, Any] = {}
    running: dict[str, Any] = {}
    for version in range(1, 25):
        name = chance.choice(NODES)
        pod = f"p{chance.randrange(5)}"
        match chance.randrange(8):
            case 0 | 1 | 2:
                nodes[name] = node_document(name, chance, version)
                state.put_node(nodes[name])
            case 3:
                nodes.pop(name, None)
                state.drop_node(name)
            case 4:
                running.pop(pod, None)
                state.drop_pod(f"uid-{pod}")
            case _:
                running[pod] = pod_document(pod, chance, version)
                read = pods.read(running[pod], DEFAULT_CHIPS)
                assert read is not None
                state.put_pod(read)
        if chance.random() < 0.5:
            compare(state, nodes, running)
    state.replace_nodes(nodes.values())
    listed = [pods.read(pod, DEFAULT_CHIPS) for pod in running.values()]
    state.replace_pods([pod for pod in listed if pod is not None], state.open_turns())
    compare(state, nodes, running)


@pytest.fixture
def state() -> State:
    made = State(DEFAULT_CHIPS, DEFAULT_POLICY)
    document = objects.node(objects.card("n0-0"), name="n0")
    document["metadata"] |= {"uid": "u", "resourceVersion": "5"}
    made.put_node(document)
    return made


def pod(*, node: str, text: str | None, ticket: str = "", phase: str = "Pending") -> pods.Pod:
    marks = {names.BIND_PHASE: names.BIND_PHASE_ALLOCATING, names.BIND_TIME: "100", names.BIND_TICKET: ticket}
    document = objects.pod(node=node, text=text, phase=phase, annotations=marks)
    document["metadata"]["resourceVersion"] = "7"
    found = pods.read(document, DEFAULT_CHIPS)
    assert found is not None
    return found


def lease(ticket: str, version: int = 1) -> Any:
    metadata = {"name": names.TURN_LEASE_PREFIX + "n0", "resourceVersion": str(version)}
    return {"metadata": metadata, "spec": {"holderIdentity": ticket}}


class TestAssumed:
    def test_a_share_that_is_spoken_for_is_held_until_the_watch_shows_the_pod(self, state: State) -> None:
        bound = pod(node="n0", text=entry("n0-0"))
        state.assume(bound, Stage.PLANNED, 0)
        state.put_pod(pod(node="", text=None))
        assert state.index.held("n0-0").memory_mib == 8192
        state.hold(bound.uid, 1)
        state.put_pod(bound)
        assert state.index.held("n0-0").slots == 1
        assert not state.assumed

    def test_what_is_forgotten_is_free(self, state: State) -> None:
        state.assume(pod(node="n0", text=entry("n0-0")), Stage.PLANNED, 0)
        state.forget("uid-app")
        assert state.index.held("n0-0") == NO_USE

    def test_a_pod_that_is_gone_gives_its_share_back_unless_somebody_is_at_work_on_it(self, state: State) -> None:
        state.assume(pod(node="n0", text=entry("n0-0")), Stage.PLANNED, 0)
        state.drop_pod("uid-app")
        assert state.index.held("n0-0").slots == 1
        state.hold("uid-app", 1)
        state.drop_pod("uid-app")
        assert state.index.held("n0-0") == NO_USE

    def test_an_older_node_than_is_known_changes_nothing(self, state: State) -> None:
        older = objects.node(name="n0")
        older["metadata"] |= {"uid": "u", "resourceVersion": "4"}
        state.put_node(older)
        assert [card.uuid for card in state.nodes["n0"].node.cards] == ["n0-0"]


class TestTurns:
    TICKET = "3,uid-app,team,app,ab"

    def test_a_turn_is_settled_when_the_watch_shows_its_pod_bound_in_it(self, state: State) -> None:
        state.put_turn(lease(self.TICKET))
        assert str(state.unsettled("n0")) == self.TICKET
        state.put_pod(pod(node="n0", text=entry("n0-0"), ticket="2,uid-app,team,app,ab"))
        assert state.unsettled("n0") is not None, "bound in another turn"
        state.put_pod(pod(node="n0", text=entry("n0-0"), ticket=self.TICKET))
        assert state.unsettled("n0") is None

    def test_a_turn_is_settled_by_a_list_without_its_pod_that_was_begun_after_it(self, state: State) -> None:
        before = state.open_turns()
        state.put_turn(lease(self.TICKET))
        state.replace_pods([], before)
        assert state.unsettled("n0") is not None
        state.replace_pods([pod(node="", text=None)], state.open_turns())
        assert state.unsettled("n0") is not None, "it may still be bound"
        state.replace_pods([], state.open_turns())
        assert state.unsettled("n0") is None

    def test_a_lease_that_is_removed_does_not_end_its_turn(self, state: State) -> None:
        state.put_turn(lease(self.TICKET))
        state.drop_turn("n0")
        assert state.turn("n0").version == ""
        assert str(state.unsettled("n0")) == self.TICKET
        assert state.next_ticket("n0", pod(node="", text=None), "x").number == 4

    def test_a_lease_that_names_no_ticket_is_a_fault(self, state: State) -> None:
        state.put_turn(lease("somebody"))
        assert "holderIdentity" in state.turn("n0").fault

    @pytest.mark.parametrize("text", ["", "1,a,b,c", "0,a,b,c,d", "x,a,b,c,d", "1,a,,c,d", "1,a,b,c,d,e", None])
    def test_what_is_no_ticket(self, text: Any) -> None:
        with pytest.raises(AnnotationError):
            tickets.decode(text)


def test_pods_that_wait_for_the_device_plugin(state: State) -> None:
    state.put_pod(pod(node="n0", text=entry("n0-0")))
    assert [waiting.name for waiting, _ in state.unserved("n0")] == ["app"]
    assert state.silent(101) == {"n0"}
    assert state.silent(100) == set()
    state.put_pod(pod(node="n0", text=entry("n0-0"), phase="Running"))
    assert not list(state.unserved("n0"))
    assert state.silent(101) == set()


@pytest.mark.parametrize("written", ["9" * 5000, "٣", "-1", "soon", ""])
def test_a_time_that_is_none_is_long_ago(state: State, written: str) -> None:
    document = objects.pod(node="n0", text=entry("n0-0"), phase="Pending")
    marks = {names.BIND_PHASE: names.BIND_PHASE_ALLOCATING, names.BIND_TIME: written}
    document["metadata"]["annotations"] |= marks
    document["metadata"]["resourceVersion"] = "7"
    found = pods.read(document, DEFAULT_CHIPS)
    assert found is not None
    state.put_pod(found)
    assert state.silent(1) == {"n0"}


def test_nothing_is_kept_of_what_is_gone(state: State) -> None:
    def sizes() -> list[int]:
        return [len(part) for part in vars(state).values() if hasattr(part, "__len__")]

    assert not state.index.held("n9-0").slots
    before = sizes()
    node = objects.node(objects.card("n9-0"), name="n9")
    node["metadata"] |= {"uid": "u9", "resourceVersion": "6"}
    state.put_node(node)
    state.put_pod(pod(node="n9", text=entry("n9-0")))
    assert sizes() != before
    state.drop_pod("uid-app")
    state.drop_node("n9")
    assert not state.index.held("n9-0").slots
    assert sizes() == before
