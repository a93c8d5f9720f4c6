"""Plans: pods in their order, gangs all or none, and the cards afterwards."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.support.cluster import container, full, hard, held_soft, indices, node, pod, soft
from vnpu.annotations.policies import CardPolicy, NodePolicy
from vnpu.cards import NO_USE, Use
from vnpu.errors import AnnotationError, RequestError
from vnpu.fit.answers import Plan, Reason
from vnpu.fit.plan import Workload, plan
from vnpu.mode import Mode

if TYPE_CHECKING:
    from vnpu.request import PodRequest


def replicas(count: int, request: PodRequest, name: str = "r") -> tuple[PodRequest, ...]:
    return tuple(replace(request, name=f"{name}-{index}") for index in range(count))


def where(answer: Plan) -> dict[str, tuple[str, list[int]]]:
    return {
        placement.pod.name: (placement.node, [index for cards in indices(placement) for index in cards])
        for placement in answer.placements
    }


WHOLE = pod(soft(65536, 100))


def test_pods_see_those_placed_before_them() -> None:
    pods = replicas(3, pod(soft(28672, 20)), "a") + replicas(5, pod(soft(8192, 10)), "b")
    answer = plan([Workload((one,)) for one in pods], [node("node-0")], {})
    assert {name: cards for name, (_, cards) in where(answer).items()} == {
        "a-0": [0],
        "a-1": [1],
        "a-2": [2],
        "b-0": [3],
        "b-1": [4],
        "b-2": [5],
        "b-3": [6],
        "b-4": [7],
    }
    assert answer.unplaced == ()


def test_the_cards_afterwards() -> None:
    used = {"n-0": held_soft(1000, 10), "elsewhere": held_soft(1)}
    nodes = [node("n", 3), node("m", 1, soft=False)]
    answer = plan([Workload((pod(soft(8192, 20)), pod(hard("vir05_1c_16g"))))], nodes, used, NodePolicy.SPREAD)
    assert [(status.node, status.card.index, status.mode, status.use) for status in answer.cards] == [
        ("n", 0, Mode.SOFT, held_soft(1000, 10)),
        ("n", 1, Mode.SOFT, held_soft(8192, 20)),
        ("n", 2, None, NO_USE),
        ("m", 0, Mode.HARD, Use(1, 16384, 0, 5, 1, Mode.HARD)),
    ]
    assert used == {"n-0": held_soft(1000, 10), "elsewhere": held_soft(1)}


def test_policies_are_told_and_followed() -> None:
    nodes = [node("a", 2), node("b", 2)]
    two = [Workload(replicas(2, pod(soft(8192, 10))))]
    answer = plan(two, nodes, {}, NodePolicy.SPREAD, CardPolicy.BINPACK)
    assert (answer.node_policy, answer.card_policy) == ("spread", "binpack")
    assert where(answer) == {"r-0": ("a", [0]), "r-1": ("b", [0])}
    answer = plan(two, nodes, {})
    assert (answer.node_policy, answer.card_policy) == ("binpack", "spread")
    assert where(answer) == {"r-0": ("a", [0]), "r-1": ("a", [1])}


def test_under_node_policy_mutex_every_pod_gets_a_node_without_others() -> None:
    nodes = [node("a", 2), node("b", 2)]
    answer = plan([Workload((one,)) for one in replicas(3, pod(soft(8192, 10)))], nodes, {}, NodePolicy.MUTEX)
    assert answer.node_policy == "mutex"
    assert where(answer) == {"r-0": ("a", [0]), "r-1": ("b", [0])}
    assert [dict(unplaced.reasons) for unplaced in answer.unplaced] == [{Reason.EXCLUSIVE_CONFLICT: 2}]


def test_a_gang_of_which_too_few_fit_gives_everything_back() -> None:
    gang = Workload(replicas(3, WHOLE, "gang"), min_available=3)
    single = Workload(replicas(1, WHOLE, "single"))
    answer = plan([gang, single], [node("n", 2)], {})
    assert where(answer) == {"single-0": ("n", [0])}
    assert [unplaced.pod.name for unplaced in answer.unplaced] == ["gang-0", "gang-1", "gang-2"]
    first, _, last = answer.unplaced
    assert first.message == "the gang needs 3 pods, and only 2 fit; this one would"
    assert (dict(first.reasons), dict(first.nodes)) == ({Reason.GANG_NOT_READY: 1}, {})
    assert last.message.startswith("the gang needs 3 pods, and only 2 fit; no node holds it")
    assert dict(last.nodes) == {"n": "2/2 CardInsufficientMemory"}


def test_a_gang_of_two_is_a_gang() -> None:
    answer = plan([Workload(replicas(2, WHOLE), min_available=2)], [node("n", 1)], {})
    assert answer.placements == ()
    assert [status.use for status in answer.cards] == [NO_USE]


def test_a_gang_that_is_ready_places_as_many_as_fit() -> None:
    answer = plan([Workload(replicas(4, WHOLE, "gang"), min_available=2)], [node("n", 3)], {})
    assert list(where(answer)) == ["gang-0", "gang-1", "gang-2"]
    assert [unplaced.pod.name for unplaced in answer.unplaced] == ["gang-3"]
    assert answer.unplaced[0].message.startswith("no node holds it")


def test_a_smaller_pod_of_a_gang_may_fit_after_a_larger_one_did_not() -> None:
    gang = Workload((WHOLE, replace(pod(soft(8192, 10)), name="small")), min_available=1)
    answer = plan([gang], [node("n", 1)], {"n-0": held_soft(1000, 10)})
    assert list(where(answer)) == ["small"]


def test_pods_without_an_npu_count_for_their_gang_but_are_not_listed() -> None:
    launcher = replace(pod(container(None)), name="launcher")
    ready = plan([Workload((launcher, *replicas(2, WHOLE)), min_available=3)], [node("n", 2)], {})
    assert list(where(ready)) == ["r-0", "r-1"]
    short = plan([Workload((launcher, *replicas(2, WHOLE)), min_available=3)], [node("n", 1)], {})
    assert short.placements == ()
    assert [unplaced.pod.name for unplaced in short.unplaced] == ["r-0", "r-1"]


def test_replicas_refused_alike_each_keep_their_name_and_see_what_changes() -> None:
    big, small = pod(soft(60000, 50)), pod(soft(4000, 10))
    order = [*replicas(2, big, "big"), *replicas(2, small, "small"), *replicas(1, big, "late")]
    answer = plan([Workload((one,)) for one in order], [node("n", 1)], {"n-0": held_soft(30000, 40)})
    assert list(where(answer)) == ["small-0", "small-1"]
    told = {unplaced.pod.name: unplaced.message.split("; ")[1] for unplaced in answer.unplaced}
    assert told == {
        "big-0": "on the best card (n card 0) 24464 MiB are missing",
        "big-1": "on the best card (n card 0) 24464 MiB are missing",
        "late-0": "on the best card (n card 0) 32464 MiB and 10 percent of compute are missing",
    }


def test_room_that_a_gang_gave_back_is_seen_by_the_same_pod_again() -> None:
    gang = Workload(replicas(3, WHOLE, "gang"), min_available=3)
    again = Workload(replicas(2, WHOLE, "again"), min_available=2)
    answer = plan([gang, again], [node("n", 2)], {})
    assert list(where(answer)) == ["again-0", "again-1"]
    assert [status.use for status in answer.cards] == [full(), full()]


def test_a_bad_pod_is_an_error() -> None:
    with pytest.raises(RequestError):
        plan([Workload((pod(soft(0)),))], [node()], {})


@pytest.mark.parametrize(("node_policy", "card_policy"), [("fullest", "spread"), ("binpack", "emptiest")])
def test_a_bad_policy_is_an_error(node_policy: str, card_policy: str) -> None:
    with pytest.raises(AnnotationError, match=r"node_policy|card_policy"):
        plan([], [], {}, node_policy, card_policy)
