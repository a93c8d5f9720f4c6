"""Which of several cards a container takes: policies, modules, groups."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.cluster import B3, C, P, card, full, hard, held_hard, held_soft, indices, node, pod, soft
from vnpu import names
from vnpu.cards import Card
from vnpu.fit.answers import Placement
from vnpu.fit.choice import _splits
from vnpu.fit.rules import fit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vnpu.cards import Node, Use
    from vnpu.request import SliceRequest


def taken(
    wanted: SliceRequest, on: Node, used: Mapping[str, Use] | None = None, policy: str = "spread", weights: str = ""
) -> list[int]:
    annotations = {names.CARD_POLICY: policy} | ({names.SCORING_WEIGHTS: weights} if weights else {})
    answer = fit(pod(wanted, annotations=annotations), on, used or {})
    assert isinstance(answer, Placement)
    return indices(answer)[0]


def in_groups(*groups: int) -> Node:
    """Cards whose network ids are these."""
    return node(cards=(card(index, network_id=group) for index, group in enumerate(groups)))


# ---- Policies

LOADED = {"n-0": held_soft(8192, 30), "n-1": held_soft(16384, 10), "n-2": held_soft(4096, 60)}


@pytest.mark.parametrize(
    ("policy", "weights", "expected"),
    [
        ("spread", "", [3, 1, 0, 2]),
        ("binpack", "", [2, 0, 1, 3]),
        ("binpack,spread", "", [2, 0, 1, 3]),
        ("spread,binpack", "", [3, 1, 0, 2]),
        ("numa", "", [0, 1, 2, 3]),
        ("numa,binpack", "", [2, 0, 1, 3]),
        ("binpack", "slot=0,core=0,memory=1", [1, 0, 2, 3]),
        ("binpack", "slot=0,core=1,memory=0", [2, 0, 1, 3]),
        ("binpack", "slot=1,core=0,memory=0", [0, 1, 2, 3]),
        ("spread", "slot=0,core=1,memory=0", [3, 1, 0, 2]),
    ],
)
def test_policies_order_the_cards(policy: str, weights: str, expected: list[int]) -> None:
    assert taken(soft(1024, 5, count=4), node(cards=4), LOADED, policy, weights) == expected


def test_mutex_leaves_the_order_to_the_index() -> None:
    assert taken(soft(1024, 5, count=2), node(cards=4), {"n-0": held_soft(1)}, "mutex") == [1, 2]


def test_hard_slices_are_scored_by_their_ai_cores() -> None:
    on = node(cards=3)
    used = {"n-0": held_hard("vir05_1c_16g"), "n-1": held_hard("vir10_3c_32g")}
    assert taken(hard("vir05_1c_16g"), on, used, "binpack", "slot=0,core=1,memory=0") == [1]
    assert taken(hard("vir05_1c_16g"), on, used, "spread", "slot=0,core=1,memory=0") == [2]


def test_equal_cards_are_taken_by_index_then_uuid() -> None:
    cards = (card(3), card(1), card(2), Card("b", 0, "Ascend910B3", 65536, 10), Card("a", 0, "Ascend910B3", 65536, 10))
    answer = fit(pod(soft(1024, count=4)), node(cards=cards), {})
    assert isinstance(answer, Placement)
    assert [share.card.uuid for share in answer.containers[0].cards] == ["a", "b", "n-1", "n-2"]


# ---- Modules of two


def test_modules_follow_the_policy_as_a_whole() -> None:
    used = {"n-0": held_soft(30000), "n-3": held_soft(20000), "n-4": held_soft(1000)}
    assert taken(soft(1024, count=2, of=C), node(cards=8, of=C), used) == [6, 7]
    assert taken(soft(1024, count=2, of=C), node(cards=8, of=C), used, "binpack") == [0, 1]
    assert taken(soft(1024, count=6, of=C), node(cards=8, of=C), used, "binpack") == [0, 1, 2, 3, 4, 5]


def test_modules_do_not_ask_for_network_ids() -> None:
    cards = (card(index, C, network_id=0 if index < 2 else None) for index in range(4))
    assert taken(soft(1024, count=4, of=C), node(cards=cards)) == [0, 1, 2, 3]


# ---- Groups


@pytest.mark.parametrize(
    ("groups", "count", "expected"),
    [
        ((0, 0, 0, 0, 1, 1, 1, 1), 2, [0, 1]),
        ((0, 0, 0, 0, 1, 1), 2, [4, 5]),
        ((0, 0, 0, 0, 1, 1), 3, [0, 1, 2]),
        ((0, 1, 0, 1, 0, 1), 3, [0, 2, 4]),
        ((0, 0, 0, 1, 1, 2, 2, 2), 3, [0, 1, 2]),
        # no group holds it: the largest whole, then the smallest that holds the rest
        ((0, 0, 1, 1, 1, 2, 2), 4, [2, 3, 4, 0]),
        ((0, 0, 1, 1, 1, 2), 4, [2, 3, 4, 5]),
        ((0, 1, 2, 2), 4, [2, 3, 0, 1]),
        # one card: the policy decides, and groups among equal cards only
        ((0, 0, 0, 1), 1, [3]),
    ],
)
def test_the_smallest_group_that_holds_the_request(groups: tuple[int, ...], count: int, expected: list[int]) -> None:
    assert taken(soft(1024, count=count), in_groups(*groups)) == expected


def test_cards_that_are_taken_count_for_no_group() -> None:
    used = {"n-0": full(), "n-1": full()}
    assert taken(soft(65536, 100, count=2), in_groups(0, 0, 0, 0, 1, 1, 1, 1), used) == [2, 3]


def test_of_equal_groups_the_policy_takes_the_one_with_the_better_cards() -> None:
    used = {"n-2": held_soft(1000), "n-3": held_soft(1000)}
    assert taken(soft(1024, count=2), in_groups(0, 0, 1, 1), used, "spread") == [0, 1]
    assert taken(soft(1024, count=2), in_groups(0, 0, 1, 1), used, "binpack") == [2, 3]


def test_one_card_follows_the_policy_into_a_bigger_group() -> None:
    used = {"n-0": full(), "n-1": held_soft(1000)}
    assert taken(soft(1024), in_groups(0, 0, 1, 1), used, "spread") == [2]
    assert taken(soft(1024), in_groups(0, 0, 1, 1), used, "binpack") == [1]


def test_without_the_group_of_each_card_there_are_no_groups() -> None:
    cards = [card(index, network_id=group) for index, group in enumerate((0, 0, 0, 1, 1, None))]
    assert taken(soft(1024, count=2), node(cards=cards)) == [0, 1]


def test_other_families_have_no_groups() -> None:
    cards = (card(index, P, network_id=group) for index, group in enumerate((0, 0, 0, 1, 1)))
    assert taken(soft(1024, count=2, of=P), node(cards=cards)) == [0, 1]


def test_the_group_of_another_chip_does_not_matter() -> None:
    others = (card(index, P) for index in range(5, 8))
    ours = (card(index, network_id=group) for index, group in enumerate((0, 0, 0, 1, 1)))
    assert taken(soft(1024, count=2, of=B3), node(cards=(*ours, *others))) == [3, 4]


# ---- Ways to split


@given(st.lists(st.integers(0, 4), max_size=4), st.integers(0, 9))
def test_splits_are_all_ways_the_first_heaps_first(sizes: list[int], total: int) -> None:
    every = (numbers for numbers in product(*(range(size + 1) for size in sizes)) if sum(numbers) == total)
    assert [tuple(numbers) for numbers in _splits(sizes, total)] == sorted(every, reverse=True)
