"""Manifests: which pods come of them, what they are called, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.chips import chip_named
from tests.support.objects import container
from vnpu.admission.settings import Settings
from vnpu.chips import DEFAULT_CHIPS
from vnpu.documents import Document, DocumentError
from vnpu.errors import InputError
from vnpu.fit.admit import Batch, full_name
from vnpu.fit.answers import Reason, Unplaced
from vnpu.fit.arguments import SliceGroup
from vnpu.fit.terms import Terms
from vnpu.fit.workloads import MOST_PODS, Reception
from vnpu.mode import Mode

SOFT = container("app", count=1, memory=8192, core=20)
VOLCANO = "batch.volcano.sh/v1alpha1"


def take(*objects: Any, settings: Settings | None = None) -> list[Batch]:
    reception = Reception(settings or Settings(), DEFAULT_CHIPS)
    return [reception.take(Document("app.yaml", number, "", obj)) for number, obj in enumerate(objects, start=1)]


def manifest(kind: str, spec: Any, *, version: str = "v1", **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "app"} | metadata, "spec": spec}


def template(*containers: Any, **spec: Any) -> dict[str, Any]:
    return {"spec": {"containers": list(containers) or [SOFT], **spec}}


def pod(*containers: Any, spec: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    return manifest("Pod", {"containers": list(containers) or [SOFT], **(spec or {})}, **metadata)


def volcano(*tasks: Any, **spec: Any) -> dict[str, Any]:
    return manifest("Job", {"tasks": list(tasks), **spec}, version=VOLCANO)


def cron_volcano(*tasks: Any, **spec: Any) -> dict[str, Any]:
    return manifest("CronJob", {"jobTemplate": {"spec": {"tasks": list(tasks), **spec}}}, version=VOLCANO)


def names(batch: Batch) -> list[str]:
    return [full_name(one.pod if isinstance(one, Unplaced) else one) for one in batch.pods]


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (pod(), ["default/app"]),
        (pod(namespace="team"), ["team/app"]),
        (pod(namespace=""), ["default/app"]),
        (manifest("Deployment", {"replicas": 2, "template": template()}), ["default/app-0", "default/app-1"]),
        (manifest("Deployment", {"template": template()}), ["default/app-0"]),
        (manifest("StatefulSet", {"replicas": 0, "template": template()}), []),
        (manifest("ReplicaSet", {"replicas": 1, "template": template()}, namespace="team"), ["team/app-0"]),
        (manifest("Job", {"template": template()}), ["default/app-0"]),
        (manifest("Job", {"parallelism": 2, "template": template()}), ["default/app-0", "default/app-1"]),
        (manifest("Job", {"parallelism": 3, "completions": 1, "template": template()}), ["default/app-0"]),
        (manifest("CronJob", {"jobTemplate": {"spec": {"parallelism": 1, "template": template()}}}), ["default/app-0"]),
        (
            volcano({"name": "w", "replicas": 2, "template": template()}, {"template": template()}),
            ["default/app-w-0", "default/app-w-1", "default/app-default1-0"],
        ),
        (
            cron_volcano({"name": "w", "replicas": 2, "template": template()}, {"template": template()}),
            ["default/app-w-0", "default/app-w-1", "default/app-default1-0"],
        ),
        (
            manifest("ReplicationController", {"replicas": 2, "template": template()}),
            ["default/app-0", "default/app-1"],
        ),
    ],
)
def test_pods_and_their_names(obj: dict[str, Any], expected: list[str]) -> None:
    assert names(take(obj)[0]) == expected


def test_generated_names_are_numbered() -> None:
    one, two, other = take(
        pod(name=None, generateName="run-"),
        pod(name=None, generateName="run-"),
        manifest("Job", {"template": template()}, name=None, generateName="run-"),
    )
    assert (*names(one), *names(two), *names(other)) == ("default/run-0", "default/run-1", "default/run-0-0")


def test_a_pod_is_completed_as_admission_completes_it() -> None:
    (batch,) = take(pod(container("proxy"), container("app", memory=10000, chip="Ascend910B4")))
    (request,) = batch.pods
    assert not isinstance(request, Unplaced)
    proxy, app = request.containers
    assert (proxy.slice, request.mode) == (None, Mode.HARD)
    assert app.slice is not None
    assert (app.slice.memory_mib, app.slice.template, app.slice.count) == (16384, "vir10_3c_16g", 1)
    (warning,) = batch.warnings
    assert warning.startswith("app.yaml, document 1: spec.containers[1].resources.limits[")


def test_settings_decide() -> None:
    (batch,) = take(pod(container("app", memory=10000)), settings=Settings(default_mode=Mode.SOFT))
    (request,) = batch.pods
    assert not isinstance(request, Unplaced)
    assert request.containers[0].slice is not None
    assert (request.mode, request.containers[0].slice.memory_mib) == (Mode.SOFT, 10000)


def test_replicas_of_a_refused_template_are_all_refused() -> None:
    (batch,) = take(manifest("Deployment", {"replicas": 2, "template": template(container("app", memory="16Gi"))}))
    for refused in batch.pods:
        assert isinstance(refused, Unplaced)
        assert refused.reasons == {Reason.REFUSED: 1}
        assert "write 16384" in refused.message
        assert refused.nodes == {}
    assert batch.workloads == []


@pytest.mark.parametrize(
    "obj",
    [
        pod(spec={"nodeName": "n1"}),
        pod(annotations={"huawei.com/vnpu-mode": "hard"}),
        pod(annotations={"hami.io/Ascend910B3-devices-allocated": "u,Ascend910B3,1,1:;"}),
        pod({**SOFT, "securityContext": {"privileged": True}}),
        pod({**SOFT, "env": [{"name": "NPU_MEM_QUOTA", "value": "1"}]}),
        pod(annotations={"hami.io/gpu-scheduler-policy": "fastest"}),
    ],
)
def test_what_the_webhook_refuses_is_not_placed(obj: dict[str, Any]) -> None:
    (refused,) = take(obj)[0].pods
    assert isinstance(refused, Unplaced)
    assert refused.reasons == {Reason.REFUSED: 1}


def test_pods_on_their_own_are_placed_one_by_one() -> None:
    (batch,) = take(manifest("Deployment", {"replicas": 2, "template": template()}))
    assert [(len(one.pods), one.min_available) for one in batch.workloads] == [(1, 1), (1, 1)]


@pytest.mark.parametrize(
    ("tasks", "spec", "needed"),
    [
        ([{"replicas": 2}, {"replicas": 3}], {}, 5),
        ([{"replicas": 2}, {"replicas": 3}], {"minAvailable": 4}, 4),
        ([{"replicas": 2}, {"replicas": 3}], {"minAvailable": 0}, 5),
        ([{"replicas": 2, "minAvailable": 1}, {"replicas": 3}], {}, 4),
        ([{}], {"minAvailable": None}, 1),
    ],
)
def test_gangs(tasks: list[dict[str, Any]], spec: dict[str, Any], needed: int) -> None:
    parts = [{"template": template()} | task for task in tasks]
    assert take(cron_volcano(*parts, **spec))[0].min_available == needed
    (batch,) = take(volcano(*parts, **spec))
    assert batch.min_available == needed
    (workload,) = batch.workloads
    assert len(workload.pods) == sum(task.get("replicas", 1) for task in tasks)
    noted = any("minAvailable: the plan counts the pods of all tasks" in warning for warning in batch.warnings)
    assert noted == any("minAvailable" in task for task in tasks)


def test_refused_pods_are_missing_in_their_gang() -> None:
    (batch,) = take(
        volcano(
            {"name": "good", "replicas": 2, "template": template()},
            {"name": "bad", "template": template(container("app", memory="16Gi"))},
        )
    )
    (workload,) = batch.workloads
    assert (len(workload.pods), workload.min_available) == (2, 3)


def test_the_pods_of_a_volcano_job_are_judged_under_its_scheduler() -> None:
    for spec, warned in (
        ({}, True),
        ({"schedulerName": "volcano"}, True),
        ({"schedulerName": "hami-scheduler"}, False),
    ):
        (batch,) = take(volcano({"template": template()}, **spec))
        assert any("Volcano 1.16" in warning for warning in batch.warnings) is warned
    (batch,) = take(volcano({"template": template(schedulerName="hami-scheduler")}))
    assert not batch.warnings


def test_a_daemon_set_with_an_npu_is_said_not_to_be_planned() -> None:
    (batch,) = take(manifest("DaemonSet", {"template": template()}, namespace="team"))
    (refused,) = batch.pods
    assert isinstance(refused, Unplaced)
    assert (full_name(refused.pod), refused.reasons) == ("team/app", {})
    assert refused.message.startswith("not planned: one pod per node, placed by the DaemonSet controller; ")
    (without,) = take(manifest("DaemonSet", {"template": template(container("app"))}))
    assert [one.asks for one in without.workloads[0].pods] == [False]


@pytest.mark.parametrize("kind", ["Service", "TrainingJob"])
def test_other_kinds_are_skipped_with_a_warning(kind: str) -> None:
    (batch,) = take(manifest(kind, {}))
    assert batch == Batch((), warnings=(f"app.yaml, document 1: unknown kind {kind}, not looked into",))


def test_a_pod_template_is_said_to_make_no_pods() -> None:
    (batch,) = take({"kind": "PodTemplate", "metadata": {"name": "t"}, "template": template()})
    note = "app.yaml, document 1: a PodTemplate makes no pods of its own, not looked into"
    assert batch == Batch((), warnings=(note,))


def test_what_cards_do_not_decide_is_said() -> None:
    spec = {"affinity": {"podAntiAffinity": {"x": []}, "podAffinity": {}}, "topologySpreadConstraints": [{}]}
    (batch,) = take(manifest("Deployment", {"template": template(nodeSelector={"zone": "a"}, **spec)}))
    place, why = (
        "app.yaml, document 1: spec.template.spec",
        "not looked at, as the plan goes by nodes and cards, not by",
    )
    assert batch.warnings == (
        f"{place}.affinity.podAntiAffinity: {why} the pods on them",
        f"{place}.topologySpreadConstraints: {why} the pods on them",
    )
    (without,) = take(pod(container("app"), spec=spec))
    assert not without.warnings


def test_what_a_pod_asks_of_a_node_goes_with_it() -> None:
    (batch,) = take(manifest("Deployment", {"replicas": 2, "template": template(nodeSelector={"zone": "a"})}))
    assert [one.terms for one in batch.requests] == [Terms(selector=(("zone", "a"),))] * 2
    (plain,) = take(pod())
    assert [one.terms for one in plain.requests] == [Terms()]


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        ([], r"document 1: \[\]: a mapping is expected"),
        ({}, "kind: absent"),
        ({"kind": 7}, "kind: 7"),
        ({"kind": "Pod"}, "metadata: absent"),
        (pod(name=None), "metadata.name: absent"),
        (pod(name=""), 'metadata.name: ""'),
        (pod(name=7), "metadata.name: 7"),
        (pod(namespace=7), "metadata.namespace: 7"),
        (manifest("Pod", None), "spec: null: a pod spec is expected"),
        (manifest("Pod", {"containers": 7}), "spec.containers: 7"),
        (manifest("Deployment", {}), "spec: {}: the pod template of a Deployment is expected"),
        (manifest("CronJob", {"template": template()}), "the pod template of a CronJob is expected"),
        (manifest("Deployment", {"replicas": "3", "template": template()}), 'spec.replicas: "3"'),
        (manifest("Deployment", {"replicas": -1, "template": template()}), "spec.replicas: -1"),
        (manifest("Deployment", {"replicas": True, "template": template()}), "spec.replicas: true"),
        (
            manifest("Deployment", {"replicas": 10**9, "template": template()}),
            'spec.template: "1000000000 pods": a plan',
        ),
        (manifest("Job", {"parallelism": 2.5, "template": template()}), r"spec.parallelism: 2\.5"),
        (manifest("Deployment", {"template": {"metadata": [], "spec": {}}}), r"spec.template.metadata: \[\]"),
        (manifest("Deployment", {"template": {"spec": {"containers": [7]}}}), r"spec.template.spec.containers\[0\]: 7"),
        (manifest("Job", {}, version=VOLCANO), "spec.tasks: absent"),
        (manifest("Job", None, version=VOLCANO), "spec.tasks: absent"),
        (manifest("CronJob", {"template": template()}, version=VOLCANO), "spec.jobTemplate.spec.tasks: absent"),
        (cron_volcano({}), r"spec.jobTemplate.spec.tasks\[0\].template: absent"),
        (cron_volcano({"template": template()}, minAvailable="2"), 'spec.jobTemplate.spec.minAvailable: "2"'),
        (pod(spec={"nodeSelector": []}), r"spec\.nodeSelector: \[\]: a mapping"),
        (manifest("Job", {"template": template(tolerations={})}), r"spec\.template\.spec\.tolerations: {}: a list"),
        (pod(spec={"affinity": 7}), "spec.affinity: 7: a mapping"),
        (volcano(7), r"spec.tasks\[0\]: 7"),
        (volcano({}), r"spec.tasks\[0\].template: absent"),
        (volcano({"template": template()}, minAvailable="2"), 'spec.minAvailable: "2"'),
        (volcano({"template": template(), "minAvailable": -1}), r"spec.tasks\[0\].minAvailable: -1"),
        (volcano({"template": template(), "replicas": 10**9}), "a plan has at most"),
    ],
)
def test_faults_name_document_and_field(obj: Any, words: str) -> None:
    with pytest.raises(DocumentError, match=f"^app.yaml, document 1: .*{words}" if "document" not in words else words):
        take(obj)


def test_a_name_stands_once() -> None:
    take(pod(), pod(namespace="team"), manifest("Deployment", {"template": template()}))
    with pytest.raises(DocumentError, match=r'document 2: metadata.name: "app": .* at app.yaml, document 1 already'):
        take(pod(), pod(namespace="default"))


def test_the_pods_of_all_manifests_are_counted() -> None:
    half = manifest("Deployment", {"replicas": MOST_PODS // 2, "template": template(container("app"))})
    with pytest.raises(DocumentError, match=r"document 3: .*a plan has at most"):
        take(half, half | {"kind": "ReplicaSet"}, half | {"kind": "StatefulSet"})


def test_slices_of_the_command_line() -> None:
    chip = chip_named("Ascend910B3")
    reception = Reception(Settings(), DEFAULT_CHIPS)
    batch = reception.take_slices([SliceGroup("28672", "20", 2), SliceGroup("8192", None, 1)], chip)
    assert names(batch) == ["default/slice-0", "default/slice-1", "default/slice-2"]
    slices = [one.containers[0].slice for one in batch.pods if not isinstance(one, Unplaced)]
    assert [(one.memory_mib, one.core_percent, one.mode) for one in slices if one is not None] == [
        (28672, 20, Mode.SOFT),
        (28672, 20, Mode.SOFT),
        (8192, 0, Mode.SOFT),
    ]
    (refused,) = reception.take_slices([SliceGroup("8192", "0", 1)], chip).pods
    assert isinstance(refused, Unplaced)
    with pytest.raises(InputError, match=r"--slice: .*a plan has at most"):
        reception.take_slices([SliceGroup("8192", None, MOST_PODS)], chip)
