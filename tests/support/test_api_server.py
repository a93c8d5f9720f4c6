"""The stand-in against what a real API server recorded."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import api_rules
from tests.support.api_server import canonical, defaulted
from tests.support.pods import CHIP, asking, container, pod

RECORDED = sorted((Path(__file__).parents[1] / "fixtures" / "admission").glob("mutate-create-pods-*.json"))
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
APPLIED = [path for path in RECORDED if LAST_APPLIED in path.read_text()]
"""The others were made by controllers, so nobody knows how they were written."""


@pytest.mark.parametrize("path", APPLIED, ids=lambda path: path.stem)
def test_defaults_are_those_of_a_recorded_pod(path: Path) -> None:
    recorded: dict[str, Any] = json.loads(path.read_text())["request"]["object"]
    applied = recorded["metadata"]["annotations"][LAST_APPLIED]
    expected = copy.deepcopy(recorded["spec"])
    # What admission plugins add is not defaulting: the service account's volume, and tolerations.
    del expected["volumes"], expected["tolerations"]
    for section in ("initContainers", "containers"):
        for one in expected.get(section, []):
            del one["volumeMounts"]
    assert defaulted(json.loads(applied))["spec"] == expected


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_what_the_server_took_breaks_no_rule(path: Path) -> None:
    assert api_rules.faults(json.loads(path.read_text())["request"]["object"]) == []


@pytest.mark.parametrize(
    ("written", "spelled"),
    [(10000, "10k"), ("8192", "8192"), ("8192000m", "8192"), ("10e3", "10e3"), ("2048Ki", "2Mi"), ("1", "1"), (0, "0")],
)
def test_quantities_are_spelled_as_the_server_does(written: Any, spelled: str) -> None:
    assert canonical(written) == spelled


EXEC = {"exec": {"command": ["true"]}}
GOOD = asking(count=1)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (pod(), "spec.containers: required"),
        (pod(container("a"), container("a")), "duplicate"),
        (pod(container("a"), init=[container("a")]), "duplicate"),
        (pod(container("A_b")), "DNS label"),
        (pod(container(), init=[container("i", lifecycle={"postStart": EXEC})]), "init containers"),
        (pod(container(lifecycle={"postStart": {}})), "one handler"),
        (pod(container(lifecycle={"postStart": {**EXEC, "sleep": {"seconds": 1}}})), "one handler"),
        (pod(container(lifecycle={"postStart": {"exec": {"command": []}}})), "exec.command: required"),
        (pod(container(lifecycle={"preStop": {"httpGet": {}}})), "port: required"),
        (pod(container(limits={CHIP: "1500m"})), "must be an integer"),
        (pod(container(limits={CHIP: "-1"})), "greater than or equal"),
        (pod(container(limits={CHIP: "one"})), "no quantity"),
        (pod(container(resources={"requests": GOOD})), "limit must be set"),
        (pod(container(resources={"limits": GOOD, "requests": asking(count=2)})), "must be equal"),
        (pod(container(env=[{"name": "A"}, {"name": "A"}])), "stands twice"),
        (pod(container(env=[{"name": "A", "value": "1", "valueFrom": {"fieldRef": {}}}])), "both value and valueFrom"),
        (pod(container(env=[{"name": "A", "value": 1}])), "no text"),
        (pod(container(env=[{"value": "1"}])), "name: required"),
        (pod(container(volumeMounts=[{"mountPath": "/a"}, {"mountPath": "/a"}])), "must be unique"),
        (pod(container(), annotations={"a~1b": "x", "-": "x"}), "no qualified name"),
        (pod(container(), annotations={"a": 1}), "no text"),
        (pod(container(), annotations={"a": "x" * 300_000}), "too long"),
        ({"metadata": {"labels": {"a": "x" * 64}}, "spec": {"containers": [container()]}}, "no label value"),
    ],
)
def test_a_rule_that_is_broken_is_named(bad: dict[str, Any], words: str) -> None:
    assert any(words in fault for fault in api_rules.faults(bad)), api_rules.faults(bad)


def test_a_native_sidecar_may_have_a_hook_and_overcommitted_resources_may_differ() -> None:
    sidecar = container("s", restartPolicy="Always", lifecycle={"postStart": EXEC})
    app = container(resources={"limits": {"cpu": "2"}, "requests": {"cpu": "500m", "memory": "1Gi"}})
    assert api_rules.faults(pod(app, init=[sidecar])) == []
