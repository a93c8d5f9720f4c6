"""What is judged, what is let through, and what an answer to a fault of ours looks like."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.reviews import SOFT_POD, encoded, recorded
from vnpu import names
from vnpu.admission import rules
from vnpu.admission.settings import Settings
from vnpu.chips import DEFAULT_CHIPS
from vnpu.errors import InputError
from webhook.review import Answer, Context, Decision, Endpoint, Reason, review
from webhook.wire import Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable

CONTEXT = Context(Settings(), DEFAULT_CHIPS)
ALLOCATION = "hami.io/Ascend910B3-devices-allocated"


def reviewed(endpoint: Endpoint, name: str = SOFT_POD, **changes: Any) -> Answer:
    return review(encoded(recorded(name, **changes)), endpoint, CONTEXT)


def response_of(answer: Answer) -> dict[str, Any]:
    response: dict[str, Any] = json.loads(answer.body)["response"]
    return response


def resource(name: str, group: str = "") -> dict[str, str]:
    return {"group": group, "version": "v1", "resource": name}


class TestLetThrough:
    @pytest.mark.parametrize("operation", ["UPDATE", "DELETE", "CONNECT"])
    def test_r15_mutation_is_for_what_is_created(self, operation: str) -> None:
        answer = reviewed(Endpoint.MUTATE, operation=operation)
        assert (answer.record.decision, answer.record.reason) == (Decision.ALLOWED, Reason.NOT_JUDGED)
        assert "patch" not in response_of(answer)

    @pytest.mark.parametrize("subresource", ["binding", "eviction", "ephemeralcontainers", "resize", "exec", "log"])
    @pytest.mark.parametrize("operation", ["CREATE", "UPDATE", "DELETE", "CONNECT"])
    @pytest.mark.parametrize("endpoint", list(Endpoint))
    def test_subresources(self, endpoint: Endpoint, operation: str, subresource: str) -> None:
        answer = reviewed(endpoint, operation=operation, subResource=subresource)
        assert (answer.record.decision, answer.record.reason) == (Decision.ALLOWED, Reason.NOT_JUDGED)

    @pytest.mark.parametrize(
        ("name", "group"), [("pods", "example.org"), ("nodes", ""), ("deployments", ""), ("jobs", "example.org")]
    )
    @pytest.mark.parametrize("endpoint", list(Endpoint))
    def test_other_resources_though_the_kind_says_pod(self, endpoint: Endpoint, name: str, group: str) -> None:
        answer = reviewed(endpoint, resource=resource(name, group))
        assert (answer.record.decision, answer.record.reason) == (Decision.ALLOWED, Reason.NOT_JUDGED)

    @pytest.mark.parametrize("operation", ["DELETE", "CONNECT"])
    def test_deletes(self, operation: str) -> None:
        answer = reviewed(Endpoint.VALIDATE, operation=operation, object=None)
        assert (answer.record.decision, answer.record.reason) == (Decision.ALLOWED, Reason.NOT_JUDGED)


class TestPods:
    def test_mutation_completes(self) -> None:
        answer = reviewed(Endpoint.MUTATE)
        assert (answer.record.decision, answer.record.reason) == (Decision.ALLOWED, Reason.PATCHED)

    def test_a_pod_that_does_not_say_its_namespace(self) -> None:
        pod = recorded()["request"]["object"]
        del pod["metadata"]["namespace"]
        answer = reviewed(Endpoint.MUTATE, object=pod)
        assert (answer.record.reason, answer.record.namespace) == (Reason.PATCHED, "npu-team")

    def test_the_second_line(self) -> None:
        answer = reviewed(Endpoint.VALIDATE)
        assert (answer.record.decision, answer.record.reason) == (Decision.DENIED, Reason.REQUEST)
        assert response_of(answer)["status"]["code"] == 403

    @pytest.mark.parametrize("subresource", [None, "", "status"])
    @pytest.mark.parametrize(
        ("username", "decision"),
        [("alice", Decision.DENIED), ("", Decision.DENIED), (Settings().allocators[0], Decision.ALLOWED)],
    )
    def test_r21_who_may_write_an_allocation_into_a_pod(
        self, username: str, decision: Decision, subresource: str | None
    ) -> None:
        old = recorded()["request"]["object"]
        new = recorded()["request"]["object"]
        new["metadata"]["annotations"][ALLOCATION] = "x"
        answer = reviewed(
            Endpoint.VALIDATE,
            operation="UPDATE",
            subResource=subresource,
            userInfo={"username": username},
            object=new,
            oldObject=old,
        )
        assert answer.record.decision is decision
        assert (ALLOCATION in response_of(answer)["status"]["message"]) is (decision is Decision.DENIED)

    def test_a_refusal_keeps_its_warnings(self) -> None:
        answer = reviewed(Endpoint.VALIDATE, "validate-create-pods-hard-template.json")
        assert answer.record.decision is Decision.DENIED
        assert "16384" in response_of(answer)["warnings"][0]


class TestWorkloads:
    @pytest.mark.parametrize(
        ("name", "group", "kind"),
        [
            ("deployments", "apps", "Deployment"),
            ("statefulsets", "apps", "StatefulSet"),
            ("daemonsets", "apps", "DaemonSet"),
            ("replicasets", "apps", "ReplicaSet"),
            ("jobs", "batch", "Job"),
        ],
    )
    @pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
    def test_their_templates_are_judged(self, operation: str, name: str, group: str, kind: str) -> None:
        workload = {"kind": kind, "spec": {"template": with_memory("16Gi")}}
        old = {"kind": kind, "spec": {"template": with_memory("8192")}} if operation == "UPDATE" else None
        answer = reviewed(
            Endpoint.VALIDATE, operation=operation, resource=resource(name, group), object=workload, oldObject=old
        )
        assert (answer.record.decision, answer.record.reason) == (Decision.ALLOWED, Reason.VALID)
        assert any(text.startswith("spec.template.spec.containers[0].") for text in response_of(answer)["warnings"])

    def test_an_unchanged_template_is_not_judged_again(self) -> None:
        workload = {"kind": "Deployment", "spec": {"template": with_memory("16Gi")}}
        answer = reviewed(
            Endpoint.VALIDATE,
            operation="UPDATE",
            resource=resource("deployments", "apps"),
            object=workload,
            oldObject=workload,
        )
        assert "warnings" not in response_of(answer)

    def test_another_kind_than_the_resource_has(self) -> None:
        answer = reviewed(Endpoint.VALIDATE, resource=resource("deployments", "apps"), object={"kind": "Pod"})
        assert (answer.record.decision, answer.record.reason) == (Decision.DENIED, Reason.INPUT)

    def test_a_volcano_job_is_completed_for_its_gang(self) -> None:
        job = {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "spec": {"tasks": [{"name": "t", "template": with_memory("8192")}]},
        }
        answer = reviewed(Endpoint.MUTATE, resource=resource("jobs", "batch.volcano.sh"), object=job)
        assert (answer.record.decision, answer.record.reason) == (Decision.ALLOWED, Reason.PATCHED)

    def test_jobs_of_kubernetes_are_not_completed(self) -> None:
        job = {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": with_memory("8192")}}
        answer = reviewed(Endpoint.MUTATE, resource=resource("jobs", "batch"), object=job)
        assert answer.record.reason is Reason.NOT_JUDGED


def with_memory(memory: str) -> dict[str, Any]:
    limits = {"huawei.com/Ascend910B3-memory": memory}
    return {"spec": {"containers": [{"name": "npu", "image": "i", "resources": {"limits": limits}}]}}


class TestShapes:
    @pytest.mark.parametrize(
        ("changes", "path"),
        [
            ({"operation": None}, "request.operation"),
            ({"operation": "PATCH"}, "request.operation"),
            ({"resource": None}, "request.resource"),
            ({"resource": {"group": ""}}, "request.resource"),
            ({"object": None}, "request.object"),
            ({"object": []}, "request.object"),
        ],
    )
    @pytest.mark.parametrize("endpoint", list(Endpoint))
    def test_a_review_without_what_it_is_about(self, endpoint: Endpoint, changes: dict[str, Any], path: str) -> None:
        answer = reviewed(endpoint, **changes)
        assert (answer.record.decision, answer.record.reason) == (Decision.DENIED, Reason.INPUT)
        assert response_of(answer)["status"]["message"].startswith(path)

    def test_an_update_without_the_old_object(self) -> None:
        answer = reviewed(Endpoint.VALIDATE, operation="UPDATE", oldObject=None)
        assert (answer.record.decision, answer.record.reason) == (Decision.DENIED, Reason.INPUT)

    def test_a_body_that_is_no_review(self) -> None:
        answer = review(b"[]", Endpoint.MUTATE, CONTEXT)
        assert (answer.status, answer.media_type) == (400, "text/plain; charset=utf-8")
        assert (answer.record.decision, answer.record.reason) == (Decision.UNREADABLE, Unreadable.NOT_A_REVIEW)
        assert answer.body.endswith(b"is expected\n")


def raising(error: Exception) -> Callable[..., Any]:
    def judge(*_: Any) -> Any:
        raise error

    return judge


class TestFaultsOfOurs:
    @pytest.mark.parametrize("error", [KeyError("secret"), RecursionError("secret"), MemoryError("secret")])
    @pytest.mark.parametrize(("endpoint", "function"), [("mutate", "mutate_pod"), ("validate", "validate_pod")])
    def test_r18_they_refuse_the_object_and_are_told(
        self, endpoint: str, function: str, error: Exception, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rules, function, raising(error))
        answer = reviewed(Endpoint(endpoint))
        assert answer.status == 200
        assert answer.fault is error
        assert (answer.record.decision, answer.record.reason) == (Decision.FAULT, Reason.FAULT)
        response = response_of(answer)
        assert response["uid"] == recorded()["request"]["uid"]
        assert (response["allowed"], response["status"]["code"]) == (False, 500)
        assert b"secret" not in answer.body
        assert b"Traceback" not in answer.body

    def test_an_answer_that_cannot_be_written(self, monkeypatch: pytest.MonkeyPatch) -> None:
        not_json = rules.Outcome((rules.Set(("metadata", "annotations", "a"), float("nan")),))
        monkeypatch.setattr(rules, "mutate_pod", lambda *_: not_json)
        answer = reviewed(Endpoint.MUTATE)
        assert answer.record.decision is Decision.FAULT
        assert response_of(answer)["allowed"] is False

    def test_a_document_that_a_patch_does_not_fit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        misfit = rules.Outcome((rules.Set(("spec", "schedulerName", "x"), 1),))
        monkeypatch.setattr(rules, "mutate_pod", lambda *_: misfit)
        answer = reviewed(Endpoint.MUTATE)
        # Rules that contradict the object are our fault, not the user's.
        assert (answer.record.decision, answer.record.reason) == (Decision.FAULT, Reason.FAULT)
        assert isinstance(answer.fault, InputError)
        assert not response_of(answer)["allowed"]


def test_long_texts_are_cut_for_the_log_alone() -> None:
    account = f"system:serviceaccount:{'n' * 300}:scheduler"
    document = recorded("validate-update-pods-soft-910b3.json")
    document["request"] |= {"uid": "u" * 1000, "namespace": "n" * 1000}
    document["request"]["userInfo"]["username"] = f"{account}-of-another"
    document["request"]["object"]["metadata"]["annotations"][names.MODE] = "template"
    context = Context(Settings(allocators=(account, account[:256])), DEFAULT_CHIPS)

    answer = review(json.dumps(document).encode(), Endpoint.VALIDATE, context)

    assert response_of(answer)["uid"] == "u" * 1000
    assert not response_of(answer)["allowed"]
    assert (answer.record.uid, answer.record.namespace) == ("u" * 256, "n" * 256)
