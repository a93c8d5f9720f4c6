"""The planner as a command: options, exit codes, explanations."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import objects
from tests.support.planner import run
from vnpu.fit.__main__ import main

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "tests" / "fixtures" / "planner"
B3 = "huawei.com/Ascend910B3"


def pod(name: str = "app", **limits: Any) -> dict[str, Any]:
    named = {f"{B3}-{resource}" if resource != "count" else B3: amount for resource, amount in limits.items()}
    containers = [{"name": "app", "resources": {"limits": named}}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers}}


def text(*objects: Any) -> bytes:
    return yaml.safe_dump_all(objects).encode()


def plan(*arguments: str, stdin: bytes = b"") -> Any:
    found = run(*arguments, "-o", "json", stdin=stdin)
    assert found.err == ""
    return json.loads(found.out)


def test_the_default_policies_are_binpack_and_spread() -> None:
    found = plan("--card", "Ascend910B3x2", "--card", "Ascend910B3x2", "--slice", "8192,10x3")
    assert found["policy"] == {"node": "binpack", "card": "spread"}
    cards = [one["containers"][0]["cards"][0]["uuid"] for one in found["placements"]]
    assert cards == ["node-0-0", "node-0-1", "node-0-0"]


def test_the_annotations_of_a_pod_beat_the_command_line() -> None:
    wanted = pod(memory=8192, core=10)
    wanted["metadata"]["annotations"] = {"hami.io/node-scheduler-policy": "spread"}
    found = plan("--card", "Ascend910B3", "--card", "Ascend910B3", "--slice", "8192", "-", stdin=text(wanted))
    assert [one["node"] for one in found["placements"]] == ["node-0", "node-1"]


def test_settings_and_chip_table_are_read(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text("defaultMode: hami-core\ndefaultCorePercent: 15\n")
    (tmp_path / "chips.yaml").write_text(
        "vnpus:\n  hamiVnpuCore: true\n  configs:\n  - {commonWord: Ascend910B3, chipName: 910B3, "
        f"resourceName: {B3}, memoryAllocatable: 1000, memoryCapacity: 1000, aiCore: 20, surprise: 1}}\n"
    )
    files = ("--config", str(tmp_path / "settings.yaml"), "--device-config", str(tmp_path / "chips.yaml"))
    found = plan("--card", "Ascend910B3", *files, "-", stdin=text(pod(memory=400)))
    (card,) = found["placements"][0]["containers"][0]["cards"]
    assert (card["memory_mib"], card["core_percent"], found["cards"][0]["memory_mib"]) == (400, 15, 1000)
    assert any("chips.yaml, document 1: vnpus.configs[0].surprise: unknown key" in one for one in found["warnings"])


@pytest.mark.parametrize(
    ("option", "content", "words"),
    [
        ("--config", "defaultmode: hami-core\n", "document 1: defaultmode: .*did you mean defaultMode"),
        ("--config", "a: 1\n---\nb: 2\n", "2 documents.*one document is expected"),
        ("--device-config", "vnpus: 7\n", "document 1: vnpus: 7"),
        ("--running", "kind: Node\n", 'document 1: kind: "Node": Pod is expected'),
        ("--nodes", "nodes: [{}]\n", r"document 1: nodes\[0\]"),
        ("--what-if", "nodes: [{}]\n", r"document 1: nodes\[0\]"),
    ],
)
def test_unreadable_files_are_exit_2_and_one_line(tmp_path: Path, option: str, content: str, words: str) -> None:
    (tmp_path / "file.yaml").write_text(content)
    found = run("--card", "Ascend910B3", "--slice", "8192", option, str(tmp_path / "file.yaml"))
    assert (found.code, found.out) == (2, "")
    assert re.fullmatch(rf"error: {re.escape(str(tmp_path))}/file\.yaml.*{words}.*\n", found.err)


def test_an_empty_settings_file_means_the_defaults(tmp_path: Path) -> None:
    (tmp_path / "file.yaml").write_text("# nothing yet\n")
    assert run("--card", "Ascend910B3", "--slice", "8192", "--config", str(tmp_path / "file.yaml")).code == 0


def test_nothing_with_an_npu_is_an_empty_plan() -> None:
    found = plan("--card", "Ascend910B3", "-", stdin=text(pod()))
    assert (found["placements"], found["unplaced"]) == ([], [])


def test_slices_need_one_chip() -> None:
    for cards, words in (
        (("Ascend910B3", "Ascend910B4"), "the nodes have Ascend910B3, Ascend910B4: give a manifest instead\n"),
        ((), "these have no cards"),
    ):
        options = [option for chip in cards for option in ("--card", chip)]
        found = run(*options, "--nodes", "-", "--slice", "8192", stdin=b"nodes: []")
        assert (found.code, found.out) == (2, "")
        assert words in found.err


def test_all_files_of_nodes_and_of_running_pods_are_read(tmp_path: Path) -> None:
    options: list[str] = []
    for name in ("a", "b"):
        (tmp_path / f"nodes-{name}.json").write_text(json.dumps(objects.node(objects.card(f"U-{name}"), name=name)))
        holder = objects.pod(text=f"U-{name},Ascend910B3,1000,10:;", name=name, node=name)
        (tmp_path / f"pods-{name}.json").write_text(json.dumps(holder))
        options += ("--nodes", str(tmp_path / f"nodes-{name}.json"), "--running", str(tmp_path / f"pods-{name}.json"))
    found = plan(*options, "--slice", "8192,10")
    assert [card["uuid"] for card in found["cards"]] == ["U-a", "U-b"]
    assert sorted(card["memory_used_mib"] for card in found["cards"]) == [1000, 9192]
    assert found["warnings"] == []


def test_pods_without_an_npu_are_named_as_left_out() -> None:
    pods = [pod(f"web-{number}") for number in range(5)]
    refused = pod("bad", memory="16Gi")
    for given, sentence in (
        (pods[:1], "1 pod asks for no NPU and is left out: default/web-0"),
        (pods, "5 pods ask for no NPU and are left out: default/web-0, default/web-1, default/web-2 and 2 more"),
    ):
        assert plan("--card", "Ascend910B3", "-", stdin=text(*given, refused))["warnings"] == [sentence]
        assert sentence in run("--card", "Ascend910B3", "-", stdin=text(*given)).out
        assert "left out" not in run("--card", "Ascend910B3", "-", "--quiet", stdin=text(*given)).out


def test_quiet_leaves_warnings_out_of_the_table() -> None:
    stdin = text({"kind": "Service", "metadata": {"name": "s"}}, pod())
    assert "Service" in run("--card", "Ascend910B3", "-", stdin=stdin).out
    assert "Service" not in run("--card", "Ascend910B3", "-", "--quiet", stdin=stdin).out
    assert plan("--card", "Ascend910B3", "-", "--quiet", stdin=stdin)["warnings"]


def verdicts(explanation: dict[str, Any]) -> list[str | None]:
    return [card["reason"] for card in explanation["cards"]]


def test_an_explanation_is_of_the_moment_when_the_turn_came() -> None:
    arguments = ("--card", "Ascend910B3x2", "--slice", "40000x2", "--slice", "65536,100", "--slice", "8192x2")
    (first,) = plan(*arguments, "--explain", "slice-0")["explanations"]
    assert (first["pod"], first["node"], verdicts(first)) == ("default/slice-0", "node-0", [None, None])
    (second,) = plan(*arguments, "--explain", "default/slice-1")["explanations"]
    assert verdicts(second) == ["CardInsufficientMemory", None]
    (third,) = plan(*arguments, "--explain", "slice-2")["explanations"]
    assert (third["node"], verdicts(third)) == (None, ["CardInsufficientMemory"] * 2)
    assert third["cards"][0]["detail"].startswith("40000 MiB are missing")


def test_the_explanation_of_a_gang_counts_its_own_pods_before() -> None:
    task = {"name": "t", "replicas": 3, "template": {"spec": pod(memory=40000)["spec"]}}
    task["template"]["metadata"] = {"annotations": {"huawei.com/vnpu-mode": "hami-core"}}  # type: ignore[index]
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "gang"},
        "spec": {"tasks": [task]},
    }
    found = plan("--card", "Ascend910B3x2", "-", "--explain", "gang-t-2", stdin=text(job))
    assert [one["pod"] for one in found["unplaced"]] == ["default/gang-t-0", "default/gang-t-1", "default/gang-t-2"]
    assert verdicts(found["explanations"][0]) == ["CardInsufficientMemory"] * 2
    assert all(card["slots_used"] == 0 for card in found["cards"])


def test_what_is_not_looked_at_has_no_verdicts() -> None:
    stdin = text(pod("refused", memory="16Gi"), pod("plain"))
    for name in ("refused", "plain"):
        (found,) = plan("--card", "Ascend910B3", "-", "--explain", name, stdin=stdin)["explanations"]
        assert (found["node"], found["cards"]) == (None, [])


def test_pods_of_one_name_in_two_namespaces_are_both_explained() -> None:
    other = pod(memory=8192, core=1)
    other["metadata"]["namespace"] = "team"
    found = plan("--card", "Ascend910B3", "-", "--explain", "app", stdin=text(pod(memory=8192, core=1), other))
    assert [one["pod"] for one in found["explanations"]] == ["default/app", "team/app"]


@pytest.mark.parametrize(
    ("name", "pods"),
    [
        ("infer", "infer-0, infer-1, infer-2 and 1 more"),
        ("team/infer", "team/infer-0, team/infer-1, team/infer-2 and 1 more"),
    ],
)
def test_of_a_controller_the_pods_that_can_be_explained_are_listed(name: str, pods: str) -> None:
    spec = {"replicas": 4, "template": {"spec": pod(memory=8192, core=1)["spec"]}}
    infer = {"kind": "Deployment", "metadata": {"name": "infer", "namespace": "team"}, "spec": spec}
    found = run("--card", "Ascend910B3", "-", "--explain", name, stdin=text(infer))
    assert (found.code, found.out) == (2, "")
    assert f"the name of a pod is expected; its pods are {pods}\n" in found.err


def test_a_card_of_another_chip_is_told_so_whatever_else_keeps_the_pod_from_the_node(tmp_path: Path) -> None:
    nodes = {
        "nodes": [{"name": "b3", "chip": "Ascend910B3", "cards": 1}, {"name": "b4", "chip": "Ascend910B4", "cards": 1}]
    }
    wanted = pod(memory=8192, core=1)
    wanted["metadata"]["annotations"] = {"huawei.com/vnpu-mode": "hami-core"}
    (tmp_path / "nodes.yaml").write_bytes(text(nodes))
    found = plan("--nodes", str(tmp_path / "nodes.yaml"), "-", "--explain", "app", stdin=text(wanted))
    assert verdicts(found["explanations"][0]) == ["ModeNotFit", "CardTypeMismatch"]
    details = [card["detail"] for card in found["explanations"][0]["cards"]]
    assert details == [
        "b3 takes no soft slices: the inventory does not say soft: true",
        "the chip is Ascend910B4, not Ascend910B3",
    ]


def test_a_pod_that_is_not_tried_is_explained_too() -> None:
    stdin = text(pod("bad", memory="16Gi"), pod("web"))
    for name, why in (("bad", "write 16384"), ("web", "it asks for no NPU")):
        found = run("--card", "Ascend910B3", "-", "--explain", name, stdin=stdin)
        title, _, section = found.out.partition(f"Why default/{name} is not placed\n")
        assert title
        assert why in section
        (explanation,) = plan("--card", "Ascend910B3", "-", "--explain", name, stdin=stdin)["explanations"]
        assert (explanation["node"], explanation["cards"]) == (None, [])
        assert why in explanation["message"]


@pytest.mark.parametrize(
    ("mark", "why"),
    [
        ("True", 'its annotation hami-vnpu-core is "True", not the text "true"'),
        ("false", 'its annotation hami-vnpu-core is "false", not the text "true"'),
        (None, "it has no annotation hami-vnpu-core, and the device config has no hamiVnpuCore: true"),
    ],
)
def test_a_node_that_takes_no_soft_slices_says_what_it_says_itself(tmp_path: Path, mark: str | None, why: str) -> None:
    hard = objects.node(objects.card("U"))
    del hard["metadata"]["annotations"]["hami-vnpu-core"]
    if mark is not None:
        hard["metadata"]["annotations"]["hami-vnpu-core"] = mark
    (tmp_path / "nodes.json").write_bytes(text(hard))
    found = plan("--nodes", str(tmp_path / "nodes.json"), "-", stdin=text(pod(memory=8192, core=1)))
    assert found["unplaced"][0]["message"].endswith(f"n1 takes no soft slices: {why}")


def test_hard_slices_are_told_in_ai_cores_and_whole_cards_by_that_name(tmp_path: Path) -> None:
    (tmp_path / "nodes.yaml").write_bytes(text({"nodes": [{"name": "h", "chip": "Ascend910B3", "cards": 2}]}))
    pods = text(pod("part", memory=16384), pod("whole", memory=65536))
    table = run("--nodes", str(tmp_path / "nodes.yaml"), "-", stdin=pods).out
    assert "CORE %" not in table
    assert re.search(r"^h +0 +Ascend910B3 +hard +16384 / 65536 +5 / 20 +1 / 4$", table, re.MULTILINE)
    assert re.search(r"^default/whole +app +h +1 +h-1 +65536 +whole card$", table, re.MULTILINE)


def test_a_device_config_in_its_config_map(tmp_path: Path) -> None:
    names = {"commonWord": "Mine", "chipName": "m", "resourceName": "huawei.com/Mine"}
    chips = {"vnpus": [{**names, "memoryAllocatable": 1000, "memoryCapacity": 1000}]}
    file = tmp_path / "chips.yaml"
    for data, words in (
        ({"device-config.yaml": yaml.safe_dump(chips)}, None),
        ({}, r"document 1: data\[device-config.yaml\]: absent: the device config is expected there"),
        ({"device-config.yaml": "a: [\n"}, r"data\[device-config.yaml\]: .*line 2"),
        ({"device-config.yaml": "a: 1\n---\nb: 2\n"}, r"data\[device-config.yaml\]: .*2 documents"),
        ([], "document 1: data: "),
    ):
        file.write_bytes(text({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}))
        found = run("--card", "Mine", "--slice", "100", "--device-config", str(file))
        assert found.code == (0 if words is None else 2)
        assert re.search(words or "", found.err)
        assert found.err.count("\n") == (0 if words is None else 1)


def test_settings_that_surprise_are_warned_of(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text("schedulerName: ours\n")
    found = plan("--card", "Ascend910B3", "--slice", "8192", "--config", str(tmp_path / "settings.yaml"))
    assert any('schedulerName: "ours" is written into pods, but it is not among' in one for one in found["warnings"])


@pytest.mark.parametrize(("name", "hint"), [("slice-9", "slice-"), ("default/slice-9", "default/slice-")])
def test_a_pod_that_is_not_there_cannot_be_explained(name: str, hint: str) -> None:
    found = run("--card", "Ascend910B3", "--slice", "8192x2", "--explain", name)
    assert (found.code, found.out) == (2, "")
    assert f"did you mean {hint}" in found.err


def test_odd_characters_do_no_harm() -> None:
    name = "\x1b[31m\N{SNOWMAN}\n"
    stdin = json.dumps(pod(name, memory=8192, core=1)).encode()
    found = run("--card", "Ascend910B3", "-", "--explain", name, stdin=stdin)
    assert found.code == 0
    assert "\x1b" not in found.out
    as_yaml = run("--card", "Ascend910B3", "-", "-o", "yaml", stdin=stdin)
    for form in (plan("--card", "Ascend910B3", "-", stdin=stdin), yaml.safe_load(as_yaml.out)):
        assert form["placements"][0]["pod"] == f"default/{name}"
    half = run("--card", "Ascend910B3", "-", stdin=json.dumps(pod("\ud800", memory=8192, core=1)).encode())
    assert (half.code, half.out) == (2, "")


def test_help_exits_0(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    assert "exit status: 0 all pods are placed" in capsys.readouterr().out


def process(*arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, *arguments], cwd=ROOT, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, **options
    )


@pytest.mark.parametrize(("slices", "code"), [("8192x1", 0), ("65536,100x2", 1), ("8192x0", 2)])
def test_the_exit_code_reaches_the_shell(slices: str, code: int) -> None:
    child = process("-m", "vnpu.fit", "--card", "Ascend910B3", "--slice", slices, stdout=subprocess.PIPE)
    out, err = child.communicate(timeout=30)
    assert child.returncode == code
    assert (bool(out), bool(err)) == (code != 2, code == 2)


@pytest.mark.parametrize("output", ["table", "json"])
def test_json_and_the_command_line_need_the_standard_library_only(output: str) -> None:
    program = (
        "import sys\n"
        "sys.modules['yaml'] = sys.modules['rich'] = None\n"
        "from vnpu.fit.__main__ import main\n"
        "code = main(sys.argv[1:])\n"
        "known = set(sys.stdlib_module_names) | {'vnpu', 'yaml', 'rich'}\n"
        "loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "print(*sorted(name for name in loaded - known if not name.startswith('_')), file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    nodes = str(FOLDER / "nodes.json")
    child = process("-c", program, "--nodes", nodes, "--slice", "8192", "-o", output, stdout=subprocess.PIPE)
    out, err = child.communicate(timeout=30)
    assert (child.returncode, err) == (0, b"\n")
    assert out


def test_a_reader_that_goes_away_is_no_fault() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    child = process("-m", "vnpu.fit", "--card", "Ascend910B3x64", "--slice", "8192x9", "-o", "json", stdout=writing)
    os.close(writing)
    _, err = child.communicate(timeout=30)
    assert (child.returncode, err) == (0, b"")


@pytest.mark.parametrize("output", [">/dev/full", ">&-"])
@pytest.mark.parametrize("form", ["table", "json"])
def test_an_output_that_takes_nothing_is_one_line(form: str, output: str) -> None:
    planner = '"$0" -m vnpu.fit --card Ascend910B3x64 --slice 8192x9 -o'
    child = subprocess.run(
        ["sh", "-c", f"{planner} {form} {output}", sys.executable],
        cwd=ROOT,
        capture_output=True,
        check=False,
        text=True,
    )
    assert child.returncode == 2
    assert child.stderr.startswith("error: standard output")
    assert child.stderr.count("\n") == 1


def test_a_terminal_without_unicode_gets_question_marks(tmp_path: Path) -> None:
    (tmp_path / "pod.json").write_text(json.dumps(pod("\N{SNOWMAN}", memory=8192, core=1)))
    command = ("-m", "vnpu.fit", "--card", "Ascend910B3", str(tmp_path / "pod.json"))
    child = process(*command, stdout=subprocess.PIPE, env={"PYTHONIOENCODING": "ascii", "PATH": os.environ["PATH"]})
    out, err = child.communicate(timeout=30)
    assert (child.returncode, err) == (0, b"")
    assert b"default/?" in out
