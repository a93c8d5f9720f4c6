"""The index answers as the plain rules do, applied to every node, whatever happened before."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.cluster import B3, C, card, held_soft, node, pod, soft
from tests.support.cluster_strategies import CHIPS, among, nodes, pods, riddles, uses
from tests.support.examples import examples
from vnpu import names
from vnpu.annotations.policies import CardPolicy, NodePolicy
from vnpu.cards import NO_USE, Node, Use
from vnpu.errors import AnnotationError, InputError, RequestError
from vnpu.fit import index as index_module
from vnpu.fit import roster
from vnpu.fit.answers import Placement, Unplaced
from vnpu.fit.index import Index
from vnpu.fit.misses import Tally
from vnpu.fit.place import connection_of, place
from vnpu.fit.policy import Policy
from vnpu.fit.rules import fit
from vnpu.fit.scores import node_load
from vnpu.mode import Mode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from vnpu.request import PodRequest

POLICIES = st.builds(
    Policy,
    st.sampled_from(NodePolicy),
    st.sampled_from([(CardPolicy.SPREAD,), (CardPolicy.BINPACK,), (CardPolicy.MUTEX, CardPolicy.SPREAD)]),
)


class Plain:
    """The rules applied to every node, and books kept as simply as can be."""

    def __init__(self, nodes: Iterable[Node], used: Mapping[str, Use], policy: Policy) -> None:
        self.nodes = list(nodes)
        self.used = dict(used)
        self.policy = policy

    def place(self, request: PodRequest) -> Placement | Unplaced:
        return place(request, self.nodes, self.used, self.policy)

    def book(self, placement: Placement, sign: int) -> None:
        for uuid, use in placement.holds().items():
            before = self.used.get(uuid, NO_USE)
            self.used[uuid] = before.plus(use) if sign > 0 else before.minus(use)

    def update(self, node: Node, used: Mapping[str, Use]) -> None:
        places = [one.name for one in self.nodes]
        place_of = places.index(node.name) if node.name in places else len(places)
        self.drop_uses(node.name)
        self.nodes[place_of : place_of + 1] = [node]
        self.used |= {card.uuid: used.get(card.uuid, NO_USE) for card in node.cards}

    def remove(self, name: str) -> None:
        self.drop_uses(name)
        self.nodes = [known for known in self.nodes if known.name != name]

    def drop_uses(self, name: str) -> None:
        for uuid in [entry.uuid for known in self.nodes if known.name == name for entry in known.cards]:
            self.used.pop(uuid, None)


def twin(one: Node, name: str) -> Node:
    """The node under another name."""
    uuids = {entry.uuid: f"{name}-{entry.index}" for entry in one.cards}
    return replace(
        one,
        name=name,
        cards=tuple(replace(entry, uuid=uuids[entry.uuid]) for entry in one.cards),
        cordoned=frozenset(uuids[uuid] for uuid in one.cordoned),
    )


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[Node], dict[str, Use]]:
    """Nodes of one or two chips, many of them alike, and what is held of them."""
    chips = draw(st.lists(st.sampled_from(CHIPS), min_size=1, max_size=2, unique=True))
    found: list[Node] = []
    held: dict[str, Use] = {}
    for number in range(draw(st.integers(1, 6))):
        name = f"n{number}"
        if found and draw(st.booleans()):
            first = draw(st.sampled_from(found))
            one = twin(first, name)
            there = {f"{name}-{entry.index}": held[entry.uuid] for entry in first.cards if entry.uuid in held}
        else:
            one = draw(nodes(draw(st.sampled_from(chips)), name))
            if draw(st.integers(0, 9)) == 7:
                one = replace(one, unsafe="a card is gone")
            there = draw(uses(one)) if draw(st.booleans()) else {}
        found.append(one)
        held |= there
    return found, held


def words_of(cluster: list[Node]) -> list[Any]:
    known = {entry.chip for one in cluster for entry in one.cards}
    return [chip for chip in CHIPS if chip.common_word in known] or [B3]


@st.composite
def requests(draw: st.DrawFn, cluster: list[Node]) -> PodRequest:
    of = draw(st.sampled_from(words_of(cluster)))
    uuids = tuple(entry.uuid for one in cluster for entry in one.cards)
    return draw(pods(of, uuids, draw(among((Mode.SOFT, Mode.SOFT, Mode.HARD)))))


def same(found: Placement | Unplaced, expected: Placement | Unplaced) -> None:
    assert found == expected
    if isinstance(found, Unplaced) and isinstance(expected, Unplaced):
        assert list(found.nodes.items()) == list(expected.nodes.items())
        assert list(found.reasons) == list(expected.reasons)
        assert len(found.nodes) == len(expected.nodes)


class Both:
    """An index and the plain rules, which go through the same."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        cluster, used = data.draw(clusters())
        policy = data.draw(POLICIES)
        self.plain, self.index = Plain(cluster, used, policy), Index(cluster, used, policy)
        self.placed: list[Placement] = []
        self.names = len(cluster)
        self.asked = [data.draw(requests(cluster)) for _ in range(2)]

    def place(self) -> None:
        if self.data.draw(st.integers(0, 3)) == 3:
            self.asked.append(self.data.draw(requests(self.plain.nodes)))
        request = self.data.draw(st.sampled_from(self.asked))
        answer = self.index.place(request)
        same(answer, self.plain.place(request))
        check_filter(self.index, self.plain, request)
        if isinstance(answer, Placement):
            self.index.hold(answer)
            self.plain.book(answer, 1)
            self.placed.append(answer)

    def release(self) -> None:
        if self.placed:
            gone = self.placed.pop(self.data.draw(st.integers(0, len(self.placed) - 1)))
            self.index.release(gone)
            self.plain.book(gone, -1)

    def update(self) -> None:
        if self.plain.nodes:
            self._put(self._some())

    def add(self) -> None:
        self.names += 1
        self._put(f"late{self.names}")

    def remove(self) -> None:
        if self.plain.nodes:
            name = self._some()
            self.index.remove(name)
            self.plain.remove(name)

    def _put(self, name: str) -> None:
        fresh = self.data.draw(nodes(self.data.draw(among(CHIPS)), name))
        held = self.data.draw(uses(fresh))
        self.index.update(fresh, held)
        self.plain.update(fresh, held)

    def _some(self) -> str:
        """A node whose placements are forgotten."""
        name = self.data.draw(st.sampled_from([one.name for one in self.plain.nodes]))
        self.placed = [one for one in self.placed if one.node != name]
        return name


