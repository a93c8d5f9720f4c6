"""Why a pod is pending: each file of tests/fixtures/kubectl/explain is a cluster with one pod, and what is said of it.

The keys of such a file are those of tests/support/doctor.py, and for the pod: ``ask`` (memory and core of its one
container, null for no NPU), ``annotations``, ``spec``, ``status``, ``events``, and ``group``, its PodGroup.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support import doctor, objects
from vnpu.fit.render import plain
from vnpu.fit.table import without_blank_columns
from webhook.kubectl.explain import Around, absent, explain
from webhook.kubectl.view import view

FOLDER = Path(__file__).parents[2] / "fixtures" / "kubectl" / "explain"
CASES = sorted(path.stem for path in FOLDER.glob("*.yaml"))
NAME = {"namespace": "team", "name": "new", "uid": "uid-new"}
COMPLETED = {
    "env": [{"name": "NPU_MEM_QUOTA", "value": "8192"}, {"name": "NPU_PRIORITY", "value": "20"}],
    "lifecycle": {"postStart": {"exec": {"command": ["/usr/local/hami-vnpu-core/limiter", "start"]}}},
}


def pending(path: Path) -> dict[str, Any]:
    ask = doctor.field(path, "ask") if "\nask:" in path.read_text() else {"memory": 8192, "core": 20}
    main = objects.container("main", count=1, **ask) | COMPLETED if ask else {"name": "main"}
    for entry in main.get("env", ()):
        entry["value"] = str({"NPU_MEM_QUOTA": ask["memory"], "NPU_PRIORITY": ask["core"]}[entry["name"]])
    annotations = {"huawei.com/vnpu-mode": "hami-core"} if ask else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": NAME | {"annotations": annotations | (doctor.field(path, "annotations") or {})},
        "spec": {"schedulerName": "vnpu-scheduler", "containers": [main]} | (doctor.field(path, "spec") or {}),
        "status": doctor.field(path, "status") or {"phase": "Pending"},
    }


def told(path: Path) -> str:
    pod = pending(path)
    found = explain(
        pod,
        view(doctor.case(path, pod).snapshot),
        Around(doctor.field(path, "events") or (), doctor.field(path, "group")),
    )
    return plain([without_blank_columns(section) for section in found.sections])


@pytest.mark.parametrize("name", CASES)
def test_an_explanation_reads_as_it_stands_in_the_file(name: str) -> None:
    assert told(FOLDER / f"{name}.yaml") == (FOLDER / f"{name}.expected").read_text()


def event(owner: str, message: str, at: str, reason: str = "FailedCreate") -> dict[str, Any]:
    return {
        "involvedObject": {"kind": "ReplicaSet", "name": owner},
        "reason": reason,
        "message": message,
        "lastTimestamp": at,
    }


def test_a_pod_that_was_never_made_is_explained_by_its_controller() -> None:
    quota = 'pods "web-5d9-x" is forbidden: exceeded quota: npus, requested: requests.huawei.com/Ascend910B3=1'
    denied = 'admission webhook "mutate-pods.admission.vnpu.x" denied the request: spec.containers[0]: too much'
    events = [
        event("web-5d9", denied, "2026-11-29T11:00:00Z"),
        event("web-5d9", quota, "2026-11-29T11:30:00Z"),
        event("web-5d9", "created", "2026-11-29T11:40:00Z", reason="SuccessfulCreate"),
        event("other", denied, "2026-11-29T11:50:00Z"),
    ]
    assert absent("web", events) == f"the namespace's ResourceQuota is used up: ReplicaSet web-5d9 says: {quota}"
    assert absent("web-5d9-x", events[:1]) == f"it cannot be made: ReplicaSet web-5d9 says: {denied}"
    assert absent("elsewhere", events) == ""
