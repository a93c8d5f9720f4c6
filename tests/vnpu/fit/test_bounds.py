"""What is left of the cards cannot be enough: proofs without a search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import brute_force
from tests.support.chips import chip_named
from tests.support.cluster import P, card, container, hard, held_hard, held_soft, init, node, pod, sidecar, soft
from tests.support.cluster_strategies import cases, riddles
from tests.support.examples import examples
from vnpu.fit.bounds import rests
from vnpu.fit.rules import prepare

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vnpu.cards import Node, Use
    from vnpu.request import PodRequest, SliceRequest

B2 = chip_named("Ascend910B2")
HELD = {"n-0": held_soft(40000, 70), "n-1": held_soft(50000, 50)}


def may_fit(request: PodRequest, on: Node, used: Mapping[str, Use]) -> bool:
    return rests(prepare(request).wants)[0].may_fit(on, used)


@pytest.mark.parametrize(
    ("wanted", "possible"),
    [
        ([soft(25536), soft(15536)], True),
        ([soft(25537)], False),  # on no card
        ([soft(15000), soft(15000), soft(15000)], False),  # memory of all cards together
        ([soft(1, 30), soft(1, 30), soft(1, 20)], True),
        ([soft(1, 30), soft(1, 30), soft(1, 21)], False),  # compute of all cards together
        ([soft(1)] * 18, True),
        ([soft(1)] * 19, False),  # slots of all cards together
        ([soft(8000, count=2), soft(9000), soft(7000)], True),
        ([soft(8000, count=2), soft(9000), soft(17000)], False),  # several cards count several times
        ([soft(20000), soft(20000)], False),  # what is left of the second card is of no use
    ],
)
def test_amounts_of_cards_that_can_be_used_are_added_up(wanted: list[SliceRequest], *, possible: bool) -> None:
    assert may_fit(pod(*wanted), node(cards=2), HELD) is possible


def test_templates_are_added_up_by_ai_cores_and_ai_cpus() -> None:
    used = {"n-0": held_hard("vir10_3c_32g")}
    assert may_fit(pod(*[hard("vir05_1c_16g")] * 6), node(cards=2), used)
    assert not may_fit(pod(*[hard("vir05_1c_16g")] * 7), node(cards=2), used)
    eighths = [hard("vir03_1c_8g", of=B2)] * 7
    assert may_fit(pod(*eighths[:6]), node(cards=1, of=B2), {})
    assert not may_fit(pod(*eighths), node(cards=1, of=B2), {})


def test_each_chip_has_its_own_cards() -> None:
    on = node(cards=(card(0), card(1, P)))
    assert may_fit(pod(soft(60000), soft(21000, of=P)), on, {})
    assert not may_fit(pod(soft(60000), soft(11000, of=P), soft(11000, of=P)), on, {})


def test_plain_init_containers_do_not_stay() -> None:
    one = node(cards=1)
    assert may_fit(pod(init(soft(60000)), init(soft(60000)), container(soft(60000))), one, {})
    assert not may_fit(pod(sidecar(soft(60000)), container(soft(60000))), one, {})
    assert not may_fit(pod(init(soft(60001)), container(soft(1))), one, {"n-0": held_soft(5536)})


def test_the_rest_is_what_comes_from_a_container_on() -> None:
    wants = prepare(pod(soft(50000), soft(30000), soft(30000), soft(10000))).wants
    assert [rest.may_fit(node(cards=1), {}) for rest in rests(wants)] == [False, False, True, True]


@examples(60)
@given(st.one_of(cases(), riddles()))
def test_what_cannot_be_is_never_possible(case: tuple[PodRequest, Node, Mapping[str, Use]]) -> None:
    request, on, used = case
    if not may_fit(request, on, used):
        assert not brute_force.feasible(request, on, used)
