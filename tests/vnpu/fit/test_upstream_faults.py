"""Faults of HAMi (d, a) and of Volcano in fitting, one test each: what was seen there, and ours is right."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tests.support.chips import chip_named
from tests.support.cluster import B3, C, card, full, hard, held_hard, held_soft, indices, node, pod, soft
from vnpu import names
from vnpu.cards import Use
from vnpu.errors import RequestError
from vnpu.fit.answers import NodeRefusal, Placement, Reason
from vnpu.fit.place import place
from vnpu.fit.rules import fit
from vnpu.fit.scores import connection

B2 = chip_named("Ascend910B2")
B4 = chip_named("Ascend910B4")
B4_1 = chip_named("Ascend910B4-1")


def test_d09_a_request_for_910b4_does_not_take_a_910b4_1() -> None:
    answer = fit(pod(soft(8192, of=B4)), node(cards=2, of=B4_1), {})
    assert isinstance(answer, NodeRefusal)
    assert dict(answer.reasons) == {Reason.CARD_TYPE_MISMATCH: 2, Reason.NODE_INSUFFICIENT_DEVICE: 1}
    mixed = fit(pod(soft(8192, of=B4)), node(cards=(card(0, B4_1), card(1, B4))), {})
    assert isinstance(mixed, Placement)
    assert indices(mixed) == [[1]]


def test_d10_without_super_pod_an_odd_count_of_910c_fits() -> None:
    unpaired = replace(C, super_pod=False)
    answer = fit(pod(soft(65536, 100, count=3, of=unpaired)), node(cards=4, of=C), {})
    assert isinstance(answer, Placement)
    assert indices(answer) == [[0, 1, 2]]


def test_d10_the_fraction_never_exceeds_one() -> None:
    answer = fit(pod(soft(65536, 100, count=4, of=C)), node(cards=4, of=C), {"n-1": full(C)})
    assert isinstance(answer, NodeRefusal)
    assert answer.text == "1/4 CardInsufficientMemory, 3/4 AllocatedCardsInsufficientRequest"


def test_d11_a_hard_slice_does_not_join_a_soft_one() -> None:
    answer = fit(pod(hard("vir05_1c_16g")), node(cards=1), {"n-0": held_soft(8192, 20)})
    assert isinstance(answer, NodeRefusal)
    assert answer.text == "1/1 CardModeConflict"


@pytest.mark.parametrize(
    ("held", "core", "fits"),
    [
        (held_soft(1, 0), 100, False),
        (held_soft(1, 100), 0, False),
        (held_soft(1, 99), 0, True),
        (held_soft(2, 99, slots=2), 0, True),
        (held_soft(1, 0), 99, True),
    ],
)
def test_d12_a_whole_card_and_slices_without_core_do_not_meet(held: Use, core: int, *, fits: bool) -> None:
    assert isinstance(fit(pod(soft(1, core)), node(cards=1), {"n-0": held}), Placement) is fits


@pytest.mark.parametrize("group", [None, 0])
def test_d16_equal_cards_are_chosen_alike_every_time(group: int | None) -> None:
    for of, expected in ((C, [0, 1]), (B4, [0, 1])):
        cards = [card(index, of, network_id=group) for index in range(8)]
        for seed in range(50):
            random.Random(seed).shuffle(cards)
            answer = fit(pod(soft(8192, count=2, of=of)), node(cards=cards), {})
            assert isinstance(answer, Placement)
            assert indices(answer) == [expected]


def test_d16_equal_groups_keep_the_order_of_the_policy() -> None:
    cards = [card(index, network_id=index // 2) for index in range(8)]
    used = {f"n-{index}": held_soft(1000 * (8 - index), 5) for index in range(8)}
    for policy, expected in (("spread", [7, 6]), ("binpack", [0, 1])):
        request = pod(soft(8192, count=2), annotations={names.CARD_POLICY: policy})
        answer = fit(request, node(cards=cards), used)
        assert isinstance(answer, Placement)
        assert indices(answer) == [expected]


@pytest.mark.parametrize("groups", [(None, None, None), (0, None, 1), (0, 1, 2)])
def test_a1_a_success_has_all_its_cards_whatever_the_network_ids(groups: tuple[int | None, ...]) -> None:
    cards = (card(index, network_id=group) for index, group in enumerate(groups))
    answer = fit(pod(soft(8192, count=3)), node(cards=cards), {})
    assert isinstance(answer, Placement)
    assert len({share.card.uuid for share in answer.containers[0].cards}) == 3


def test_a2_the_better_connected_node_is_preferred_under_spread_too() -> None:
    apart = node("apart", (card(index, node="apart", network_id=index) for index in range(2)))
    together = node("together", (card(index, node="together", network_id=0) for index in range(2)))
    request = pod(soft(8192, count=2), annotations={names.NODE_POLICY: "spread"})
    answer = place(request, (apart, together), {})
    assert isinstance(answer, Placement)
    assert answer.node == "together"


def test_a3_the_larger_group_is_not_broken_for_two_cards() -> None:
    cards = [card(index, network_id=index // 4) for index in range(8)]
    used = {"n-6": full(), "n-7": full()}
    answer = fit(pod(soft(65536, 100, count=2)), node(cards=cards), used)
    assert isinstance(answer, Placement)
    assert indices(answer) == [[4, 5]]


def test_a4_a_pod_without_a_name_or_annotations_is_fitted() -> None:
    nameless = replace(pod(soft(8192)), namespace="", name="", annotations={})
    assert isinstance(fit(nameless, node(), {"card-of-nobody": held_soft(1)}), Placement)


def test_a6_the_ai_cpus_of_a_card_are_accounted() -> None:
    used: dict[str, Use] = {}
    for number in range(8):
        answer = fit(pod(hard("vir03_1c_8g", of=B2)), node(cards=1, of=B2, soft=False), used)
        assert isinstance(answer, Placement) is (number < 6)
        if isinstance(answer, Placement):
            used["n-0"] = used.get("n-0", Use()).plus(answer.holds()["n-0"])
        else:
            assert answer.text == "1/1 CardInsufficientAICPU"


def test_volcano_b7_a_count_of_zero_is_an_error_and_books_nothing() -> None:
    with pytest.raises(RequestError, match="at least one card"):
        fit(pod(soft(8192, count=0)), node(), {})


@pytest.mark.parametrize(("policy", "expected"), [("spread", 3), ("binpack", 1), ("mutex", 3), ("numa", 0)])
def test_volcano_b9_a_policy_decides_on_a_single_node_too_and_alike_every_time(policy: str, expected: int) -> None:
    used = {"n-0": held_soft(20000, 20), "n-1": held_soft(30000, 30), "n-2": held_soft(10000, 10)}
    request = pod(soft(8192, 10), annotations={names.CARD_POLICY: policy})
    cards = [card(index) for index in range(4)]
    for seed in range(50):
        random.Random(seed).shuffle(cards)
        answer = place(request, [node(cards=cards)], used)
        assert isinstance(answer, Placement)
        assert indices(answer) == [[expected]]


def test_volcano_b10_a_hard_pod_never_shares_a_card_with_a_soft_one() -> None:
    for held, wanted in ((held_soft(8192), hard("vir05_1c_16g")), (held_hard("vir05_1c_16g"), soft(8192))):
        answer = fit(pod(wanted), node(cards=2), {"n-0": held})
        assert isinstance(answer, Placement)
        assert indices(answer) == [[1]]
        assert isinstance(fit(pod(wanted), node(cards=1), {"n-0": held}), NodeRefusal)


def test_volcano_b11_a_faulty_card_is_never_chosen() -> None:
    cards = (card(0, healthy=False), card(1))
    answer = fit(pod(soft(8192)), node(cards=cards), {})
    assert isinstance(answer, Placement)
    assert indices(answer) == [[1]]
    refused = fit(pod(soft(8192, count=2)), node(cards=cards), {})
    assert isinstance(refused, NodeRefusal)
    assert refused.text == "1/2 AllocatedCardsInsufficientRequest, 1/2 CardNotHealth"


def test_volcano_b12_the_connection_counts_every_card_and_stays_below_its_scale() -> None:
    five = [card(index, network_id=0 if index < 4 else 1) for index in range(5)]
    assert connection(B3, five) == 8
    assert connection(B3, [card(index, network_id=0) for index in range(8)]) == 10


def test_a_card_of_unknown_mode_counts_as_occupied() -> None:
    for wanted in (soft(1), hard("vir05_1c_16g")):
        answer = fit(pod(wanted), node(cards=1), {"n-0": Use(1, 1, 0, 0, 0, None)})
        assert isinstance(answer, NodeRefusal)
        assert answer.text == "1/1 CardModeConflict"
