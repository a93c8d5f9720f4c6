"""The command, from its options to its exit code, over HTTP."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

import webhook.doctor
from tests.support.api_stand_in import Fault
from vnpu.kube import MUTATING, NODES, PODS, SECRETS
from webhook.__main__ import main
from webhook.doctor import gather

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.api_stand_in import ApiStandIn

Filled = "Callable[[str], ApiStandIn]"
SCHEMA = json.loads((Path(webhook.doctor.__path__[0]) / "doctor.schema.json").read_text())


def looked(api: ApiStandIn, folder: Path, *more: str) -> int:
    return main(["doctor", "--kubeconfig", str(api.kubeconfig(folder)), *more])


def told(text: str) -> dict[str, list[dict[str, Any]]]:
    document = json.loads(text)
    jsonschema.validate(document, SCHEMA)
    found: dict[str, list[dict[str, Any]]] = {}
    for finding in document["findings"]:
        found.setdefault(finding["severity"], []).append(finding)
    assert {severity: len(found.get(severity, ())) for severity in document["summary"]} == document["summary"]
    return found


@pytest.mark.parametrize("name", ["kube", "volcano", "hami"])
def test_a_cluster_where_all_is_well_is_read_whole(
    name: str, stand_in: Filled, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert looked(stand_in(name), tmp_path, "--no-dry-run", "--json") == 0
    found = told(capsys.readouterr().out)
    # The certificates of the files are made for another day than today.
    others = {one["code"] for severity in ("error", "warning", "unknown") for one in found.get(severity, ())}
    assert others <= {"could-not-look", "node-handshake-stale", "certificate-expired", "volcano-not-restarted"}
    assert [one["subject"] for one in found["unknown"]] == ["dry run"]


def test_nothing_is_changed_and_pods_are_asked_for_dry(stand_in: Filled, tmp_path: Path) -> None:
    api = stand_in("kube")
    before = api.objects(PODS)
    looked(api, tmp_path)
    assert {request.method for request in api.requests} == {"GET", "POST"}
    asked = [request for request in api.requests if request.method == "POST"]
    assert [request.query for request in asked] == [{"dryRun": "All"}] * 3
    assert api.objects(PODS) == before


def test_a_server_that_calls_no_webhook_is_noticed(
    stand_in: Filled, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert looked(stand_in("kube"), tmp_path, "--json") == 1
    codes = {one["code"] for one in told(capsys.readouterr().out)["error"]}
    assert codes >= {"dry-run-not-completed", "dry-run-not-refused"}


def test_what_is_forbidden_is_unknown_and_the_rest_is_told(
    stand_in: Filled, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api = stand_in("kube")
    api.fail(Fault(path=r"/nodes\b|/secrets/", status=403, reason="Forbidden", times=-1))
    api.remove(MUTATING, "zz-vnpu")
    assert looked(api, tmp_path, "--no-dry-run", "--json") == 1
    found = told(capsys.readouterr().out)
    assert {one["subject"] for one in found["unknown"]} == {"Node", "Secret vnpu-system/vnpu-webhook-tls", "dry run"}
    assert all("injected: Forbidden" in one["seen"] for one in found["unknown"] if one["subject"] != "dry run")
    assert [one["code"] for one in found["error"]] == ["configuration-missing"]
    assert not {"registrations", "books", "certificates"} & {one["subject"] for one in found["ok"]}


def test_lists_that_grow_old_are_read_in_one_piece(stand_in: Filled, tmp_path: Path) -> None:
    api = stand_in("kube")
    api.fail(Fault(path=r"/nodes\?limit", status=410, reason="Expired"))
    snapshot = gather.take(api.cluster(tmp_path))
    assert [node["metadata"]["name"] for node in snapshot.nodes] == ["n1", "n2"]
    api.fail(Fault(path=r"/nodes\b", status=410, reason="Expired", times=-1))
    assert NODES.kind in gather.take(api.cluster(tmp_path)).unseen


def test_no_key_is_kept(stand_in: Filled, tmp_path: Path) -> None:
    api = stand_in("kube")
    secret = api.object(SECRETS, "vnpu-webhook-tls", "vnpu-system")
    assert secret is not None
    api.put(SECRETS, secret | {"data": secret["data"] | {"tls.key": "c2VjcmV0", "ca.key": "c2VjcmV0"}})
    (kept,) = gather.take(api.cluster(tmp_path)).of(SECRETS)
    assert set(kept["data"]) == {"tls.crt", "ca.crt"}


def test_pods_that_have_nothing_to_do_with_npus_are_not_kept(stand_in: Filled, tmp_path: Path) -> None:
    api = stand_in("kube")
    api.put(PODS, {"metadata": {"name": "plain", "namespace": "team"}, "spec": {"containers": [{"name": "main"}]}})
    names = {pod["metadata"]["name"] for pod in gather.take(api.cluster(tmp_path)).pods}
    assert names == {"app", "vnpu-device-plugin-soft-n1", "vnpu-device-plugin-hard-n2"}


def test_an_empty_cluster_is_told_in_words(
    stand_in: Callable[[str], ApiStandIn], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api = stand_in("kube")
    for name in ("vnpu-webhook", "vnpu-scheduler"):
        api.remove(gather.DEPLOYMENTS, name, "vnpu-system")
    for resource in (MUTATING, gather.VALIDATING):
        api.remove(resource, "zz-vnpu")
    assert looked(api, tmp_path) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (
        "error    cluster: no Deployment and no webhook configuration of the chart was found  [not-installed]"
    )
    assert lines[1].startswith("         -> install the chart")
    assert lines[-1].startswith("1 error, 0 warning, ")


def test_a_mistyped_namespace_is_told_and_nothing_else(
    stand_in: Filled, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert looked(stand_in("kube"), tmp_path, "--json", "-n", "nope") == 1
    (error,) = told(capsys.readouterr().out)["error"]
    assert error["subject"] == "Namespace nope"
    assert error["seen"] == "there is no such namespace; installations are in vnpu-system"


def test_a_server_that_is_away_is_one_line_and_exit_2(stand_in: Filled, tmp_path: Path) -> None:
    api = stand_in("kube")
    path = api.kubeconfig(tmp_path)
    api.away()
    command = [sys.executable, "-m", "webhook", "doctor", "--kubeconfig", str(path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr.startswith("webhook: ")
    assert ended.stderr.count("\n") == 1


def test_no_kubeconfig_is_one_line_and_exit_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--kubeconfig", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err.startswith("webhook: ")
