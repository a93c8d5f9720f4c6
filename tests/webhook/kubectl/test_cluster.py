"""kubectl itself finds the plugin and passes on what it is told: on a real API server with the chart installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import objects
from tests.support.release import Release, installed
from vnpu import names
from vnpu.kube import NODES, PODS

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = "kubectl-vnpu"
TOP = Path(__file__).parents[3]


@pytest.fixture
def release(real_kubeconfig: str, tmp_path: Path) -> Iterator[Release]:
    with installed(4, real_kubeconfig, tmp_path) as made:
        yield made


def script() -> str:
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    return str(project["scripts"][PROGRAM])


def test_the_program_that_kubectl_looks_for_is_installed() -> None:
    module, _, name = script().partition(":")
    assert callable(getattr(import_module(module), name))


def kubectl(release: Release, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join((str(folder), os.environ.get("KUBEBUILDER_ASSETS", ""), os.environ["PATH"]))
    program = shutil.which("kubectl", path=path)
    if program is None:
        pytest.skip("no kubectl on the path")
    environment = os.environ | {"PATH": path, "KUBECONFIG": release.kubeconfig, "PYTHONPATH": str(TOP)}
    return subprocess.run(
        [program, "vnpu", *words], env=environment, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.cluster
@pytest.mark.timeout(300)
def test_kubectl_runs_the_plugin(release: Release, tmp_path: Path) -> None:
    folder = tmp_path / "path"
    folder.mkdir()
    (folder / PROGRAM).write_text(f'#!/bin/sh\nexec {sys.executable} -m {script().partition(".__main__")[0]} "$@"\n')
    (folder / PROGRAM).chmod(0o755)
    at = ("-n", release.team)
    with release.webhook(), release.node() as node:
        release.wait_until_published()
        small, large = (
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": release.team},
                "spec": {
                    "containers": [objects.container("main", count=1, memory=1024, core=core) | {"image": "none"}]
                },
            }
            for name, core in (("small", 20), ("large", 90))
        )
        for pod in (small, large):
            release.cluster.create(PODS, pod, release.team)
        # Bound as a scheduler would, onto a card that then has no room for the other.
        text = {names.allocated(objects.CHIP): f"{node}-card,{objects.CHIP},1024,20:;"}
        uid = release.cluster.get(PODS, "small", release.team)["metadata"]["uid"]
        release.cluster.bind(release.team, "small", node, text, uid)

        told = kubectl(release, folder, "explain", "large", *at)
        assert told.returncode == 1, told.stderr
        assert "admission has nothing to add and nothing to object" in told.stdout
        assert f"on the best card ({node} card 0) 10 percent of compute are missing" in told.stdout
        told = kubectl(release, folder, "explain", "small", *at)
        assert f"it is bound to {node}" in told.stdout

        document: dict[str, Any] = json.loads(kubectl(release, folder, "top", "-o", "json").stdout)
        (found,) = (one for one in document["nodes"] if one["name"] == node)
        assert [(card["memory_used_mib"], card["core_used_percent"]) for card in found["cards"]] == [(1024, 20)]
        document = json.loads(kubectl(release, folder, "top", "pods", "-o", "json", *at).stdout)
        assert [(one["name"], one["node"]) for one in document["pods"]] == [("small", node)]

        manifest = tmp_path / "large.json"
        manifest.write_text(json.dumps(large))
        told = kubectl(release, folder, "fit", str(manifest), "-o", "json")
        assert told.returncode == 1, told.stderr
        assert "10 percent of compute" in json.loads(told.stdout)["unplaced"][0]["message"]
        assert kubectl(release, folder, "preview", str(manifest)).returncode == 0
        told = kubectl(release, folder, "doctor", "--json", *("-n", release.namespace))
        assert told.returncode == 1, "nobody runs the pods of the chart here"
        # The node has no device plugin: the doctor says so.
        codes = {one["code"] for one in json.loads(told.stdout)["findings"] if one["subject"] == f"{NODES.kind} {node}"}
        assert "no-device-plugin" in codes
