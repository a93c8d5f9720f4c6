"""The planner on a running cluster, and on nodes that are not there yet."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.api_stand_in import ApiStandIn, Fault
from tests.support.planner import Run, run
from vnpu.kube import NODES, PODS

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "tests" / "fixtures" / "planner"
ENVIRONMENT = {"PYTHONPATH": str(ROOT)}


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiStandIn]:
    """A cluster with the nodes and pods of the fixtures."""
    with ApiStandIn() as server:
        for resource, name in ((NODES, "nodes.json"), (PODS, "pods.json")):
            for one in json.loads((FOLDER / name).read_text())["items"]:
                server.put(resource, one)
        monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig(tmp_path)))
        yield server


def planned(*arguments: str) -> Run:
    """A run in a process of its own: the client library reads KUBECONFIG once, when it is loaded."""
    command = [sys.executable, "-m", "vnpu.fit", *arguments]
    done = subprocess.run(
        command, cwd=FOLDER, capture_output=True, text=True, check=False, env=ENVIRONMENT | os.environ
    )
    return Run(done.returncode, done.stdout, done.stderr)


@pytest.mark.usefixtures("api")
def test_a_cluster_is_planned_as_what_kubectl_prints_of_it() -> None:
    live = planned("--from-cluster", "workloads.yaml", "-o", "json")
    files = planned("--nodes", "nodes.json", "--running", "pods.json", "workloads.yaml", "-o", "json")
    assert live.code == files.code == 1
    assert json.loads(live.out) == json.loads(files.out)


def test_a_cluster_that_refuses_is_an_error_of_one_line(api: ApiStandIn) -> None:
    api.fail(Fault("GET", "/pods", status=403, reason="Forbidden"))
    found = planned("--from-cluster", "workloads.yaml")
    assert (found.code, found.out) == (2, "")
    assert found.err.startswith("error: ")
    assert "Forbidden" in found.err
    assert found.err.count("\n") == 1


@pytest.mark.usefixtures("api")
def test_a_context_that_is_not_there_is_an_error_of_one_line() -> None:
    found = planned("--from-cluster", "--context", "nowhere", "workloads.yaml")
    assert (found.code, found.out) == (2, "")
    assert "nowhere" in found.err
    assert found.err.count("\n") == 1


def test_a_context_needs_a_cluster() -> None:
    found = run("--card", "Ascend910B3", "--slice", "1", "--context", "a")
    assert found.code == 2
    assert "--from-cluster" in found.err


def test_without_a_cluster_the_client_is_not_even_loaded() -> None:
    code = (
        "import sys; from vnpu.fit.__main__ import main; main(['--card', 'Ascend910B3', '--slice', '8192']); "
        "sys.exit('vnpu.kube' in sys.modules or 'kubernetes' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


# ---- Nodes that are not there yet


def what_if(*arguments: str, more: list[dict[str, Any]], tmp_path: Path) -> Any:
    path = tmp_path / "more.json"
    path.write_text(json.dumps({"nodes": more}))
    found = run(*arguments, "--what-if", str(path), "-o", "json")
    return json.loads(found.out)


def test_what_more_nodes_would_change_is_told(tmp_path: Path) -> None:
    arguments = ("--card", "Ascend910B3", "--slice", "65536x3")
    one = {"name": "new", "chip": "Ascend910B3", "cards": 1, "soft": True}
    found = what_if(*arguments, more=[one], tmp_path=tmp_path)
    assert found["what_if"] == {"nodes": ["new"], "more": ["default/slice-1"], "fewer": []}
    assert [left["pod"] for left in found["unplaced"]] == ["default/slice-2"]
    assert "what_if" not in json.loads(run(*arguments, "-o", "json").out)
    hard = {**one, "soft": False}
    assert what_if(*arguments, more=[hard], tmp_path=tmp_path)["what_if"]["more"] == []


def test_a_pod_that_loses_its_place_to_the_new_nodes_is_told(tmp_path: Path) -> None:
    # A gang that fits now takes the room that a later pod had.
    gang = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "gang"},
        "spec": {
            "minAvailable": 2,
            "tasks": [{"name": "t", "replicas": 2, "template": _template()}],
        },
    }
    late = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "late"}, "spec": _template()["spec"]}
    path = tmp_path / "pods.json"
    path.write_text(json.dumps({"kind": "List", "items": [gang, late]}))
    one = {"name": "new", "chip": "Ascend910B3", "cards": 1, "soft": True}
    found = what_if("--card", "Ascend910B3", str(path), more=[one], tmp_path=tmp_path)
    assert found["what_if"] == {
        "nodes": ["new"],
        "more": ["default/gang-t-0", "default/gang-t-1"],
        "fewer": ["default/late"],
    }


def _template() -> dict[str, Any]:
    limits = {"huawei.com/Ascend910B3": 1, "huawei.com/Ascend910B3-memory": 65536}
    return {"spec": {"containers": [{"name": "app", "resources": {"limits": limits}}]}}
