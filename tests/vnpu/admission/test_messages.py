"""What messages say: every fault with its container, no secret, and one short printable line whatever users name."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.support.pods import CHIP, MEMORY, asking, container, pod
from vnpu.admission import rules
from vnpu.admission.outcome import Outcome
from vnpu.admission.settings import Settings, Templates, UnknownChips
from vnpu.chips import DEFAULT_CHIPS
from vnpu.errors import RequestError

HOSTILE = "x\n\x1b[31m\N{RIGHT-TO-LEFT OVERRIDE}" + "y" * 100_000
SETTINGS = Settings(unknown_chips=UnknownChips.WARN, templates=Templates.DENY)
DEVICES = "hami.io/Ascend910B3-devices-allocated"


APP = ("spec", "containers", 0)
LIMITS = (*APP, "resources", "limits")
ANNOTATIONS = ("metadata", "annotations")
SLICE = asking(count=1, memory=8192, core=20)
DEFAULTS = Settings()
PLACES: dict[str, tuple[tuple[str | int, ...], str, Any]] = {
    "container": (APP, "name", HOSTILE),
    "resource": (LIMITS, f"huawei.com/Ascend{HOSTILE}", 1),
    "quantity": (LIMITS, CHIP, HOSTILE),
    "mode": (ANNOTATIONS, "huawei.com/vnpu-mode", HOSTILE),
    "share": (ANNOTATIONS, "huawei.com/vnpu-share", HOSTILE),
    "uuid list": (ANNOTATIONS, "hami.io/use-Ascend910B3-uuid", f"a,{HOSTILE}"),
    "card policy": (ANNOTATIONS, "hami.io/gpu-scheduler-policy", HOSTILE),
    "allocation": (ANNOTATIONS, f"hami.io/vgpu-{HOSTILE}", "1"),
    "env": (APP, "env", [{"name": f"NPU_{HOSTILE}", "value": "1"}]),
    "handler": (APP, "lifecycle", {"postStart": {HOSTILE: {}}}),
    "scheduler": (("spec",), "schedulerName", HOSTILE),
    "node": (("spec",), "nodeName", HOSTILE),
    "label": (("metadata",), "labels", {"ring-controller.atlas": HOSTILE}),
}


def mutated(document: Any, settings: Settings = DEFAULTS) -> Outcome:
    return rules.mutate_pod(document, settings, DEFAULT_CHIPS)


def named(place: str) -> dict[str, Any]:
    """A pod with something hostile at one place, and a fault that names its container."""
    document = pod(container(limits=asking(count=0 if place == "container" else 1, memory=8192, core=20)))
    document["metadata"]["annotations"] = {}
    parent, key, value = PLACES[place]
    found: Any = document
    for step in parent:
        found = found[step]
    found[key] = value
    return document


def check(outcome: Outcome) -> None:
    texts = [*map(str, outcome.refusals), outcome.message, *outcome.warnings]
    assert any(texts), "the case says nothing"
    for text in texts:
        assert text.isprintable()
        assert len(text) < 1500


@pytest.mark.parametrize("place", PLACES)
def test_names_in_a_pod(place: str) -> None:
    document = named(place)
    check(rules.mutate_pod(document, SETTINGS, DEFAULT_CHIPS))
    deployment = {"kind": "Deployment", "spec": {"template": document}}
    check(rules.validate_workload(deployment, None, SETTINGS, DEFAULT_CHIPS))


def test_the_user_who_changes_an_allocation() -> None:
    old = pod(container())
    new = copy.deepcopy(old)
    new["metadata"]["annotations"] = {DEVICES: HOSTILE, f"hami.io/vgpu-{HOSTILE}": HOSTILE}
    outcome = rules.validate_pod_update(new, old, HOSTILE, SETTINGS, DEFAULT_CHIPS)
    assert len(outcome.refusals) == 2
    check(outcome)


def test_one_fault_stands_alone_and_several_are_counted() -> None:
    faults = [RequestError(f"spec.a{index}", index, "x") for index in range(30)]
    assert Outcome().message == ""
    assert Outcome(refusals=(faults[0],)).message == "spec.a0: 0: x"
    assert Outcome(refusals=tuple(faults[:2])).message == "2 faults: (1) spec.a0: 0: x; (2) spec.a1: 1: x"
    many = Outcome(refusals=tuple(faults)).message
    assert many.startswith("30 faults: ")
    assert "(20) spec.a19" in many
    assert "a20" not in many
    assert many.endswith("; and 10 more")


def test_a_pod_of_many_faults_is_told_all_of_them_with_every_containers_name() -> None:
    document = pod(
        container(
            "one",
            limits=asking(memory="16Gi", core=10),
            env=[{"name": "NPU_PRIORITY", "value": "9"}],
            lifecycle={"postStart": {"tcpSocket": {"port": 1}}},
        ),
        container("two", limits=SLICE, securityContext={"privileged": True}),
        container("three", limits=SLICE, lifecycle={"postStart": {"httpGet": {"port": 1}}}),
        init=[container("four", limits=SLICE)],
        annotations={"hami.io/vgpu-node": "n1"},
        nodeName="n1",
    )
    message = mutated(document).message
    assert message.startswith("8 faults")
    for word in (
        "one",
        "two",
        "three",
        "four",
        "vgpu-node",
        "nodeName",
        "NPU_PRIORITY",
        "16384",
        "tcpSocket",
        "httpGet",
    ):
        assert word in message


def test_values_of_env_never_stand_in_a_message() -> None:
    secret = [{"name": "NPU_MEM_QUOTA", "value": "s3cret"}, {"name": "VNPU_X", "valueFrom": {"k": "s3cret"}}]
    assert "s3cret" not in mutated(pod(container(limits=SLICE, env=secret))).message


def test_a_resource_of_mindcluster_is_told_once_though_limits_and_requests_name_it() -> None:
    both = {CHIP: 1, "huawei.com/npu-core": 8}
    outcome = mutated(pod(container(resources={"limits": both, "requests": both})))
    assert [fault.path for fault in outcome.refusals] == ["spec.containers[0].resources.limits[huawei.com/npu-core]"]


def test_a_number_is_told_as_the_user_wrote_it_too() -> None:
    outcome = mutated(
        pod(container(limits={CHIP: 1, MEMORY: "70k"}), annotations={"huawei.com/vnpu-mode": "hami-core"})
    )
    assert "70k is 70000" in outcome.message