@examples(150)
@given(st.data())
def test_every_answer_is_that_of_the_plain_rules(data: st.DataObject) -> None:
    both = Both(data)
    steps = [both.place, both.place, both.place, both.release, both.update, both.add, both.remove]
    for _ in range(data.draw(st.integers(1, 8))):
        data.draw(st.sampled_from(steps))()
    assert list(both.index.nodes) == both.plain.nodes
    for one in both.plain.nodes:
        for entry in one.cards:
            assert both.index.held(entry.uuid) == both.plain.used.get(entry.uuid, NO_USE)


def check_filter(index: Index, plain: Plain, request: PodRequest) -> None:
    """What the index says node by node."""
    known = [one.name for one in plain.nodes]
    filtered = index.feasible(request, [*known[::-1], "nobody"])
    scores = index.scores(request, known)
    assert filtered.unknown == ("nobody",)
    fits, refusals = [], []
    for one in plain.nodes:
        answer = fit(request, one, plain.used, plain.policy)
        assert index.on(request, one.name) == answer
        if isinstance(answer, Placement):
            fits.append(one.name)
            sign = plain.policy.for_pod(request.annotations).node_sign
            assert scores[one.name] == connection_of(answer) - sign * node_load(one, plain.used)
        else:
            refusals.append(answer)
            told = Tally(answer.reasons, answer.total, answer.text, answer.distance)
            assert filtered.refused[one.name] == told
    assert filtered.fits == tuple(fits[::-1])
    assert len(filtered.refused) == len(refusals)
    assert scores.keys() == set(fits)
    if scores:
        best = max(scores.values())
        answer = index.place(request)
        assert isinstance(answer, Placement)
        assert answer.node == next(name for name in known if scores.get(name) == best)
    alone = [one for one in plain.nodes if one.name in filtered.refused]
    same(index.why_not(request, known), place(request, alone, plain.used, plain.policy))


