"""Laws of admission over generated pods: twice is once, what is allowed is sound, and nothing makes it raise."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from hypothesis import event, given
from hypothesis import strategies as st

from tests.support import api_rules, strategies
from tests.support.api_server import defaulted
from tests.support.examples import examples
from tests.support.pods import patched
from vnpu.admission import rules
from vnpu.admission.settings import DevicePlugin, Hook, Limiter, Settings, Share, Templates, UnknownChips
from vnpu.chips import DEFAULT_CHIPS
from vnpu.errors import FieldError, InputError
from vnpu.mode import Mode
from vnpu.request import pod_request

if TYPE_CHECKING:
    from vnpu.admission.rules import Outcome

SETTINGS = (
    Settings(),
    Settings(
        default_mode=Mode.SOFT,
        scheduler_name="hami-scheduler",
        runtime_class_name="ascend",
        default_core_percent=10,
        share=Share.CEILING,
        device_plugin=DevicePlugin.VNPU,
        unknown_chips=UnknownChips.DENY,
        templates=Templates.DENY,
        allow_reserved_env=True,
    ),
    Settings(limiter=Limiter(hook=Hook.HAMI), max_soft_cards=2, unknown_chips=UnknownChips.WARN),
    Settings(limiter=Limiter(hook=Hook.NONE), allow_privileged=True, allow_node_name=True),
)
any_settings = st.sampled_from(SETTINGS)
OURS = {"huawei.com/vnpu-mode"}


@given(strategies.pods(), any_settings)
@examples(150)
def test_what_is_allowed_is_sound_and_completed_once(pod: dict[str, Any], chosen: Settings) -> None:
    outcome = rules.mutate_pod(pod, chosen, DEFAULT_CHIPS)
    event("allowed" if outcome.allowed else "refused")
    if not outcome.allowed:
        assert outcome.sets == ()
        assert not rules.validate_pod(pod, chosen, DEFAULT_CHIPS).allowed
        return
    result = patched(pod, outcome.sets)
    written = [fault for fault in api_rules.faults(pod) if ".limits[" not in fault]
    assert [fault for fault in api_rules.faults(result) if fault not in written] == []
    for state in (result, defaulted(result)):
        assert rules.mutate_pod(state, chosen, DEFAULT_CHIPS).sets == ()
        assert rules.validate_pod(state, chosen, DEFAULT_CHIPS).allowed
    # The API server puts in its defaults first, and the outcome means the same.
    first = defaulted(pod)
    again = patched(first, rules.mutate_pod(first, chosen, DEFAULT_CHIPS).sets)
    assert slices(again, chosen) == slices(result, chosen)


@given(strategies.pods(), any_settings)
def test_fit_sees_the_same_request_before_and_after(pod: dict[str, Any], chosen: Settings) -> None:
    outcome = rules.mutate_pod(pod, chosen, DEFAULT_CHIPS)
    if outcome.allowed:
        assert slices(pod, chosen) == slices(patched(pod, outcome.sets), chosen)


def slices(pod: dict[str, Any], chosen: Settings) -> Any:
    request = pod_request(
        pod, DEFAULT_CHIPS, default_mode=chosen.default_mode, default_core_percent=chosen.default_core_percent
    )
    return (request.mode if request.asks else None), request.containers


@given(strategies.pods(), any_settings)
def test_other_keys_stay(pod: dict[str, Any], chosen: Settings) -> None:
    result = patched(pod, rules.mutate_pod(pod, chosen, DEFAULT_CHIPS).sets)
    annotations = {name: value for name, value in (result["metadata"]["annotations"] or {}).items() if name not in OURS}
    before = pod["metadata"]["annotations"] or {}
    assert annotations == {name: value for name, value in before.items() if name not in OURS}
    for section in ("initContainers", "containers"):
        for old, new in zip(pod["spec"].get(section, []), result["spec"].get(section, []), strict=True):
            assert new["name"] == old["name"]
            assert (new["env"] or [])[: len(old.get("env") or [])] == (old.get("env") or []) if "env" in new else True
            assert (new.get("lifecycle") or {}).get("preStop") == (old.get("lifecycle") or {}).get("preStop")
            if not old["resources"]:
                assert new == old, "a container that asks for nothing is not touched"


@given(strategies.pods(), strategies.containers("added"))
def test_a_container_that_is_added_is_completed_on_its_own(pod: dict[str, Any], added: dict[str, Any]) -> None:
    first = rules.mutate_pod(pod, Settings(), DEFAULT_CHIPS)
    if not first.allowed:
        return
    later = copy.deepcopy(patched(pod, first.sets))
    later["spec"]["containers"].append(added)
    second = rules.mutate_pod(later, Settings(), DEFAULT_CHIPS)
    index = len(later["spec"]["containers"]) - 1
    for assignment in second.sets:
        assert assignment.path[:3] == ("spec", "containers", index) or assignment.path[0] == "metadata"


@given(strategies.anything | strategies.odd_pods | strategies.pods(), any_settings)
@examples(200)
def test_no_pod_makes_it_raise(pod: Any, chosen: Settings) -> None:
    before = copy.deepcopy(pod)
    outcome = rules.mutate_pod(pod, chosen, DEFAULT_CHIPS)
    event("refused" if not outcome.allowed else "changed" if outcome.sets else "left")
    sound(outcome)
    sound(rules.validate_pod(pod, chosen, DEFAULT_CHIPS))
    assert repr(pod) == repr(before), "the object itself is left alone"
    if outcome.sets:
        patched(pod, outcome.sets)  # whatever is assigned can be assigned


@given(strategies.odd_workloads | strategies.anything, strategies.odd_workloads | strategies.anything, any_settings)
@examples(150)
def test_no_workload_makes_it_raise(obj: Any, old: Any, chosen: Settings) -> None:
    for previous in (None, old, obj):
        sound(rules.validate_workload(obj, previous, chosen, DEFAULT_CHIPS))
    outcome = rules.mutate_volcano_job(obj, chosen, DEFAULT_CHIPS)
    sound(outcome)
    if outcome.sets:
        patched(obj, outcome.sets)
    if isinstance(obj, dict):
        try:
            for template in rules.pod_templates(obj):
                assert template.replicas >= 0
        except InputError as error:
            assert error.path  # noqa: PT017 - any other exception fails


@given(strategies.odd_pods | strategies.anything, strategies.odd_pods | strategies.anything, st.text(max_size=3))
def test_no_update_makes_it_raise(new: Any, old: Any, user: str) -> None:
    sound(rules.validate_pod_update(new, old, user, Settings(), DEFAULT_CHIPS))
    assert rules.validate_pod_update(new, copy.deepcopy(new), user, Settings(), DEFAULT_CHIPS).allowed or "nan" in repr(
        new
    )


def sound(outcome: Outcome) -> None:
    assert outcome.allowed == (not outcome.refusals)
    assert outcome.allowed or not outcome.sets
    assert all(isinstance(fault, FieldError) for fault in outcome.refusals)
    assert bool(outcome.message) == (not outcome.allowed)
    assert all(outcome.warnings)
