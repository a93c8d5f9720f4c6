"""What users name appears in messages, and makes them neither long nor more than one printable line."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.pods import CHIP, asking, container, pod
from vnpu.admission import rules
from vnpu.admission.settings import Settings, Templates, UnknownChips
from vnpu.chips import DEFAULT_CHIPS

if TYPE_CHECKING:
    from vnpu.admission.rules import Outcome

HOSTILE = "x\n\x1b[31m\N{RIGHT-TO-LEFT OVERRIDE}" + "y" * 100_000
SETTINGS = Settings(unknown_chips=UnknownChips.WARN, templates=Templates.DENY)
DEVICES = "hami.io/Ascend910B3-devices-allocated"


APP = ("spec", "containers", 0)
LIMITS = (*APP, "resources", "limits")
ANNOTATIONS = ("metadata", "annotations")
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
