"""The environment: what is written, and who else may write it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.pods import asking, container, patched, pod
from vnpu import names
from vnpu.admission import rules
from vnpu.admission.env import is_reserved
from vnpu.admission.outcome import Outcome
from vnpu.admission.settings import OnTimeout, Settings, Share
from vnpu.chips import DEFAULT_CHIPS

SLICE = asking(count=1, memory=8192, core=20)
RESERVED = (
    *("NPU_MEM_QUOTA", "NPU_PRIORITY", "NPU_FIXED_SHARE_RATIO", "NPU_GLOBAL_SHM_PATH", "NPU_LOCAL_SHM_PATH"),
    *("NPU_TOKEN_SCALE", "NPU_", "VNPU_ON_TIMEOUT", "VNPU_REGION", "VNPU_LOG", "VNPU_"),
    *("ASCEND_VISIBLE_DEVICES", "ASCEND_VNPU_SPECS"),
)


def mutated(env: Any, settings: Settings | None = None, **fields: Any) -> Outcome:
    document = pod(container(limits=SLICE, env=env, **fields))
    return rules.mutate_pod(document, settings or Settings(), DEFAULT_CHIPS)


def test_reserved_names_are_those_of_limiter_and_device_plugin() -> None:
    assert all(map(is_reserved, RESERVED))
    assert not any(map(is_reserved, ["NPU", "npu_mem_quota", "MY_NPU_X", "ASCEND_RT_VISIBLE_DEVICES", "ASCEND_HOME"]))


@pytest.mark.parametrize(
    "entry", [{"value": "0"}, {}, {"value": None}, {"valueFrom": {"fieldRef": {"fieldPath": "x"}}}]
)
@pytest.mark.parametrize("name", RESERVED)
def test_r10_a_reserved_name_is_refused_in_every_form(name: str, entry: dict[str, Any]) -> None:
    outcome = mutated([{"name": "A", "value": "1"}, {"name": name, **entry}])
    assert [(fault.path, fault.value) for fault in outcome.refusals] == [("spec.containers[0].env[1]", name)]
    assert 'container "app"' in outcome.message


@pytest.mark.parametrize(
    ("settings", "annotations", "expected"),
    [
        (Settings(), {}, {"NPU_MEM_QUOTA": "8192", "NPU_PRIORITY": "20"}),
        (
            Settings(share=Share.CEILING, on_timeout=OnTimeout.DENY),
            {},
            {"NPU_MEM_QUOTA": "8192", "NPU_PRIORITY": "20", "NPU_FIXED_SHARE_RATIO": "1", "VNPU_ON_TIMEOUT": "deny"},
        ),
        (
            Settings(),
            {names.SHARE: "ceiling"},
            {"NPU_MEM_QUOTA": "8192", "NPU_PRIORITY": "20", "NPU_FIXED_SHARE_RATIO": "1"},
        ),
        (Settings(share=Share.CEILING), {names.SHARE: "weighted"}, {"NPU_MEM_QUOTA": "8192", "NPU_PRIORITY": "20"}),
    ],
)
def test_what_is_written_is_literal_and_may_be_there_already(
    settings: Settings, annotations: dict[str, str], expected: dict[str, str]
) -> None:
    document = pod(container(limits=SLICE), annotations=annotations)
    env = patched(document, rules.mutate_pod(document, settings, DEFAULT_CHIPS).sets)["spec"]["containers"][0]["env"]
    assert env == [{"name": name, "value": value} for name, value in expected.items()]
    there = pod(container(limits=SLICE, env=[*env, {"name": "A", "value": "1"}]), annotations=annotations)
    outcome = rules.mutate_pod(there, settings, DEFAULT_CHIPS)
    assert outcome.allowed
    assert not any("env" in assignment.path for assignment in outcome.sets)


@pytest.mark.parametrize("value", [None, "", "Ceiling", "fair", 1, True, ["ceiling"]])
def test_a_share_is_one_of_two_words(value: Any) -> None:
    outcome = rules.mutate_pod(
        pod(container(limits=SLICE), annotations={names.SHARE: value}), Settings(), DEFAULT_CHIPS
    )
    assert [fault.path for fault in outcome.refusals] == [f"metadata.annotations[{names.SHARE}]"]


def test_a_pair_of_equal_entries_is_one_too_many() -> None:
    ours = {"name": "NPU_MEM_QUOTA", "value": "8192"}
    assert mutated([ours]).allowed
    assert "twice" in mutated([ours, ours]).message


def test_an_administrator_may_let_users_write_them() -> None:
    settings = Settings(allow_reserved_env=True)
    env = [{"name": "NPU_MEM_QUOTA", "value": "4096"}, {"name": "ASCEND_VISIBLE_DEVICES", "value": "0"}]
    document = pod(container(limits=SLICE, env=env))
    outcome = rules.mutate_pod(document, settings, DEFAULT_CHIPS)
    result = patched(document, outcome.sets)
    assert result["spec"]["containers"][0]["env"] == [*env, {"name": "NPU_PRIORITY", "value": "20"}]
    assert rules.validate_pod(result, settings, DEFAULT_CHIPS).allowed


@pytest.mark.parametrize("env", ["x", {"A": "1"}, 7, True])
def test_an_environment_that_is_no_list_is_refused(env: Any) -> None:
    assert [fault.path for fault in mutated(env).refusals] == ["spec.containers[0].env"]


@pytest.mark.parametrize("entry", [None, "NPU_MEM_QUOTA=1", 7, [], {}, {"name": None}, {"name": ["NPU_X"]}])
def test_entries_that_name_nothing_are_left_to_the_api_server(entry: Any) -> None:
    outcome = mutated([entry])
    assert outcome.allowed
    assert sum("env" in assignment.path for assignment in outcome.sets) == 2


@pytest.mark.parametrize(("sources", "warned"), [(None, False), ([], False), ([{"secretRef": {"name": "s"}}], True)])
def test_r10_sources_of_environment_bring_a_warning(sources: Any, warned: bool) -> None:  # noqa: FBT001
    outcome = mutated(None, envFrom=sources)
    assert outcome.allowed
    assert any("spec.containers[0].envFrom" in warning for warning in outcome.warnings) is warned


@pytest.mark.parametrize("place", ["init", "app"])
def test_containers_without_an_npu_must_not_bring_in_cards(place: str) -> None:
    beside = container("beside", env=[{"name": "ASCEND_VISIBLE_DEVICES", "value": "0"}])
    hidden = container("hidden", env=[{"name": "ASCEND_VISIBLE_DEVICES", "value": ""}])
    npu = container(limits=SLICE)
    bad = pod(npu, init=[beside]) if place == "init" else pod(npu, beside)
    good = pod(npu, init=[hidden]) if place == "init" else pod(npu, hidden)
    assert 'container "beside"' in rules.mutate_pod(bad, Settings(), DEFAULT_CHIPS).message
    assert rules.mutate_pod(good, Settings(), DEFAULT_CHIPS).allowed
    without = copy_without_npu(bad)
    assert rules.mutate_pod(without, Settings(), DEFAULT_CHIPS) == Outcome()


def copy_without_npu(document: dict[str, Any]) -> dict[str, Any]:
    spec = {
        section: [{name: value for name, value in one.items() if name != "resources"} for one in containers]
        for section, containers in document["spec"].items()
    }
    return {**document, "spec": spec}
