"""Classes of nodes: what looks alike is one, and what has no room is skipped rightly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.cluster import C, P, card, held_hard, held_soft, node, pod, soft
from tests.support.cluster_strategies import cases, riddles
from tests.support.examples import examples
from vnpu.cards import NO_USE, Node, Use
from vnpu.fit.answers import Placement
from vnpu.fit.classes import Classes, NodeClass, has_room, needs
from vnpu.fit.order import Order
from vnpu.fit.rules import fit, prepare

if TYPE_CHECKING:
    from collections.abc import Mapping


def class_of(classes: Classes, one: Node, used: Mapping[str, Use]) -> NodeClass:
    states = tuple(
        classes.state(entry, used.get(entry.uuid, NO_USE), cordoned=entry.uuid in one.cordoned) for entry in one.cards
    )
    return classes.of(one, used, states)


@examples(300)
@given(st.one_of(cases(), riddles()))
def test_what_holds_a_pod_has_room_for_it(case: Any) -> None:
    request, one, used = case
    if isinstance(fit(request, one, used), Placement):
        assert has_room(class_of(Classes(), one, used).room, needs(prepare(request)))


def test_room_is_what_open_cards_have_left() -> None:
    used = {"n-0": held_soft(60000, 50), "n-1": held_hard("vir05_1c_16g"), "n-2": held_soft(1, 100)}
    there = class_of(Classes(), node(cards=4), used)
    for wanted, room in (
        (soft(5536, 50), True),
        (soft(5537, 50, count=2), False),
        (soft(5536, 51, count=2), False),
        (soft(5536, 50, count=2), True),
        (soft(1, 0, count=3), False),
        (soft(1, 100, count=2), False),
        (soft(1, of=P), False),
        (soft(1, count=2, of=C), False),
    ):
        assert has_room(there.room, needs(prepare(pod(wanted)))) is room, wanted


def test_only_what_a_pod_can_see_makes_a_class() -> None:
    classes = Classes()
    one = class_of(classes, node("a", 2), {"a-0": held_soft(1000, 10)})
    assert class_of(classes, node("b", 2), {"b-0": held_soft(1000, 10)}) is one
    others = [
        (node("b", 2), {}),
        (node("b", 2), {"b-1": held_soft(1000, 10)}),
        (node("b", 2, soft=False), {"b-0": held_soft(1000, 10)}),
        (node("b", 2, unsafe="gone"), {"b-0": held_soft(1000, 10)}),
        (node("b", 2, cordoned=["b-1"]), {"b-0": held_soft(1000, 10)}),
        (node("b", (card(0, node="b"), card(2, node="b"))), {"b-0": held_soft(1000, 10)}),
        (node("b", (card(0, node="b"), card(1, node="b", network_id=0))), {"b-0": held_soft(1000, 10)}),
        (node("b", (card(0, node="b"), card(1, node="b", healthy=False))), {"b-0": held_soft(1000, 10)}),
    ]
    found = [class_of(classes, *other) for other in others]
    assert len({id(entry) for entry in (one, *found)}) == len(others) + 1
    assert len(classes) == len(others) + 1
    assert not list(classes), "none has a member"
    one.join(0)
    classes.forget()
    assert list(classes) == [one]
    assert class_of(classes, node("c", 2), {"c-0": held_soft(1000, 10)}) is one


@examples(60)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=120), st.sampled_from([-1, 0, 1]), st.randoms())
def test_an_order_is_kept_whatever_comes_and_goes(loads: list[int], sign: int, chance: Any) -> None:
    every = [NodeClass((), float(load), {}, [position]) for position, load in enumerate(loads)]
    there = {one for one in every if chance.random() < 0.5}
    order = Order(sign, there)
    for one in chance.sample(every, len(every)):
        if one in there:
            there.remove(one)
            order.discard(one)
        else:
            there.add(one)
            order.add(one)
    expected = sorted((sign * one.load, one.members[0]) for one in there)
    assert [(rank, first) for rank, first, _ in order.walk([])] == expected
