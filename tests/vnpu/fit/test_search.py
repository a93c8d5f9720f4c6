"""Cards for several containers of a pod: what the first choices leave is not the last word."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.support.cluster import C, P, card, container, held_soft, indices, init, node, pod, sidecar, soft
from vnpu.fit import search
from vnpu.fit.answers import NodeRefusal, Placement, Unplaced
from vnpu.fit.place import place
from vnpu.fit.rules import fit

if TYPE_CHECKING:
    from vnpu.cards import Card, Node, Use
    from vnpu.fit.laws import Want
    from vnpu.request import PodRequest


def test_each_container_takes_what_it_prefers_where_all_fit() -> None:
    answer = fit(pod(soft(1024, 10), soft(1024, 10), soft(1024, 10)), node(cards=2), {})
    assert isinstance(answer, Placement)
    assert indices(answer) == [[0], [1], [0]]


def test_an_earlier_container_makes_room_for_a_later_one() -> None:
    # The small one prefers the empty card, which is the only one that holds the big one.
    answer = fit(pod(soft(20000), soft(60000)), node(cards=2), {"n-0": held_soft(40000)})
    assert isinstance(answer, Placement)
    assert indices(answer) == [[0], [1]]


def test_containers_with_several_cards_make_room_too() -> None:
    used = {"n-0": held_soft(32768), "n-1": held_soft(32768)}
    answer = fit(pod(soft(30000, count=2), soft(60000, count=2)), node(cards=4), used)
    assert isinstance(answer, Placement)
    assert indices(answer) == [[0, 1], [2, 3]]


def test_modules_make_room_as_wholes() -> None:
    used = {"n-0": held_soft(32768), "n-1": held_soft(32768)}
    answer = fit(pod(soft(30000, count=2, of=C), soft(60000, count=2, of=C)), node(cards=4, of=C), used)
    assert isinstance(answer, Placement)
    assert indices(answer) == [[0, 1], [2, 3]]


def test_making_room_stays_within_a_group_where_a_group_holds_the_request() -> None:
    cards = [card(index, network_id=index // 3) for index in range(6)]
    used = {"n-0": held_soft(32768), "n-1": held_soft(32768), "n-3": held_soft(50000), "n-4": held_soft(20000)}
    request = pod(soft(30000, count=2), soft(60000), soft(60000))
    answer = fit(request, node(cards=cards), used)
    assert isinstance(answer, Placement)
    assert indices(answer)[0] == [0, 1]


def test_containers_of_different_chips_do_not_meet() -> None:
    cards = (card(0), card(1, P))
    answer = fit(pod(soft(60000), soft(20000, of=P), soft(1500, of=P)), node(cards=cards), {})
    assert isinstance(answer, Placement)
    assert indices(answer) == [[0], [1], [1]]


def test_init_containers_share_their_cards_with_the_apps() -> None:
    parts = init(soft(60000)), sidecar(soft(5000)), container(soft(60000))
    answer = fit(pod(*parts), node(cards=1), {})
    assert isinstance(answer, Placement)
    assert indices(answer) == [[0], [0], [0]]


def test_a_slice_without_core_must_come_before_the_card_is_full() -> None:
    first = fit(pod(soft(1, 0), soft(1, 60), soft(1, 40)), node(cards=1), {})
    last = fit(pod(soft(1, 60), soft(1, 40), soft(1, 0)), node(cards=1), {})
    assert isinstance(first, Placement)
    assert isinstance(last, NodeRefusal)


def test_many_equal_containers_are_no_riddle() -> None:
    eighth = 65536 // 8
    answer = fit(pod(*(soft(eighth, 10) for _ in range(64))), node(cards=8), {})
    assert isinstance(answer, Placement)
    assert answer.holds() == {f"n-{index}": held_soft(65536, 80, slots=8) for index in range(8)}
    one_more = fit(pod(*(soft(eighth, 10) for _ in range(65))), node(cards=8), {})
    assert isinstance(one_more, NodeRefusal)
    assert one_more.message == "on the best card (n card 0) 8192 MiB are missing for c64"


@pytest.mark.parametrize("containers", [64, 1500])
def test_a_pod_of_very_many_containers_is_answered(containers: int) -> None:
    request = pod(*(soft(1, 0) for _ in range(containers)))
    cards = [card(index, slots=containers) for index in range(2)]
    assert isinstance(fit(request, node(cards=cards), {}), Placement)
    assert isinstance(fit(request, node(cards=2), {}), NodeRefusal)


def test_the_search_by_size_keeps_the_order_that_matters() -> None:
    too_late = fit(pod(soft(1, 60), soft(1, 40), soft(60000, 0)), node(cards=1), {})
    assert isinstance(too_late, NodeRefusal)
    beside = fit(pod(sidecar(soft(20000)), init(soft(60000))), node(cards=1), {})
    assert isinstance(beside, NodeRefusal)
    before = fit(pod(init(soft(60000)), sidecar(soft(20000))), node(cards=1), {})
    assert isinstance(before, Placement)


# ---- Riddles


def riddle(seed: int, part: float = 1.0) -> tuple[PodRequest, Node, dict[str, Use]]:
    """Sixteen containers on eight cards: for each card two that fill that part of what is left of it."""
    generator = random.Random(seed)
    used = {f"n-{index}": held_soft(generator.randrange(30000)) for index in range(8)}
    sizes = []
    for held in used.values():
        free = 65536 - held.memory_mib
        first = generator.randrange(1000, free - 1000)
        sizes += [int(first * part), int((free - first) * part)]
    generator.shuffle(sizes)
    return pod(*map(soft, sizes)), node(cards=8), used


@pytest.fixture
def tries(monkeypatch: pytest.MonkeyPatch) -> list[Want]:
    """The containers that were put on cards, one entry for each time."""
    seen: list[Want] = []
    put = search._put

    def counted(want: Want, cards: tuple[Card, ...], held: dict[str, Use]) -> dict[str, Use]:
        seen.append(want)
        return put(want, cards, held)

    monkeypatch.setattr(search, "_put", counted)
    return seen


@pytest.mark.parametrize("seed", range(20))
def test_containers_that_nearly_fill_the_cards_find_them_soon(seed: int, tries: list[Want]) -> None:
    request, on, used = riddle(seed, 0.85)
    assert isinstance(fit(request, on, used), Placement)
    assert len(tries) < 100


def test_what_cannot_be_enough_is_refused_without_a_search(tries: list[Want]) -> None:
    request, on, used = riddle(1)
    one_more = replace(request, containers=(*request.containers, container(soft(1), "last")))
    answer = fit(one_more, on, used)
    assert isinstance(answer, NodeRefusal)
    assert "MiB are missing for c" in answer.message
    assert len(tries) <= len(one_more.containers)


def test_a_container_that_fits_on_no_card_is_told_before_others(tries: list[Want]) -> None:
    used = {f"n-{index}": held_soft(1) for index in range(8)}
    answer = fit(pod(*(soft(40000) for _ in range(9)), soft(65536)), node(cards=8), used)
    assert isinstance(answer, NodeRefusal)
    assert answer.message == "on the best card (n card 0) 1 MiB are missing for c9"
    assert len(tries) == 8


def test_a_search_that_is_cut_short_says_so_and_what_to_do(monkeypatch: pytest.MonkeyPatch, tries: list[Want]) -> None:
    monkeypatch.setattr(search, "MOST_TRIES", 50)
    request, on, used = riddle(1)
    answer = fit(request, on, used)
    assert isinstance(answer, NodeRefusal)
    assert answer.message == (
        "n has room for each container and for all together, but the search for cards that hold them all was cut "
        "short: with fewer containers, or the same in another order, the pod may fit"
    )
    assert len(tries) <= 50 + 2 * len(request.containers)
    unplaced = place(request, [node("full", cards=()), on], used)
    assert isinstance(unplaced, Unplaced)
    assert unplaced.message.startswith("no node was found for it: c0 asks for")
    assert unplaced.message.endswith(answer.message)