@examples(60)
@given(riddles(), POLICIES)
def test_riddles_are_answered_as_the_plain_rules_answer_them(case: Any, policy: Policy) -> None:
    request, one, used = case
    cluster = [one, twin(one, "m"), twin(one, "k")]
    held = {uuid.replace("n-", "k-"): use for uuid, use in used.items()} | dict(used)
    same(Index(cluster, held, policy).place(request), place(request, cluster, held, policy))


def test_a_judgement_outlives_the_classes_that_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roster, "_MOST_IDLE", 2)
    monkeypatch.setattr(index_module, "_MOST_JUDGES", 2)
    monkeypatch.setattr(index_module, "_MOST_JUDGED", 3)
    cluster = [node(f"n{number}", 2) for number in range(3)]
    plain, index = Plain(cluster, {}, Policy()), Index(cluster)
    for number in range(40):
        request = pod(soft(3000 + 1000 * (number % 7), 7), name=f"p{number}")
        answer = index.place(request)
        same(answer, plain.place(request))
        if isinstance(answer, Placement):
            index.hold(answer)
            plain.book(answer, 1)


@pytest.mark.parametrize("policy", list(NodePolicy))
def test_hundreds_of_nodes_that_all_differ_are_taken_in_the_same_order(policy: NodePolicy) -> None:
    cluster = [node(f"n{number}", 2) for number in range(300)]
    used = {f"n{number}-0": held_soft(1 + (number * 7919) % 60000, number % 90) for number in range(300)}
    plain, index = Plain(cluster, used, Policy(policy)), Index(cluster, used, Policy(policy))
    for number in range(60):
        request = pod(soft(1 + (number * 104729) % 65536, (number * 31) % 100, count=1 + number % 2), name=f"p{number}")
        answer = index.place(request)
        same(answer, plain.place(request))
        if isinstance(answer, Placement):
            index.hold(answer)
            plain.book(answer, 1)


def test_a_pod_that_names_cards_goes_to_the_nodes_of_these_alone() -> None:
    cluster = [node(f"n{number}", 2) for number in range(4)]
    index = Index(cluster)
    only = pod(soft(1024), annotations={names.use_uuid(B3.common_word): "n2-1"})
    answer = index.place(only)
    assert isinstance(answer, Placement)
    assert [share.card.uuid for share in answer.containers[0].cards] == ["n2-1"]
    index.remove("n2")
    assert isinstance(index.place(only), Unplaced)
    index.update(node("n9", (card(0, node="n2"), card(1, node="n2"))), {})
    answer = index.place(only)
    assert isinstance(answer, Placement)
    assert answer.node == "n9"


def test_a_card_that_two_nodes_have_is_held_on_both() -> None:
    shared = card(0)
    cluster = [Node(name, (shared,), soft=True) for name in ("a", "b")]
    index = Index(cluster)
    first = index.place(pod(soft(40000)))
    assert isinstance(first, Placement)
    index.hold(first)
    assert isinstance(index.place(pod(soft(40000))), Unplaced)
    index.remove("a")
    assert index.held(shared.uuid) == held_soft(40000)
    index.release(first)
    assert isinstance(index.place(pod(soft(40000))), Placement)
    index.remove("b")
    index.remove("b")
    assert index.held(shared.uuid) == NO_USE


def test_what_is_wrong_is_told_as_the_plain_rules_tell_it() -> None:
    index = Index([node("a")])
    with pytest.raises(AnnotationError):
        index.place(pod(soft(1), annotations={names.NODE_POLICY: "best"}))
    with pytest.raises(RequestError):
        index.feasible(pod(soft(1, count=1, of=C)), ["a"])
    with pytest.raises(KeyError):
        index.on(pod(soft(1)), "nobody")
    with pytest.raises(InputError, match="each node may stand once"):
        Index([node("a"), node("a")])


def test_a_refusal_stays_what_it_was() -> None:
    index = Index([node("a", 1), node("b", 1)], {"a-0": held_soft(65536, 100)})
    answer = index.place(pod(soft(65536, 100, count=2)))
    assert isinstance(answer, Unplaced)
    before = dict(answer.nodes)
    index.update(node("c", 2), {})
    index.remove("a")
    assert dict(answer.nodes) == before
    assert repr(answer.nodes) == repr(before)
    with pytest.raises(KeyError):
        answer.nodes["c"]
