from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnpu import names
from vnpu.annotations import policies
from vnpu.annotations.policies import CardPolicy, NodePolicy, ScoringWeights
from vnpu.errors import AnnotationError


def test_a_pod_that_says_nothing_has_no_policies_and_may_take_any_card() -> None:
    assert policies.pod_policies({"other": "x"}) == policies.PodPolicies(None, None, None)
    assert policies.card_choice({"other": "x"}, "Ascend910B3").allows("any")


def test_all_three_policies_are_read() -> None:
    annotations = {
        names.NODE_POLICY: "spread",
        names.CARD_POLICY: " binpack , numa",
        names.SCORING_WEIGHTS: "memory=3, slot=0,core=1",
    }
    found = policies.pod_policies(annotations)
    assert found.node is NodePolicy.SPREAD
    assert found.card == (CardPolicy.BINPACK, CardPolicy.NUMA)
    assert found.weights == ScoringWeights(slot=0, core=1, memory=3)


@pytest.mark.parametrize("value", ["", "numa", "Binpack", " spread", "binpack,spread", None, 1, ["spread"]])
def test_a_node_policy_is_one_of_three_words(value: object) -> None:
    with pytest.raises(AnnotationError, match=r"binpack, spread and mutex|text is expected") as caught:
        policies.pod_policies({names.NODE_POLICY: value})
    assert caught.value.path == "metadata.annotations[hami.io/node-scheduler-policy]"
    assert caught.value.value == value


@pytest.mark.parametrize("value", ["", "mutexx", "spread,", "spread,,mutex", "spread,spread", "SPREAD", {}, None])
def test_a_card_policy_is_a_list_of_known_words(value: object) -> None:
    with pytest.raises(AnnotationError, match=r"hami\.io/gpu-scheduler-policy"):
        policies.pod_policies({names.CARD_POLICY: value})


@pytest.mark.parametrize(
    "value",
    [
        "",
        "slot=1",
        "slot=1,core=1",
        "slot=1,core=1,memory=1,numa=1",
        "slot=1,core=1,memory=1,",
        "slot=0,core=0,memory=0",
        "slot=1,core=1,memory=-1",
        "slot=1,core=1,memory=1.5",
        "slot=1,core=1,core=1",
        "slot=1,core=1,memory=2147483648",
        "slot=1,core=1,memory=" + "9" * 5000,
        "slot=1,core=1,memory=²",
        "slot 1,core 1,memory 1",
        None,
        3,
    ],
)
def test_weights_name_all_three_and_are_not_all_zero(value: object) -> None:
    with pytest.raises(AnnotationError, match="device-scoring-weights"):
        policies.pod_policies({names.SCORING_WEIGHTS: value})


@pytest.mark.parametrize(
    ("text", "uuids"),
    [("", set()), ("  ", set()), ("a", {"a"}), ("a,b", {"a", "b"}), (" a , b,", {"a", "b"}), ("a,a", {"a"})],
)
def test_a_uuid_list_forgives_spaces_and_one_comma_at_the_end(text: str, uuids: set[str]) -> None:
    assert policies.uuid_list(text) == uuids


@pytest.mark.parametrize("value", [",", ",,", "a,,b", ",a", "a,,", "a b", "a:b", "a;b", "a\nb", None, 7, ["a"]])
def test_a_malformed_uuid_list_is_an_error_never_no_constraint(value: object) -> None:
    with pytest.raises(AnnotationError, match=r"hami\.io/use-Ascend910B3-uuid"):
        policies.card_choice({names.use_uuid("Ascend910B3"): value}, "Ascend910B3")


def test_exclusion_wins_and_another_chips_list_does_not_count() -> None:
    annotations = {
        names.use_uuid("Ascend910B4"): "a,b",
        names.no_use_uuid("Ascend910B4"): "b",
        names.use_uuid("Ascend910B4-1"): ",",
    }
    choice = policies.card_choice(annotations, "Ascend910B4")
    assert [uuid for uuid in "abc" if choice.allows(uuid)] == ["a"]


@given(st.text() | st.lists(st.text(alphabet="ab ,:=;01slotcremy"), max_size=5).map(",".join))
def test_any_text_is_read_or_refused_with_the_typed_error(text: str) -> None:
    for read in (policies.node_policy, policies.card_policy, policies.scoring_weights, policies.uuid_list):
        with contextlib.suppress(AnnotationError):
            read(text, "p")
