"""Fit on one node: tables for each rule, and what a refusal says."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.chips import chip_named
from tests.support.cluster import (
    C,
    P,
    card,
    container,
    full,
    hard,
    held_hard,
    held_soft,
    indices,
    init,
    node,
    pod,
    sidecar,
    soft,
)
from vnpu import names
from vnpu.cards import NO_USE, Node, Use
from vnpu.chips import DEFAULT_CHIPS, ChipTable
from vnpu.errors import AnnotationError, RequestError
from vnpu.fit.answers import NodeRefusal, Placement, Reason
from vnpu.fit.rules import explain, fit
from vnpu.mode import Mode
from vnpu.request import PodRequest, SliceRequest, pod_request

if TYPE_CHECKING:
    from collections.abc import Mapping


def placed(request: PodRequest, on: Node, used: Mapping[str, Use] | None = None) -> Placement:
    answer = fit(request, on, used or {})
    assert isinstance(answer, Placement), answer
    return answer


def refused(request: PodRequest, on: Node, used: Mapping[str, Use] | None = None) -> NodeRefusal:
    answer = fit(request, on, used or {})
    assert isinstance(answer, NodeRefusal), answer
    return answer


# ---- What a success carries


def test_every_container_has_its_place_in_the_order_of_the_pod() -> None:
    request = pod(init(None), sidecar(soft(1024)), container(None, "proxy"), container(soft(28672, 20), "main"))
    answer = placed(request, node(cards=2))
    assert answer.pod is request
    assert answer.node == "n"
    assert [(entry.name, len(entry.cards)) for entry in answer.containers] == [
        ("init", 0),
        ("sidecar", 1),
        ("proxy", 0),
        ("main", 1),
    ]
    share = answer.containers[3].cards[0]
    assert (share.card.uuid, share.memory_mib, share.core_percent, share.template) == ("n-1", 28672, 20, None)


def test_each_card_is_charged_memory_and_core_in_full() -> None:
    answer = placed(pod(soft(20000, 30, count=3)), node(cards=4))
    assert answer.holds() == {f"n-{index}": held_soft(20000, 30) for index in range(3)}


def test_a_template_is_named_and_charged_with_its_ai_cores() -> None:
    answer = placed(pod(hard("vir05_1c_16g")), node(soft=False))
    assert answer.containers[0].cards[0].template == "vir05_1c_16g"
    assert answer.holds() == {"n-0": Use(1, 16384, 0, 5, 1, Mode.HARD)}


def test_two_containers_of_a_pod_may_share_a_card() -> None:
    assert indices(placed(pod(soft(30000, 40), soft(30000, 40)), node(cards=1))) == [[0], [0]]


# ---- R23: core is never clamped; what no card may give is an error, not an answer


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        (soft(8192, -5), "core_percent"),
        (soft(8192, 101), "core_percent"),
        (soft(8192, 150), "core_percent"),
        (soft(8192, 2**31), "core_percent"),
        (soft(0, 20), "memory_mib"),
        (soft(-1, 20), "memory_mib"),
        (soft(8192, 20, count=0), "count"),
        (soft(8192, 20, count=-1), "count"),
        (soft(8192, 20, count=3, of=C), "count"),
        (soft(8192, 20, count=1, of=C), "count"),
        (replace(hard(), core_percent=1), "core_percent"),
        (replace(hard("vir05_1c_16g"), template="vir99"), "template"),
        (replace(soft(16384), template="vir05_1c_16g"), "template"),
    ],
)
def test_a_request_that_no_card_may_give_is_an_error(wanted: Any, field: str) -> None:
    with pytest.raises(RequestError) as error:
        fit(pod(wanted), node(), {})
    assert error.value.path == f"containers[0].{field}"
    assert error.value.value == getattr(wanted, field)


def test_a_slice_in_another_mode_than_its_pod_is_an_error() -> None:
    with pytest.raises(RequestError, match=r"containers\[1\]\.mode"):
        fit(pod(soft(8192), hard()), node(), {})


def test_a_pod_that_asks_for_nothing_is_an_error_not_a_success_anywhere() -> None:
    with pytest.raises(RequestError, match="none asks for an NPU"):
        fit(pod(container(None)), node(), {})


@pytest.mark.parametrize(
    "annotations",
    [
        {names.CARD_POLICY: "fullest"},
        {names.NODE_POLICY: ""},
        {names.SCORING_WEIGHTS: "slot=1"},
        {names.use_uuid("Ascend910B3"): "a,,b"},
        {names.no_use_uuid("Ascend910B3"): "a b"},
    ],
)
def test_malformed_annotations_are_errors(annotations: dict[str, str]) -> None:
    with pytest.raises(AnnotationError):
        fit(pod(soft(8192), annotations=annotations), node(), {})


# ---- Cards: what may join what


@pytest.mark.parametrize(
    ("wanted", "held", "reason"),
    [
        # memory, to the MiB
        (soft(20000), held_soft(45536), None),
        (soft(20001), held_soft(45536), Reason.CARD_INSUFFICIENT_MEMORY),
        # compute, to the percent
        (soft(8192, 20), held_soft(8192, 80), None),
        (soft(8192, 21), held_soft(8192, 80), Reason.CARD_INSUFFICIENT_CORE),
        # slots
        (soft(1), held_soft(9, slots=9), None),
        (soft(1), held_soft(10, slots=10), Reason.CARD_TIME_SLICING_EXHAUSTED),
        # R35: a whole tenant is alone, and compute that is given away is not shared
        (soft(8192, 100), NO_USE, None),
        (soft(8192, 100), held_soft(8192, 0), Reason.EXCLUSIVE_CONFLICT),
        (soft(8192, 0), held_soft(8192, 100), Reason.CARD_COMPUTE_UNITS_EXHAUSTED),
        (soft(8192, 0), held_soft(8192, 99), None),
        (soft(8192, 10), held_soft(24576, 90, slots=3), None),
        (soft(8192, 20), held_soft(24576, 90, slots=3), Reason.CARD_INSUFFICIENT_CORE),
        # one mode per card
        (soft(8192), held_hard("vir05_1c_16g"), Reason.CARD_MODE_CONFLICT),
        (hard("vir05_1c_16g"), held_soft(8192), Reason.CARD_MODE_CONFLICT),
        (soft(8192), Use(1, 8192), Reason.CARD_MODE_CONFLICT),
        # hard slices share AI cores and AI CPUs
        (hard("vir05_1c_16g"), held_hard("vir10_3c_32g"), None),
        (hard("vir10_3c_32g"), Use(2, 16384, 0, 15, 2, Mode.HARD), Reason.CARD_INSUFFICIENT_AI_CORE),
        (hard("vir10_3c_32g"), Use(2, 16384, 0, 5, 5, Mode.HARD), Reason.CARD_INSUFFICIENT_AI_CPU),
        (hard(), NO_USE, None),
        (hard(), held_hard("vir05_1c_16g"), Reason.CARD_INSUFFICIENT_MEMORY),
    ],
)
def test_what_may_join_a_card(wanted: Any, held: Use, reason: Reason | None) -> None:
    answer = fit(pod(wanted), node(cards=1), {"n-0": held})
    if reason is None:
        assert isinstance(answer, Placement)
    else:
        assert isinstance(answer, NodeRefusal)
        assert (dict(answer.reasons), answer.text) == ({reason: 1}, f"1/1 {reason.value}")


def test_cards_of_other_chips_faulty_cordoned_and_excluded_ones_are_left_alone() -> None:
    cards = (card(0, chip_named("Ascend910B4")), card(1, healthy=False), card(2), card(3), card(4))
    on = node(cards=cards, cordoned=["n-2"])
    request = pod(soft(8192), annotations={names.no_use_uuid("Ascend910B3"): "n-3"})
    assert indices(placed(request, on)) == [[4]]
    assert refused(request, on, {"n-4": full()}).text == (
        "1/5 CardCordoned, 1/5 CardInsufficientMemory, 1/5 CardNotHealth, 1/5 CardTypeMismatch, 1/5 CardUuidMismatch"
    )


@pytest.mark.parametrize(
    ("use", "no_use", "expected"),
    [("n-2", "", [2]), (" n-1 , n-2,", "n-1", [2]), ("", "n-0", [1]), ("", "", [0]), ("gone", "", None)],
)
def test_cards_may_be_chosen_by_uuid(use: str, no_use: str, expected: list[int] | None) -> None:
    keys = names.use_uuid("Ascend910B3"), names.no_use_uuid("Ascend910B3")
    answer = fit(pod(soft(8192), annotations=dict(zip(keys, (use, no_use), strict=True))), node(cards=3), {})
    if expected is None:
        assert isinstance(answer, NodeRefusal)
        assert answer.text == "3/3 CardUuidMismatch"
    else:
        assert isinstance(answer, Placement)
        assert indices(answer) == [expected]


def test_lists_for_other_chips_mean_nothing_here() -> None:
    assert indices(placed(pod(soft(8192), annotations={names.use_uuid("Ascend910B4"): "x"}), node())) == [[0]]


def test_mutex_takes_only_cards_that_nobody_uses() -> None:
    request = pod(soft(8192), annotations={names.CARD_POLICY: "mutex"})
    assert indices(placed(request, node(cards=2), {"n-0": held_soft(1)})) == [[1]]
    used = {"n-0": held_soft(1), "n-1": held_soft(1)}
    assert refused(request, node(cards=2), used).reasons == {Reason.EXCLUSIVE_CONFLICT: 2}


def test_mutex_keeps_the_containers_of_a_pod_apart_too() -> None:
    request = pod(soft(1), soft(1), annotations={names.CARD_POLICY: "mutex,binpack"})
    assert indices(placed(request, node(cards=2))) == [[0], [1]]
    assert refused(request, node(cards=1)).reasons == {Reason.EXCLUSIVE_CONFLICT: 1}


@pytest.mark.parametrize(("mode", "wanted"), [("soft", soft(8192)), ("hard", hard("vir05_1c_16g"))])
def test_node_policy_mutex_takes_only_nodes_where_nobody_uses_a_card(mode: str, wanted: SliceRequest) -> None:
    request = pod(wanted, wanted, annotations={names.NODE_POLICY: "mutex"})
    assert indices(placed(request, node(cards=2))) == [[0], [1]]
    answer = refused(request, node(cards=2), {"n-1": held_soft(1) if mode == "soft" else held_hard("vir05_1c_16g")})
    assert answer.text == "1/2 ExclusiveDeviceAllocateConflict"
    assert answer.message == "n has cards of the pod's chips in use, and node policy mutex takes no such node"


def test_node_policy_mutex_is_about_the_cards_of_the_chip() -> None:
    request = pod(soft(8192), annotations={names.NODE_POLICY: "mutex"})
    mixed = node(cards=(card(0), card(1, P)))
    assert indices(placed(request, mixed, {"n-1": held_soft(1), "elsewhere": held_soft(1)})) == [[0]]
    both = pod(soft(8192), soft(1, of=P), annotations={names.NODE_POLICY: "mutex"})
    assert refused(both, mixed, {"n-1": held_soft(1)}).reasons == {Reason.EXCLUSIVE_CONFLICT: 1}


# ---- Nodes


def test_a_soft_pod_needs_a_soft_node() -> None:
    answer = refused(pod(soft(8192)), node(soft=False))
    assert answer.text == "1/8 ModeNotFit"
    assert names.SOFT_NODE in answer.message


def test_a_hard_pod_may_take_the_empty_cards_of_a_soft_node() -> None:
    assert indices(placed(pod(hard("vir05_1c_16g")), node(cards=2), {"n-0": held_soft(8192)})) == [[1]]


def test_an_unsafe_node_takes_nothing_and_says_why() -> None:
    answer = refused(pod(soft(8192)), node(unsafe="pod a/b: its allocation cannot be read"))
    assert answer.text == "1/8 NodeUnsafe"
    assert "pod a/b: its allocation cannot be read" in answer.message


@pytest.mark.parametrize(
    ("on", "text", "message"),
    [
        (node(cards=0), "1/1 NodeInsufficientDevice", "n has no Ascend910B3 card"),
        (node(cards=0, soft=False), "1/1 NodeInsufficientDevice", "n has no Ascend910B3 card"),
        (
            node(cards=2, of=P),
            "1/2 NodeInsufficientDevice, 2/2 CardTypeMismatch",
            "n has no Ascend910B3 card",
        ),
        (node(cards=1), "1/1 NodeInsufficientDevice", "n has only 1 of 2 Ascend910B3 cards"),
    ],
)
def test_a_node_without_enough_cards_of_the_chip_says_so_first(on: Node, text: str, message: str) -> None:
    answer = refused(pod(soft(8192, count=2)), on)
    assert (answer.text, answer.message) == (text, message)


# ---- R32: init containers and native sidecars


@pytest.mark.parametrize(
    ("containers", "peak_mib"),
    [
        ((sidecar(soft(2048, of=P)), init(soft(10240, of=P)), container(soft(5120, of=P))), 12288),
        ((init(soft(10240, of=P)), sidecar(soft(2048, of=P)), container(soft(5120, of=P))), 10240),
        ((init(soft(5120, of=P)), sidecar(soft(2048, of=P)), container(soft(10240, of=P))), 12288),
        ((init(soft(10240, of=P)), init(soft(9216, of=P)), container(soft(5120, of=P))), 10240),
        ((container(soft(10240, of=P), "a"), container(soft(5120, of=P), "b")), 15360),
    ],
)
def test_init_containers_see_the_sidecars_before_them_and_apps_see_all(containers: Any, peak_mib: int) -> None:
    request = pod(*containers)
    used = {"n-0": held_soft(P.memory_allocatable_mib - peak_mib, slots=1)}
    answer = placed(request, node(cards=1, of=P), used)
    assert answer.holds()["n-0"].memory_mib == peak_mib
    one_less = {"n-0": held_soft(P.memory_allocatable_mib - peak_mib + 1, slots=1)}
    assert Reason.CARD_INSUFFICIENT_MEMORY in refused(request, node(cards=1, of=P), one_less).reasons


def test_the_numbers_of_the_field_report() -> None:
    b4 = chip_named("Ascend910B4")
    parts = init(soft(20480, of=b4)), sidecar(soft(2048, of=b4)), container(soft(10240, of=b4))
    listed_after = placed(pod(*parts), node(cards=1, of=b4))
    listed_before = placed(pod(parts[1], parts[0], parts[2]), node(cards=1, of=b4))
    assert listed_after.holds()["n-0"].memory_mib == 20480
    assert listed_before.holds()["n-0"].memory_mib == 22528


def test_core_follows_the_same_order() -> None:
    after = pod(init(soft(1, 90)), sidecar(soft(1, 20)), container(soft(1, 70)))
    before = pod(sidecar(soft(1, 20)), init(soft(1, 90)), container(soft(1, 70)))
    assert placed(after, node(cards=1)).holds()["n-0"].core_percent == 90
    assert refused(before, node(cards=1)).reasons == {Reason.CARD_INSUFFICIENT_CORE: 1}


def test_a_whole_init_container_is_gone_when_the_apps_start() -> None:
    answer = placed(pod(init(soft(65536, 100)), container(soft(8192, 0))), node(cards=1))
    assert answer.holds() == {"n-0": full()}


# ---- R35: a card that is asked for without numbers is a whole one


def test_only_a_count_means_the_whole_card_with_all_its_compute() -> None:
    document = {
        "metadata": {"name": "p", "annotations": {names.MODE: "hami-core"}},
        "spec": {"containers": [{"name": "c", "resources": {"limits": {"huawei.com/Ascend910B3": 1}}}]},
    }
    request = pod_request(document, DEFAULT_CHIPS)
    assert placed(request, node()).holds() == {"n-0": full()}
    assert indices(placed(request, node(), {"n-0": held_soft(1)})) == [[1]]


def test_three_slices_of_thirty_leave_ten() -> None:
    used = {"n-0": held_soft(3, 90, slots=3)}
    assert isinstance(fit(pod(soft(1, 10)), node(cards=1), used), Placement)
    assert refused(pod(soft(1, 20)), node(cards=1), used).text == "1/1 CardInsufficientCore"


# ---- R37: reasons are counted card by card, and the nearest miss is named


def test_reasons_are_counted_card_by_card() -> None:
    on = node(cards=(card(0), card(1), card(2, healthy=False)))
    used = {"n-0": held_soft(65536 - 28672, 100), "n-1": held_soft(65536 - 20000, 10)}
    answer = refused(pod(soft(30000, 20)), on, used)
    assert dict(answer.reasons) == {Reason.CARD_INSUFFICIENT_MEMORY: 2, Reason.CARD_NOT_HEALTH: 1}
    assert answer.text == "1/3 CardNotHealth, 2/3 CardInsufficientMemory"
    assert answer.message == "on the best card (n card 1) 10000 MiB are missing"


def test_a_card_whose_compute_is_given_away_is_not_near_however_little_memory_is_missing() -> None:
    used = {"n-0": held_soft(65536 - 29999, 100), "n-1": held_soft(65536 - 20000, 10)}
    assert "card 1) 10000 MiB are missing" in refused(pod(soft(30000)), node(cards=2), used).message
    alone = refused(pod(soft(30000)), node(cards=1), used).message
    assert alone == (
        "on the best card (n card 0) 1 MiB are missing, and all compute is given away, so that nothing is left to share"
    )


@pytest.mark.parametrize(
    ("wanted", "held", "message"),
    [
        (soft(8192, 30), held_soft(60000, 80), "2656 MiB and 10 percent of compute are missing"),
        (soft(8192, 30), held_soft(8192, 80), "10 percent of compute are missing"),
        (hard("vir10_3c_32g"), Use(2, 16384, 0, 15, 5, Mode.HARD), "5 AI cores and 1 AI CPUs are missing"),
        (soft(1), held_soft(10, slots=10), "all 10 slots are taken"),
        (soft(1, 100), held_soft(10, slots=2), "2 slices are there, and the pod wants the card alone"),
        (soft(70000), held_soft(10), "4474 MiB are missing (of 65536 MiB in all)"),
        (soft(1, 100), held_soft(10), "1 slice is there, and the pod wants the card alone"),
        (soft(1), held_hard(), "template slices are there, which hami-core ones cannot join"),
        (soft(1), Use(1, 1), "unknown slices are there, which hami-core ones cannot join"),
    ],
)
def test_the_sentence_says_what_is_missing(wanted: Any, held: Use, message: str) -> None:
    assert refused(pod(wanted), node(cards=1), {"n-0": held}).message == f"on the best card (n card 0) {message}"


@pytest.mark.parametrize(
    ("annotations", "message"),
    [
        ({names.use_uuid("Ascend910B3"): "n-7"}, "hami.io/use-Ascend910B3-uuid does not name the card"),
        ({names.no_use_uuid("Ascend910B3"): "n-0"}, "hami.io/no-use-Ascend910B3-uuid names the card"),
    ],
)
def test_the_annotation_that_leaves_a_card_out_is_named(annotations: dict[str, str], message: str) -> None:
    answer = refused(pod(soft(1), annotations=annotations), node(cards=1), {})
    assert answer.message == f"on the best card (n card 0) the pod's annotation {message}"


def test_with_several_cards_the_sentence_says_how_many_there_are() -> None:
    used = {"n-0": full(), "n-1": held_soft(60000, 10)}
    answer = refused(pod(soft(8192, 10, count=3)), node(cards=3), used)
    assert dict(answer.reasons) == {
        Reason.CARD_INSUFFICIENT_MEMORY: 2,
        Reason.ALLOCATED_CARDS_INSUFFICIENT: 1,
    }
    assert answer.message == "n has 1 of 3 cards, and on the best card (n card 1) 2656 MiB are missing"


def test_with_several_containers_the_sentence_says_for_which() -> None:
    answer = refused(pod(soft(40000), soft(30000)), node(cards=1))
    assert answer.message == "on the best card (n card 0) 4464 MiB are missing for c1"


def test_a_container_that_can_never_fit_is_told_without_its_siblings() -> None:
    answer = refused(pod(soft(40000), soft(70000)), node(cards=1))
    assert answer.message == "on the best card (n card 0) 4464 MiB are missing (of 65536 MiB in all) for c1"


# ---- R28: modules of two


@pytest.mark.parametrize("pairing", [True, False])
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_what_admission_accepts_fits_on_an_empty_node(count: int, *, pairing: bool) -> None:
    chips = ChipTable((replace(C, super_pod=pairing),))
    document = {
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "resources": {"limits": {"huawei.com/Ascend910C": count}}}]},
    }
    if pairing and count == 3:
        with pytest.raises(RequestError, match="modules of two"):
            pod_request(document, chips)
        return
    answer = placed(pod_request(document, chips), node(of=C))
    assert indices(answer) == [list(range(2 if pairing and count == 1 else count))]


def test_only_whole_modules_are_taken() -> None:
    used = {"n-0": full(C), "n-3": full(C)}
    assert indices(placed(pod(soft(65536, 100, 2, C)), node(cards=6, of=C), used)) == [[4, 5]]
    answer = refused(pod(soft(65536, 100, 4, C)), node(cards=6, of=C), used)
    assert answer.text == "2/6 CardInsufficientMemory, 4/6 AllocatedCardsInsufficientRequest"
    assert answer.message == "on n 4 cards would do, but too few of them form whole modules (2n, 2n + 1)"


def test_odd_neighbours_are_no_module() -> None:
    answer = refused(pod(soft(8192, count=2, of=C)), node(cards=(card(1, C), card(2, C))))
    assert answer.text == "2/2 AllocatedCardsInsufficientRequest"


# ---- Explaining card by card


def test_explain_tells_every_card() -> None:
    used = {"n-0": held_soft(60000), "n-1": full()}
    cards = (card(0), card(1), card(2), card(3, P))
    found = explain(pod(soft(8192, 10)), node(cards=cards), used)
    assert [(entry.card.index, entry.reason, entry.detail) for entry in found] == [
        (0, Reason.CARD_INSUFFICIENT_MEMORY, "2656 MiB are missing"),
        (1, Reason.CARD_INSUFFICIENT_MEMORY, "8192 MiB and 10 percent of compute are missing"),
        (2, None, ""),
        (3, Reason.CARD_TYPE_MISMATCH, "the chip is Ascend310P, not Ascend910B3"),
    ]
    assert {entry.container for entry in found} == {"c0"}


def test_explain_is_about_the_container_that_found_no_cards() -> None:
    found = explain(pod(soft(40000), soft(30000)), node(cards=1), {})
    assert [(entry.container, entry.detail) for entry in found] == [("c1", "4464 MiB are missing")]


def test_explain_on_a_node_that_is_refused_as_a_whole() -> None:
    found = explain(pod(soft(8192)), node(cards=2, unsafe="a card is gone"), {})
    assert [(entry.reason, "a card is gone" in entry.detail) for entry in found] == [(Reason.NODE_UNSAFE, True)] * 2
    request = pod(soft(8192), annotations={names.NODE_POLICY: "mutex"})
    found = explain(request, node(cards=2), {"n-0": held_soft(1)})
    assert [(entry.reason, "mutex" in entry.detail) for entry in found] == [(Reason.EXCLUSIVE_CONFLICT, True)] * 2
