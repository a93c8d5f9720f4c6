"""The validator: what an update may change, and what a pod is told that never met the mutating webhook."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.support.api_server import defaulted
from tests.support.pods import CHIP, MEMORY, asking, container, patched, pod
from vnpu import names
from vnpu.admission import rules
from vnpu.admission.outcome import Outcome
from vnpu.admission.settings import Settings
from vnpu.chips import DEFAULT_CHIPS
from vnpu.errors import FieldError

SLICE = asking(count=1, memory=8192, core=20)
DEFAULTS = Settings()


class TestUpdate:
    @pytest.mark.parametrize("user", ["system:serviceaccount:kube-system:hami-scheduler", "alice"])
    @pytest.mark.parametrize(
        "name", [names.MODE, CHIP, "hami.io/Ascend910B3-devices-to-allocate", "hami.io/bind-phase"]
    )
    @pytest.mark.parametrize(("before", "after"), [(None, "x"), ("x", "y"), ("x", None)])
    def test_only_allocators_change_allocations(self, user: str, name: str, before: Any, after: Any) -> None:
        def state(value: Any) -> dict[str, Any]:
            return pod(container(), annotations={} if value is None else {name: value})

        outcome = rules.validate_pod_update(state(after), state(before), user, DEFAULTS, DEFAULT_CHIPS)
        assert outcome.allowed is (user != "alice")
        assert [fault.path for fault in outcome.refusals] == [] or f"metadata.annotations[{name}]" in outcome.message

    @pytest.mark.parametrize("annotations", [None, {}, {names.MODE: "hami_core"}, {CHIP: "[]"}])
    def test_r15_pods_made_before_we_came_are_left_alone(self, annotations: Any) -> None:
        old = pod(
            container(limits=asking(memory="16Gi"), securityContext={"privileged": True}), annotations=annotations
        )
        new = copy.deepcopy(old)
        new["metadata"]["finalizers"] = []
        new["metadata"]["labels"] = {"a": "b"}
        assert rules.validate_pod_update(new, old, "alice", DEFAULTS, DEFAULT_CHIPS) == Outcome()

    def test_r15_annotations_that_are_not_ours_may_change_and_the_map_may_appear(self) -> None:
        old, new = pod(container()), pod(container(), annotations={"team": "a"})
        assert rules.validate_pod_update(new, old, "alice", DEFAULTS, DEFAULT_CHIPS).allowed
        assert rules.validate_pod_update(old, new, "alice", DEFAULTS, DEFAULT_CHIPS).allowed

    @pytest.mark.parametrize("odd", [None, [], "x", {"metadata": None}, {"metadata": {"annotations": ["x"]}}])
    def test_odd_states(self, odd: Any) -> None:
        forged = pod(container(), annotations={CHIP: "[]"})
        assert rules.validate_pod_update(odd, odd, "alice", DEFAULTS, DEFAULT_CHIPS) == Outcome()
        assert not rules.validate_pod_update(forged, odd, "alice", DEFAULTS, DEFAULT_CHIPS).allowed


class TestSecondLine:
    def test_r78_a_pod_that_skipped_the_mutating_webhook_is_found(self) -> None:
        document = defaulted(pod(container(limits=SLICE)))
        outcome = rules.validate_pod(document, DEFAULTS, DEFAULT_CHIPS)
        assert "mutating webhook was skipped" in outcome.message
        assert outcome.sets == ()

    def test_each_part_of_the_completion_counts(self) -> None:
        document = pod(container(limits=asking(core=20)))
        sets = rules.mutate_pod(document, DEFAULTS, DEFAULT_CHIPS).sets
        for left_out in sets:
            partial = defaulted(patched(document, [assignment for assignment in sets if assignment is not left_out]))
            # The API server copies a missing request from the limit; nobody writes the rest but we.
            by_default = "requests" in left_out.path
            assert rules.validate_pod(partial, DEFAULTS, DEFAULT_CHIPS).allowed is by_default

    def test_a_field_that_is_wrong_is_shown_as_found(self) -> None:
        hard = pod(container(limits={CHIP: 1, MEMORY: 10000}), annotations={names.MODE: "template"})
        fault = rules.validate_pod(hard, DEFAULTS, DEFAULT_CHIPS).refusals[0]
        assert isinstance(fault, FieldError)
        assert fault.path == f"spec.containers[0].resources.limits[{MEMORY}]"
        assert fault.value == 10000
