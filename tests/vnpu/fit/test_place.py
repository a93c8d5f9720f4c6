"""Place: which node a pod goes to, and what is said where none holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.cluster import C, P, card, full, hard, held_soft, indices, node, pod, soft
from vnpu import names
from vnpu.annotations.policies import NodePolicy
from vnpu.errors import AnnotationError, RequestError
from vnpu.fit.answers import Placement, Reason, Unplaced
from vnpu.fit.place import place
from vnpu.fit.policy import Policy

if TYPE_CHECKING:
    from vnpu.cards import Node

BINPACK = Policy(NodePolicy.BINPACK)
SPREAD = Policy(NodePolicy.SPREAD)
THREE = (node("a", 2), node("b", 2), node("c", 2))
USED = {"a-0": held_soft(1000, 10), "b-0": held_soft(20000, 10), "b-1": held_soft(20000, 10)}


def where(answer: Placement | Unplaced) -> str:
    assert isinstance(answer, Placement), answer
    return answer.node


def unplaced(answer: Placement | Unplaced) -> Unplaced:
    assert isinstance(answer, Unplaced), answer
    return answer


def test_binpack_takes_the_fullest_node_that_holds_the_pod() -> None:
    assert where(place(pod(soft(8192, 10)), THREE, USED, BINPACK)) == "b"
    assert where(place(pod(soft(50000, 10)), THREE, USED, BINPACK)) == "a"
    assert where(place(pod(soft(50000, 10, count=2)), THREE, USED, BINPACK)) == "a"
    assert where(place(pod(soft(65000, 10, count=2)), THREE, USED, BINPACK)) == "c"


def test_spread_takes_the_emptiest() -> None:
    assert where(place(pod(soft(8192, 10)), THREE, USED, SPREAD)) == "c"
    assert where(place(pod(soft(8192, 10)), THREE[:2], USED, SPREAD)) == "a"


def test_mutex_takes_the_first_node_where_no_card_of_the_chip_is_in_use() -> None:
    request = pod(soft(8192, 10), annotations={names.NODE_POLICY: "mutex"})
    assert where(place(request, THREE, USED, BINPACK)) == "c"
    busy = node("busy", (card(0, node="busy"), card(1, P, node="busy")))
    assert where(place(request, (*THREE[:2], busy, THREE[2]), {**USED, "busy-1": held_soft(1)})) == "busy"
    answer = unplaced(place(request, THREE[:2], USED))
    assert dict(answer.nodes) == dict.fromkeys("ab", "1/2 ExclusiveDeviceAllocateConflict")
    assert "a has cards of the pod's chips in use" in answer.message


def test_the_annotation_of_the_pod_beats_the_policy() -> None:
    request = pod(soft(8192, 10), annotations={names.NODE_POLICY: "spread"})
    assert where(place(request, THREE, USED, BINPACK)) == "c"


@pytest.mark.parametrize("policy", [BINPACK, SPREAD])
def test_equal_nodes_keep_their_order(policy: Policy) -> None:
    assert where(place(pod(soft(8192)), THREE, {}, policy)) == "a"
    assert where(place(pod(soft(8192)), THREE[::-1], {}, policy)) == "c"


@pytest.mark.parametrize("policy", [BINPACK, SPREAD])
def test_network_ids_of_chips_without_groups_do_not_rank_nodes(policy: Policy) -> None:
    nodes = [
        node(name, (card(index, P, node=name, network_id=group) for index, group in enumerate(groups)))
        for name, groups in (("a", (0, 1)), ("b", (0, 0)))
    ]
    assert where(place(pod(soft(8192, count=2, of=P)), nodes, {}, policy)) == "a"


@pytest.mark.parametrize("policy", [BINPACK, SPREAD])
def test_better_connected_cards_win_between_equally_full_nodes(policy: Policy) -> None:
    nodes = [
        node(name, (card(index, node=name, network_id=group) for index, group in enumerate(groups)))
        for name, groups in (("a", (0, 1)), ("b", (0, 0)), ("c", (1, 1)))
    ]
    assert where(place(pod(soft(8192, count=2)), nodes, {}, policy)) == "b"
    assert where(place(pod(soft(8192)), nodes, {}, policy)) == "a"


def test_connection_outweighs_a_small_difference_in_load_only() -> None:
    nodes = [
        node(name, (card(index, node=name, network_id=group) for index, group in enumerate(groups)))
        for name, groups in (("a", (0, 1)), ("b", (0, 0)))
    ]
    used = {"a-0": held_soft(10000, 10), "a-1": held_soft(10000, 10)}
    assert where(place(pod(soft(8192, count=2)), nodes, used, BINPACK)) == "b"
    used = {"a-0": held_soft(50000, 50, slots=5), "a-1": held_soft(50000, 50, slots=5)}
    assert where(place(pod(soft(8192, count=2)), nodes, used, BINPACK)) == "a"


def test_load_and_connection_that_add_up_alike_leave_it_to_the_order() -> None:
    apart, together = (
        node(name, (card(index, node=name, network_id=group) for index, group in enumerate(groups)))
        for name, groups in (("apart", (0, 1)), ("together", (0, 0)))
    )
    used = {"apart-0": held_soft(32768, 30, slots=2)}  # a load of 5, and a connection worse by 5
    for nodes in ((apart, together), (together, apart)):
        assert where(place(pod(soft(8192, count=2)), nodes, used, BINPACK)) == nodes[0].name


def test_nodes_that_take_no_such_pod_are_passed_over() -> None:
    nodes = (node("hard", soft=False), node("unsafe", unsafe="a card is gone"), node("empty", 0), node("good"))
    assert where(place(pod(soft(8192)), nodes, {})) == "good"
    assert where(place(pod(hard()), nodes, {})) == "hard"


def test_a_pod_that_no_node_holds_is_told_every_reason() -> None:
    nodes = (node("a", 2), node("b", 2, soft=False), node("c", 1, P), node("d", 2, unsafe="a card is gone"))
    used = {"a-0": held_soft(35536, 10), "a-1": full()}
    answer = unplaced(place(pod(soft(32000, 20)), nodes, used))
    assert dict(answer.nodes) == {
        "a": "2/2 CardInsufficientMemory",
        "b": "1/2 ModeNotFit",
        "c": "1/1 CardTypeMismatch, 1/1 NodeInsufficientDevice",
        "d": "1/2 NodeUnsafe",
    }
    assert dict(answer.reasons) == {
        Reason.CARD_INSUFFICIENT_MEMORY: 2,
        Reason.MODE_NOT_FIT: 1,
        Reason.CARD_TYPE_MISMATCH: 1,
        Reason.NODE_INSUFFICIENT_DEVICE: 1,
        Reason.NODE_UNSAFE: 1,
    }
    assert answer.message == (
        "no node holds it: c0 asks for 1 Ascend910B3 card with 32000 MiB and core 20; "
        "on the best card (a card 0) 2000 MiB are missing"
    )


@pytest.mark.parametrize(
    ("nodes", "nearest"),
    [
        # what a smaller slice cures is nearer than what others must leave, and that nearer than a repair
        (("faulty", "taken", "short"), "short card 0"),
        (("faulty", "taken"), "taken card 0"),
        (("faulty", "hard"), "faulty card 0"),
        (("chipless", "hard"), "hard takes no soft slices"),
        (("empty", "chipless"), "empty has no Ascend910B3 card"),
    ],
)
def test_the_nearest_miss_is_named(nodes: tuple[str, ...], nearest: str) -> None:
    known: dict[str, Node] = {
        "short": node("short", 1),
        "taken": node("taken", 1),
        "faulty": node("faulty", (card(0, node="faulty", healthy=False),)),
        "hard": node("hard", 1, soft=False),
        "chipless": node("chipless", 1, P),
        "empty": node("empty", 0),
    }
    used = {"short-0": held_soft(65000, 10), "taken-0": held_soft(1, 1, slots=10)}
    answer = unplaced(place(pod(soft(60000, 20)), [known[name] for name in nodes], used))
    assert nearest in answer.message


def test_the_node_with_most_cards_is_the_nearest() -> None:
    used = {"a-0": full(), "a-1": full(), "b-0": full()}
    answer = unplaced(place(pod(soft(65536, 100, count=2)), THREE[:2], used))
    assert answer.message.endswith(
        "b has 1 of 2 cards, and on the best card (b card 0) 65536 MiB and 100 percent of compute are missing"
    )


@pytest.mark.parametrize(
    ("wanted", "asked"),
    [
        (soft(8192, 20), "c0 asks for 1 Ascend910B3 card with 8192 MiB and core 20"),
        (soft(8192, count=2, of=C), "c0 asks for 2 Ascend910C cards with 8192 MiB and core 0"),
        (hard("vir05_1c_16g"), "c0 asks for 1 Ascend910B3 card with template vir05_1c_16g"),
        (hard(count=2), "c0 asks for 2 Ascend910B3 cards, whole"),
    ],
)
def test_without_nodes_the_message_still_says_what_is_asked(wanted: object, asked: str) -> None:
    answer = unplaced(place(pod(wanted), (), {}))  # type: ignore[arg-type]
    assert answer.message == f"there is no node: {asked}"
    assert (dict(answer.reasons), dict(answer.nodes)) == ({}, {})


def test_bad_requests_and_annotations_are_errors_also_without_nodes() -> None:
    with pytest.raises(RequestError):
        place(pod(soft(8192, 150)), (), {})
    with pytest.raises(AnnotationError):
        place(pod(soft(8192), annotations={names.CARD_POLICY: "best"}), (), {})


def test_cards_of_the_placement_belong_to_the_node() -> None:
    answer = place(pod(soft(8192), soft(8192)), THREE, USED, BINPACK)
    assert isinstance(answer, Placement)
    assert indices(answer) == [[0], [1]]
    assert set(answer.holds()) == {"b-0", "b-1"}
