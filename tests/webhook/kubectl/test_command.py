"""``kubectl vnpu`` from its options to its exit code, over HTTP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.support import doctor, objects
from tests.support.api_stand_in import Fault
from tests.support.doctor_api import POD_GROUPS, RESOURCES
from vnpu import names
from vnpu.kube import CONFIG_MAPS, EVENTS, NODES, PODS
from webhook.kubectl.__main__ import main

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.api_stand_in import ApiStandIn

FOLDER = Path(__file__).parents[2] / "fixtures" / "kubectl"
Filled = "Callable[[str], ApiStandIn]"


def busy(api: ApiStandIn) -> ApiStandIn:
    """With a hard slice, a card out of service, and a pod whose cards cannot be told."""
    hard = objects.pod(
        objects.container("main", count=1, memory=6144, chip="Ascend310P"),
        name="cut",
        node="n2",
        mode="template",
        chip="Ascend310P",
        text="n2-0,Ascend310P,6144,0:;",
        info='[{"UUID":"n2-0","temp":"vir02"}]',
    )
    lost = objects.pod(name="lost", node="n3")
    api.put(PODS, hard)
    api.put(PODS, lost)
    node = api.object(NODES, "n1")
    assert node is not None
    metadata = node["metadata"] | {"annotations": node["metadata"]["annotations"] | {names.CORDON: "n1-1"}}
    api.put(NODES, node | {"metadata": metadata})
    api.put(NODES, objects.node(objects.card("n3-0"), name="n3", offered="10"))
    return api


@pytest.mark.parametrize("what", ["nodes", "pods"])
@pytest.mark.parametrize(("output", "form"), [("table", "expected"), ("json", "json")])
def test_top_tells_what_is_held(
    what: str, output: str, form: str, stand_in: Filled, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api = busy(stand_in("kube"))
    assert main(["top", what, "--kubeconfig", str(api.kubeconfig(tmp_path)), "-o", output]) == 0
    found = capsys.readouterr()
    assert found.err == ""
    assert found.out == (FOLDER / f"top-{what}.{form}").read_text()


def test_top_of_pods_keeps_to_a_namespace(stand_in: Filled, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    at = ["--kubeconfig", str(busy(stand_in("kube")).kubeconfig(tmp_path))]
    assert main(["top", "pods", "-n", "elsewhere", *at]) == 0
    found = capsys.readouterr()
    assert found.out == ""
    assert found.err == 'note: no pod holds a card in the namespace "elsewhere"\n'


def test_top_says_that_there_is_nothing(
    stand_in: Callable[[str], ApiStandIn], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api = stand_in("kube")
    for name in ("n1", "n2"):
        api.remove(NODES, name)
    at = ["--kubeconfig", str(api.kubeconfig(tmp_path))]
    assert main(["top", *at]) == 0
    found = capsys.readouterr()
    assert found.out == ""
    assert found.err == "note: no node has registered cards (kubectl vnpu doctor looks why)\n"
    assert main(["top", "-o", "json", *at]) == 0
    assert json.loads(capsys.readouterr().out) == {"nodes": []}


def test_without_an_installation_the_defaults_are_taken_and_said(
    stand_in: Callable[[str], ApiStandIn], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api = stand_in("kube")
    at = ["--kubeconfig", str(api.kubeconfig(tmp_path))]
    for one in doctor.cluster("kube"):
        if names.PART_OF_LABEL in one["metadata"].get("labels", {}) and one["kind"] != "Pod":
            api.remove(RESOURCES[one["kind"]], one["metadata"]["name"], one["metadata"].get("namespace"))
    assert main(["top", *at]) == 0
    found = capsys.readouterr()
    assert found.out.startswith("Nodes\n")
    assert [line.partition(":")[2].partition(" (")[0] for line in found.err.splitlines()] == [
        " settings: the defaults are taken",
        " device config: the table of HAMi's chart is taken",
    ]
    table = tmp_path / "chips.yaml"
    (config,) = (one for one in doctor.cluster("kube") if "device-config.yaml" in (one.get("data") or {}))
    table.write_text(config["data"]["device-config.yaml"])
    main(["top", *at, "--device-config", str(table)])
    assert "device config" not in capsys.readouterr().err


def pending(api: ApiStandIn, **spec: Any) -> None:
    pod = objects.pod(name="new", node="", phase="Pending")
    api.put(PODS, pod | {"spec": pod["spec"] | {"schedulerName": "vnpu-scheduler"} | spec})


def test_explain_reads_the_pod_its_events_and_its_group(
    stand_in: Filled, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api = stand_in("volcano")
    pod = objects.pod(name="new", node="", phase="Pending", annotations={"scheduling.k8s.io/group-name": "job-1"})
    stored = api.put(PODS, pod | {"spec": pod["spec"] | {"schedulerName": "volcano"}})
    api.put(POD_GROUPS, {"metadata": {"name": "job-1", "namespace": "team"}, "spec": {"minMember": 2}, "status": {}})
    for number, (uid, message) in enumerate((("uid-of-another", "before"), (stored["metadata"]["uid"], "no room"))):
        about = {"kind": "Pod", "namespace": "team", "name": "new", "uid": uid}
        event = {"involvedObject": about, "type": "Warning", "reason": "FailedScheduling", "message": message}
        api.put(EVENTS, {"metadata": {"name": f"e{number}", "namespace": "team"}, **event})
    assert main(["explain", "new", "-n", "team", "--kubeconfig", str(api.kubeconfig(tmp_path))]) == 1
    out = capsys.readouterr().out
    assert "FailedScheduling: no room\n" in out
    assert "before" not in out
    assert "it waits for its gang: PodGroup job-1 is not looked at yet and places 2 pods at a time, or none\n" in out
    assert "no card hinders it: it fits on node n1" in out


def test_explain_looks_in_the_namespace_of_the_context(
    stand_in: Callable[[str], ApiStandIn], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api = stand_in("kube")
    pending(api)
    path = api.kubeconfig(tmp_path)
    assert main(["explain", "new", "--kubeconfig", str(path)]) == 2
    assert capsys.readouterr().err == (
        'error: there is no pod "new" in the namespace "default" (-n names another namespace)\n'
    )
    document = yaml.safe_load(path.read_text())
    document["contexts"][0]["context"]["namespace"] = "team"
    path.write_text(yaml.safe_dump(document))
    assert main(["explain", "new", "--kubeconfig", str(path)]) == 1
    assert main(["explain", "new", "--kubeconfig", str(path), "--context", "other"]) == 2


def test_explain_of_a_running_pod_ends_with_0(stand_in: Filled, tmp_path: Path) -> None:
    at = ["--kubeconfig", str(stand_in("kube").kubeconfig(tmp_path))]
    assert main(["explain", "app", "-n", "team", *at]) == 0


def test_a_pod_that_was_never_made_is_explained(
    stand_in: Callable[[str], ApiStandIn], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api = stand_in("kube")
    owner = {"kind": "ReplicaSet", "namespace": "team", "name": "web-5d9"}
    quota = 'pods "web-5d9-x" is forbidden: exceeded quota: npus'
    event = {"involvedObject": owner, "type": "Warning", "reason": "FailedCreate", "message": quota}
    api.put(EVENTS, {"metadata": {"name": "e", "namespace": "team"}, **event})
    assert main(["explain", "web", "-n", "team", "--kubeconfig", str(api.kubeconfig(tmp_path))]) == 1
    assert capsys.readouterr().err == (
        'error: there is no pod "web" in the namespace "team": the namespace\'s ResourceQuota is used up: '
        "ReplicaSet web-5d9 says: " + quota + "\n"
    )


@pytest.mark.parametrize(
    ("name", "told"), [("ap", "; there are app"), ("aqp", "; did you mean app?"), ("something", "")]
)
def test_a_name_that_is_mistyped_is_told_with_those_that_are_near(
    name: str, told: str, stand_in: Filled, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at = ["--kubeconfig", str(stand_in("kube").kubeconfig(tmp_path))]
    assert main(["explain", name, "-n", "team", *at]) == 2
    assert f'there is no pod "{name}" in the namespace "team"{told} (-n' in capsys.readouterr().err


def test_a_pod_may_be_named_as_kubectl_does(stand_in: Filled, tmp_path: Path) -> None:
    assert main(["explain", "pod/app", "-n", "team", "--kubeconfig", str(stand_in("kube").kubeconfig(tmp_path))]) == 0


def test_fit_plans_onto_the_cluster_unless_nodes_are_given(
    stand_in: Callable[[str], ApiStandIn], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api = stand_in("kube")
    manifest = tmp_path / "pod.yaml"
    manifest.write_text(json.dumps(objects.pod(name="new", node="")))
    assert main(["fit", str(manifest), "-o", "json", "--kubeconfig", str(api.kubeconfig(tmp_path))]) == 0
    found = capsys.readouterr()
    (placed,) = json.loads(found.out)["placements"]
    assert placed["node"] == "n1"
    assert found.err == ""
    before = len(api.requests)
    assert main(["fit", str(manifest), "-o", "json", "--card", "Ascend910B3x1"]) == 0
    (placed,) = json.loads(capsys.readouterr().out)["placements"]
    assert placed["node"] == "node-0"
    assert len(api.requests) == before


def test_fit_goes_by_the_chips_and_settings_of_the_installation(
    stand_in: Callable[[str], ApiStandIn], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api = stand_in("kube")
    at = ["--kubeconfig", str(api.kubeconfig(tmp_path))]
    config_map = api.object(CONFIG_MAPS, "vnpu-device-config", "vnpu-system")
    assert config_map is not None
    text = config_map["data"]["device-config.yaml"]
    api.put(CONFIG_MAPS, config_map | {"data": {"device-config.yaml": text.replace("Ascend910B3", "Ascend910X")}})
    manifest = tmp_path / "pod.yaml"
    manifest.write_text(json.dumps(objects.pod(objects.container("main", count=1, chip="Ascend910X"), node="")))
    assert main(["fit", str(manifest), *at]) == 1
    assert "there is no node" not in capsys.readouterr().out
    # Without the right to read them, the defaults, which do not know that chip.
    api.fail(Fault(path=r"/configmaps\?", status=403, reason="Forbidden"))
    main(["fit", str(manifest), *at])
    found = capsys.readouterr()
    assert found.err.startswith("note: the defaults are taken for settings and device config: injected: Forbidden")
    metadata = {"name": "second", "namespace": "vnpu-system", "labels": config_map["metadata"]["labels"]}
    api.put(CONFIG_MAPS, {"metadata": metadata, "data": {"device-config.yaml": text}})
    main(["fit", str(manifest), *at])
    assert "--device-config: 2 ConfigMaps of the chart differ (device-config.yaml)" in capsys.readouterr().err
    api.remove(CONFIG_MAPS, "vnpu-settings", "vnpu-system")
    main(["fit", str(manifest), *at])
    assert "--config: no ConfigMap of the chart has one (settings.yaml)" in capsys.readouterr().err


def test_preview_and_doctor_are_those_of_the_webhook(
    stand_in: Filled, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = tmp_path / "pod.yaml"
    manifest.write_text(json.dumps(objects.pod(name="new", node="")))
    assert main(["preview", str(manifest)]) == 0
    assert "as admitted" in capsys.readouterr().out
    at = ["--kubeconfig", str(stand_in("kube").kubeconfig(tmp_path))]
    assert main(["doctor", "--json", *at]) == 1
    assert json.loads(capsys.readouterr().out)["summary"]["error"] > 0


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["tops"], "invalid choice: 'tops'"),
        (["top", "cards"], "invalid choice: 'cards'"),
        (["explain", "deploy/x"], '"deploy/x": the name of a pod is expected'),
        (["--kubeconfig", "X", "top"], "--kubeconfig: options stand behind the command"),
        (["explain"], "the following arguments are required: POD"),
        (["top", "--kubeconfig", "/nowhere"], "/nowhere"),
    ],
)
def test_bad_usage_is_one_line_and_exit_2(given: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(given) == 2
    found = capsys.readouterr()
    assert told in found.err
    assert found.err.count("\n") == 1
    assert found.out == ""


@pytest.mark.parametrize("given", [["--help"], ["top", "--help"], ["explain", "--help"], ["fit", "--help"]])
def test_help_is_printed(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(given)
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("usage: ")
