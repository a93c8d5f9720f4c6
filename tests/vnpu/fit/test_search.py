"""Cards for several containers of a pod: what the first choices leave is not the last word."""

from __future__ import annotations

import pytest

from tests.support.cluster import C, P, card, container, held_soft, indices, init, node, pod, sidecar, soft
from vnpu import names
from vnpu.fit import search
from vnpu.fit.answers import NodeRefusal, Placement
from vnpu.fit.rules import fit, prepare

BINPACK = {names.CARD_POLICY: "binpack"}


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


def test_the_search_for_a_riddle_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MOST_TRIES", 200)
    used = {f"n-{index}": held_soft(1000 * index + 7 * index * index) for index in range(8)}
    sizes = [30011 + 97 * number * number for number in range(16)]
    task = prepare(pod(*(soft(size) for size in sizes), annotations=BINPACK))
    tries: list[None] = []
    take = search._Search._take
    monkeypatch.setattr(search._Search, "_take", lambda *them: (tries.append(None), take(*them))[1])
    assert isinstance(search.arrange(task.wants, node(cards=8), used, task.policy), search.DeadEnd)
    assert len(tries) <= 200 + len(sizes)
