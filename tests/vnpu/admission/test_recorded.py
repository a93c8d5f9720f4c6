"""The pods that a real API server sent: what completing makes of them is sound, and done once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support import api_rules
from tests.support.api_server import defaulted
from tests.support.pods import patched
from vnpu.admission import rules
from vnpu.admission.settings import Settings
from vnpu.chips import DEFAULT_CHIPS
from vnpu.request import pod_request

FIXTURES: Final = Path(__file__).parents[2] / "fixtures"
EXPECTED: Final = json.loads((FIXTURES / "expected.json").read_text())
PODS: Final = sorted(name for name in EXPECTED if "-create-pods-" in name and "binding" not in name)


def recorded(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((FIXTURES / "admission" / name).read_text())["request"]["object"]
    return document


@pytest.mark.parametrize("name", [name for name in PODS if name.startswith("mutate-")])
def test_a_recorded_pod_is_completed_or_refused(name: str) -> None:
    pod, expected = recorded(name), EXPECTED[name]
    outcome = rules.mutate_pod(pod, Settings(), DEFAULT_CHIPS)
    assert outcome.allowed is expected["allowed"], outcome.message
    assert all(word in outcome.message for word in expected.get("message_mentions", []))
    assert all(word in "\n".join(outcome.warnings) for word in expected.get("warnings_mention", []))
    if not outcome.allowed:
        return
    result = patched(pod, outcome.sets)
    assert api_rules.faults(result) == []
    for state in (result, defaulted(result)):
        assert rules.mutate_pod(state, Settings(), DEFAULT_CHIPS).sets == ()
        assert rules.validate_pod(state, Settings(), DEFAULT_CHIPS).allowed
    assert pod_request(result, DEFAULT_CHIPS).containers == pod_request(pod, DEFAULT_CHIPS).containers
    for container in result["spec"]["containers"]:
        if container["name"] in expected.get("untouched_containers", []):
            assert container in pod["spec"]["containers"]


@pytest.mark.parametrize("name", [name for name in PODS if name.startswith("validate-")])
def test_a_recorded_pod_that_was_not_completed_is_refused(name: str) -> None:
    outcome = rules.validate_pod(recorded(name), Settings(), DEFAULT_CHIPS)
    assert outcome.allowed is EXPECTED[name]["allowed"]
