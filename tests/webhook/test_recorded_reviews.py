"""The reviews that a real API server (1.36.2) sent, answered over HTTP as it would have them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonpatch
import pytest

from tests.support import api_rules, api_server
from tests.support.reviews import EXPECTED, FOLDER, NAMES, body_of, encoded, endpoint_of, patch_of, recorded
from vnpu.admission.settings import Settings
from vnpu.chips import DEFAULT_CHIPS
from vnpu.quantity import parse
from vnpu.request import pod_request
from webhook.review import Context, Decision, Endpoint, review

if TYPE_CHECKING:
    from collections.abc import Mapping

CONTEXT = Context(Settings(), DEFAULT_CHIPS)
MUTATIONS = [name for name in NAMES if name.startswith("mutate-")]
COMPLETED = [name for name in MUTATIONS if EXPECTED[name]["allowed"]]


def answered(name: str, body: bytes | None = None) -> dict[str, Any]:
    answer = review(body_of(name) if body is None else body, endpoint_of(name), CONTEXT)
    assert answer.fault is None
    response: dict[str, Any] = json.loads(answer.body)["response"]
    return response


def admitted(name: str) -> dict[str, Any]:
    """The recorded pod with the answer's patch applied."""
    pod: dict[str, Any] = jsonpatch.apply_patch(recorded(name)["request"]["object"], patch_of(answered(name)))
    return pod


def test_every_recording_has_its_expectation() -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == NAMES
    assert len(NAMES) == 64


@pytest.mark.parametrize("name", NAMES)
def test_the_answer_is_the_expected_one(name: str) -> None:
    expected = EXPECTED[name]
    response = answered(name)
    assert response["uid"] == recorded(name)["request"]["uid"]
    assert response["allowed"] == expected["allowed"]
    for text in expected.get("message_mentions", ()):
        assert text in response["status"]["message"]
    for text in expected.get("warnings_mention", ()):
        assert any(text in warning for warning in response["warnings"])
    if expected.get("patch_empty") or not expected["allowed"] or endpoint_of(name) is Endpoint.VALIDATE:
        assert "patch" not in response
        assert "patchType" not in response


@pytest.mark.parametrize("name", COMPLETED)
def test_the_pod_becomes_the_expected_one(name: str) -> None:
    expected, before, after = EXPECTED[name], recorded(name)["request"]["object"], admitted(name)
    for annotation, value in expected.get("annotations", {}).items():
        assert after["metadata"]["annotations"][annotation] == value
    for container, wanted in expected.get("containers", {}).items():
        check_container(named(after, container), wanted)
    for container in expected.get("untouched_containers", ()):
        assert named(after, container) == named(before, container)


def named(pod: Mapping[str, Any], name: str) -> dict[str, Any]:
    spec = pod["spec"]
    containers = [*(spec.get("initContainers") or []), *spec["containers"]]
    return next(container for container in containers if container["name"] == name)


def check_container(container: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    env = {entry["name"]: entry.get("value") for entry in container.get("env") or []}
    for field, value in wanted.items():
        if field == "env":
            assert value.items() <= env.items()
        elif field == "postStart.exec.command":
            assert container["lifecycle"]["postStart"]["exec"]["command"] == value
        elif field == "no env":
            assert not [name for name in env if name.startswith("NPU_")]
        elif field == "no postStart":
            assert "postStart" not in container.get("lifecycle", {})
        else:
            section, _, resource = field.partition(" ")
            assert section in ("limits", "requests"), f"{field}: nobody looks at it"
            assert parse(container["resources"][section][resource]) == value


@pytest.mark.parametrize("name", COMPLETED)
def test_the_api_server_takes_it_and_a_second_pass_leaves_it_alone(name: str) -> None:
    pod = admitted(name)
    assert api_rules.faults(pod) == []
    stored = api_server.defaulted(pod)
    again = encoded(recorded(name, object=stored))
    assert "patch" not in answered(name, again)
    validated = review(again, Endpoint.VALIDATE, CONTEXT)
    assert validated.record.decision is Decision.ALLOWED, "what was completed passes the second line"


@pytest.mark.parametrize("name", COMPLETED)
def test_fit_sees_the_same_request_before_and_after(name: str) -> None:
    before = recorded(name)["request"]["object"]
    assert pod_request(admitted(name), DEFAULT_CHIPS).containers == pod_request(before, DEFAULT_CHIPS).containers


@pytest.mark.parametrize("name", COMPLETED)
def test_a_patch_names_single_keys_and_stays_small(name: str) -> None:
    before = recorded(name)["request"]["object"]
    containers = sum(len(before["spec"].get(section) or ()) for section in ("initContainers", "containers"))
    patch = patch_of(answered(name))
    assert len(json.dumps(patch)) <= 2048 * containers
    assert not {operation["path"] for operation in patch} & {"", "/spec", "/metadata", "/spec/containers"}


@pytest.mark.parametrize("name", NAMES)
def test_r19_a_dry_run_gets_the_same_answer(name: str) -> None:
    real, dry = (answered(name, encoded(recorded(name, dryRun=dry_run))) for dry_run in (False, True))
    assert real == dry


@pytest.mark.parametrize("name", NAMES)
def test_r18_v1beta1_is_answered_in_kind(name: str) -> None:
    beta = recorded(name) | {"apiVersion": "admission.k8s.io/v1beta1"}
    answer = json.loads(review(encoded(beta), endpoint_of(name), CONTEXT).body)
    assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1beta1", "AdmissionReview")
    assert answer["response"] == answered(name)
