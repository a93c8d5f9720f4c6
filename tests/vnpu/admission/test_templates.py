"""Where pod templates stand, and how many pods come of them."""

from __future__ import annotations

from typing import Any

import pytest

from vnpu.admission.rules import pod_templates
from vnpu.errors import InputError

TEMPLATE: dict[str, Any] = {"spec": {"containers": []}}
VOLCANO = "batch.volcano.sh/v1alpha1"


def controller(kind: str, api: str = "apps/v1", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": "w"}, "spec": {"template": TEMPLATE, **spec}}


def summary(obj: dict[str, Any]) -> list[tuple[str, int, str]]:
    return [(found.path, found.replicas, found.name) for found in pod_templates(obj)]


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"])
@pytest.mark.parametrize(
    ("written", "replicas"), [({}, 1), ({"replicas": None}, 1), ({"replicas": 0}, 0), ({"replicas": 3}, 3)]
)
def test_replicas(kind: str, written: dict[str, Any], replicas: int) -> None:
    assert summary(controller(kind, **written)) == [("spec.template", replicas, "w")]


@pytest.mark.parametrize(
    ("written", "pods"),
    [
        ({}, 1),
        ({"parallelism": 4}, 4),
        ({"parallelism": 0}, 0),
        ({"parallelism": 4, "completions": 2}, 2),
        ({"parallelism": 2, "completions": 10}, 2),
        ({"completions": 5}, 1),
    ],
)
def test_a_job_runs_no_more_pods_than_it_has_to_complete(written: dict[str, Any], pods: int) -> None:
    assert summary(controller("Job", "batch/v1", **written)) == [("spec.template", pods, "w")]
    cron = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "w"},
        "spec": {"jobTemplate": {"spec": {"template": TEMPLATE, **written}}},
    }
    assert summary(cron) == [("spec.jobTemplate.spec.template", pods, "w")]


def test_a_daemon_set_has_one_pod_a_node_and_a_pod_is_its_own_template() -> None:
    assert summary(controller("DaemonSet", replicas="ignored")) == [("spec.template", 1, "w")]
    pod = {"kind": "Pod", "metadata": {"generateName": "p-"}, "spec": {}}
    (found,) = pod_templates(pod)
    assert (found.path, found.template, found.replicas, found.name) == ("", pod, 1, "p-")


def test_a_volcano_job_has_a_template_a_task() -> None:
    tasks = [
        {"name": "ps", "template": TEMPLATE},
        {"name": "worker", "replicas": 4, "template": TEMPLATE},
        {"name": "none"},
        None,
    ]
    job = {"apiVersion": VOLCANO, "kind": "Job", "metadata": {"name": "gang"}, "spec": {"tasks": tasks}}
    assert summary(job) == [
        ("spec.tasks[0].template", 1, "gang-ps"),
        ("spec.tasks[1].template", 4, "gang-worker"),
    ]
    cron = {**job, "kind": "CronJob", "spec": {"jobTemplate": {"spec": {"tasks": tasks}}}}
    assert summary(cron) == [
        ("spec.jobTemplate.spec.tasks[0].template", 1, "gang-ps"),
        ("spec.jobTemplate.spec.tasks[1].template", 4, "gang-worker"),
    ]


def test_a_pod_template_makes_no_pods_of_its_own() -> None:
    assert summary({"kind": "PodTemplate", "metadata": {"name": "t"}, "template": TEMPLATE}) == [("template", 0, "t")]


@pytest.mark.parametrize(
    ("job", "task", "scheduler"),
    [
        ({}, {}, "volcano"),
        ({"schedulerName": "vc"}, {}, "vc"),
        ({"schedulerName": "vc"}, {"schedulerName": "own"}, "own"),
    ],
)
def test_the_pods_of_a_volcano_job_have_its_scheduler(job: Any, task: Any, scheduler: str) -> None:
    template = {"spec": {"containers": [], **task}}
    obj = {"apiVersion": VOLCANO, "kind": "Job", "spec": {**job, "tasks": [{"name": "t", "template": template}]}}
    (found,) = pod_templates(obj)
    assert found.template["spec"]["schedulerName"] == scheduler
    assert "schedulerName" not in task or found.template == template


@pytest.mark.parametrize(
    "obj",
    [
        {},
        {"kind": "Service", "spec": {"template": TEMPLATE}},
        {"kind": ["Deployment"], "spec": {"template": TEMPLATE}},
        {"kind": "Deployment"},
        {"kind": "Deployment", "spec": []},
        {"kind": "Deployment", "spec": {"template": None}},
        {"kind": "CronJob", "spec": {"jobTemplate": []}},
        {"kind": "Job", "apiVersion": VOLCANO, "spec": {"tasks": {}}},
        {"kind": "Job", "apiVersion": VOLCANO, "spec": {"template": TEMPLATE}},
        {"kind": "CronJob", "apiVersion": VOLCANO, "spec": {"jobTemplate": {"spec": {"template": TEMPLATE}}}},
        {"kind": "Queue", "apiVersion": VOLCANO, "spec": {"tasks": [{"template": TEMPLATE}]}},
        {"kind": "Job", "apiVersion": 7, "metadata": [], "spec": {"tasks": [{"template": TEMPLATE}]}},
    ],
)
def test_objects_without_a_template_have_none(obj: dict[str, Any]) -> None:
    assert summary(obj) == []


@pytest.mark.parametrize("replicas", [-1, 1.5, "3", True, [], 2**31])
def test_a_number_of_pods_that_is_none_is_an_error_with_its_path(replicas: Any) -> None:
    volcano = {"kind": "Job", "apiVersion": VOLCANO, "spec": {"tasks": [{"template": TEMPLATE, "replicas": replicas}]}}
    for obj, path in (
        (controller("Deployment", replicas=replicas), "spec.replicas"),
        (controller("Job", parallelism=replicas), "spec.parallelism"),
        (controller("Job", completions=replicas), "spec.completions"),
        (volcano, "spec.tasks[0].replicas"),
        ({**volcano, "kind": "CronJob", "spec": {"jobTemplate": volcano}}, "spec.jobTemplate.spec.tasks[0].replicas"),
    ):
        with pytest.raises(InputError) as caught:
            summary(obj)
        assert caught.value.path == path
