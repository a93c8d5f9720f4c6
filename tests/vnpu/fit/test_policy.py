"""Policies: what the pod's annotations say beats what is given."""

from __future__ import annotations

import pytest

from vnpu import names
from vnpu.annotations.policies import CardPolicy, NodePolicy, ScoringWeights
from vnpu.errors import AnnotationError
from vnpu.fit.policy import DEFAULT_POLICY, Policy

GIVEN = Policy(NodePolicy.SPREAD, (CardPolicy.BINPACK,), ScoringWeights(2, 1, 0))


def test_the_defaults_are_those_of_hami() -> None:
    assert Policy(NodePolicy.BINPACK, (CardPolicy.SPREAD,), ScoringWeights(1, 1, 1)) == DEFAULT_POLICY


def test_a_pod_that_says_nothing_keeps_the_given_policy() -> None:
    assert GIVEN.for_pod({"other": "annotation"}) is GIVEN


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({names.NODE_POLICY: "binpack"}, Policy(NodePolicy.BINPACK, GIVEN.card, GIVEN.weights)),
        (
            {names.CARD_POLICY: "mutex, spread"},
            Policy(GIVEN.node, (CardPolicy.MUTEX, CardPolicy.SPREAD), GIVEN.weights),
        ),
        ({names.SCORING_WEIGHTS: "slot=0,core=0,memory=3"}, Policy(GIVEN.node, GIVEN.card, ScoringWeights(0, 0, 3))),
    ],
)
def test_each_annotation_beats_its_part(annotations: dict[str, str], expected: Policy) -> None:
    assert GIVEN.for_pod(annotations) == expected


def test_a_malformed_annotation_is_an_error() -> None:
    with pytest.raises(AnnotationError, match="node-scheduler-policy"):
        GIVEN.for_pod({names.NODE_POLICY: "Binpack"})


@pytest.mark.parametrize(
    ("word", "sign", "unused_only"), [("binpack", -1, False), ("spread", 1, False), ("mutex", 0, True)]
)
def test_the_node_policy_orders_nodes_or_leaves_them_in_their_order(word: str, sign: int, *, unused_only: bool) -> None:
    policy = Policy(NodePolicy(word))
    assert (policy.node_sign, policy.unused_nodes_only) == (sign, unused_only)


@pytest.mark.parametrize(
    ("words", "sign", "unused_only"),
    [
        (("binpack",), -1, False),
        (("spread",), 1, False),
        (("mutex",), 0, True),
        (("numa",), 0, False),
        (("mutex", "binpack"), -1, True),
        (("numa", "spread", "binpack"), 1, False),
    ],
)
def test_the_first_word_that_orders_cards_orders_them(words: tuple[str, ...], sign: int, *, unused_only: bool) -> None:
    policy = Policy(card=tuple(CardPolicy(word) for word in words))
    assert (policy.card_sign, policy.unused_cards_only) == (sign, unused_only)
