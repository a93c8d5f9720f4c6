"""Scores of cards and nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.cluster import B3, C, P, card, held_hard, held_soft, node, soft
from vnpu.annotations.policies import ScoringWeights
from vnpu.cards import NO_USE, Card, Use
from vnpu.fit.scores import card_score, connection, node_load
from vnpu.mode import Mode

if TYPE_CHECKING:
    from vnpu.chips import Chip

EVEN = ScoringWeights()
QUARTER = held_soft(16384, 25)


def test_a_card_is_scored_with_the_slice_on_it() -> None:
    # 2 of 10 slots, 45 of 100 percent, 32768 of 65536 MiB
    assert card_score(card(0), QUARTER, soft(16384, 20).use, EVEN) == pytest.approx(2 + 4.5 + 5)


def test_weights_multiply_their_share() -> None:
    weights = ScoringWeights(slot=0, core=2, memory=1)
    assert card_score(card(0), QUARTER, soft(16384, 20).use, weights) == pytest.approx(9 + 5)


def test_a_hard_slice_is_scored_by_its_ai_cores() -> None:
    # 2 of 10 slots, 10 of 20 AI cores, 32768 of 65536 MiB
    one = held_hard("vir05_1c_16g")
    assert card_score(card(0), one, one, EVEN) == pytest.approx(2 + 5 + 5)


@pytest.mark.parametrize(
    ("of", "use"),
    [
        (Card("u", 0, "Ascend910B3", 65536, 0), QUARTER),
        (Card("u", 0, "Ascend910B3", 0, 4), QUARTER),
        (Card("u", 0, "Ascend910B3", 65536, 4), Use(1, 1, 0, 0, 0, Mode.HARD)),
    ],
)
def test_a_card_without_slots_memory_or_compute_scores_nothing(of: Card, use: Use) -> None:
    assert card_score(of, NO_USE, use, EVEN) == 0


def test_the_load_of_a_node_is_over_all_its_cards() -> None:
    used = {"n-0": held_soft(65536, 100, slots=5), "n-1": held_soft(32768, 20, slots=1), "elsewhere": held_soft(1, 1)}
    # 6 of 20 slots, 120 of 200 percent, 98304 of 131072 MiB
    assert node_load(node(cards=2), used) == pytest.approx(3 + 6 + 7.5)


def test_hard_slices_load_a_node_by_their_ai_cores() -> None:
    assert node_load(node(cards=1), {"n-0": held_hard("vir10_3c_32g")}) == pytest.approx(1 + 5 + 5)


def test_a_card_that_is_said_to_have_no_ai_cores_loads_its_node_by_the_rest() -> None:
    bare = Card("n-0", 0, "Ascend910B3", 65536, 10)
    assert node_load(node(cards=(bare,)), {"n-0": held_hard("vir10_3c_32g")}) == pytest.approx(1 + 5)


def test_an_empty_node_has_no_load() -> None:
    assert node_load(node(), {}) == 0
    assert node_load(node(cards=0), {}) == 0


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ((0,), 0),
        ((0, 0), 10),
        ((0, 1), 5),
        ((0, 1, 1), 20 / 3),
        ((0, 0, 0, 0, 1), 8),
        ((0, 0, None), 0),
        ((None, None), 0),
    ],
)
def test_the_connection_is_the_share_of_the_largest_group(groups: tuple[int | None, ...], expected: float) -> None:
    cards = [card(index, network_id=group) for index, group in enumerate(groups)]
    assert connection(B3, cards) == pytest.approx(expected)


@pytest.mark.parametrize("of", [P, C])
def test_network_ids_of_other_families_and_of_super_pods_tell_nothing(of: Chip) -> None:
    assert connection(of, [card(index, of, network_id=0) for index in range(2)]) == 0
