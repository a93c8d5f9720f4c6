"""``python -m webhook preview``, from files to what is printed."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.support.reviews import EXPECTED, NAMES, recorded
from vnpu.admission.settings import Settings
from vnpu.chips import DEFAULT_CHIPS
from webhook.__main__ import main
from webhook.preview import preview
from webhook.review import Context

if TYPE_CHECKING:
    from pathlib import Path

CONTEXT = Context(Settings(), DEFAULT_CHIPS)


def pod(name: str = "train", **limits: str) -> dict[str, Any]:
    resources = {"limits": {f"huawei.com/Ascend910B3{key}": value for key, value in limits.items()}}
    container = {"name": "npu", "image": "i", "resources": resources}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}


SOFT = pod(**{"-memory": "8192", "-core": "20"})
REFUSED = pod("greedy", **{"-memory": "16Gi"})
PLAIN = pod("plain")
DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "infer", "namespace": "team"}}


def shown(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, *documents: Any, options: tuple[str, ...] = ()
) -> tuple[int, str, str]:
    file = tmp_path / "manifest.yaml"
    file.write_text(yaml.safe_dump_all(documents))
    code = main(["preview", *options, str(file)])
    captured = capsys.readouterr()
    return code, captured.out.replace(str(file), "FILE"), captured.err


class TestOutput:
    def test_a_completed_pod(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        code, out, err = shown(capsys, tmp_path, SOFT)
        assert (code, err) == (0, "")
        assert out.startswith("FILE, document 1: Pod train: allowed, completed\n")
        assert "--- Pod train, as written\n+++ Pod train, as admitted\n" in out
        for line in (
            "+  annotations:\n+    huawei.com/vnpu-mode: hami-core\n",
            "+        huawei.com/Ascend910B3: '1'\n",
            "+    - name: NPU_MEM_QUOTA\n+      value: '8192'\n",
            "+          - /usr/local/hami-vnpu-core/limiter\n+          - start\n",
        ):
            assert line in out
        assert not [line for line in out.splitlines() if line.startswith("-") and not line.startswith("--- ")]

    def test_a_refused_pod(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        code, out, err = shown(capsys, tmp_path, REFUSED)
        assert (code, err) == (1, "")
        assert out.startswith("FILE, document 1: Pod greedy: refused\n  refused: spec.containers[0].resources.limits[")
        assert "write 16384" in out
        assert "---" not in out

    def test_one_refused_among_others(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        code, out, _ = shown(capsys, tmp_path, SOFT, REFUSED, PLAIN)
        assert code == 1
        verdicts = [line.partition(", document ")[2] for line in out.splitlines() if line.startswith("FILE")]
        assert verdicts == [
            "1: Pod train: allowed, completed",
            "2: Pod greedy: refused",
            "3: Pod plain: allowed as it is",
        ]

    def test_warnings(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        code, out, _ = shown(capsys, tmp_path, pod(**{"-memory": "10000"}))
        assert code == 0
        assert "  warning: spec.containers[0].resources.limits[huawei.com/Ascend910B3-memory]: 10000 is rounded" in out

    def test_the_template_of_a_controller(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        code, out, _ = shown(capsys, tmp_path, DEPLOYMENT | {"spec": {"template": {"spec": SOFT["spec"]}}})
        assert code == 0
        assert out.startswith("FILE, document 1: Deployment team/infer: allowed, completed\n")
        assert "--- spec.template, as written\n" in out

    def test_a_template_is_refused_whatever_the_setting_says(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        code, out, _ = shown(capsys, tmp_path, DEPLOYMENT | {"spec": {"template": {"spec": REFUSED["spec"]}}})
        assert code == 1
        assert ": its pods would be refused\n  refused: spec.template.spec.containers[0]." in out

    def test_each_task_of_a_volcano_job(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        tasks = [{"name": name, "template": {"spec": SOFT["spec"]}} for name in ("master", "worker")]
        job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "gang"}}
        code, out, _ = shown(capsys, tmp_path, job | {"spec": {"tasks": tasks}})
        assert code == 0
        assert "--- spec.tasks[0].template, as Volcano fills it in\n" in out
        assert "--- spec.tasks[1].template, as Volcano fills it in\n" in out
        assert "Volcano 1.16" in out, "the pods are scheduled by Volcano, though no template says so"

    def test_a_cron_job_of_volcano(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        job = {"spec": {"tasks": [{"name": "worker", "template": {"spec": SOFT["spec"]}}]}}
        cron = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "CronJob", "metadata": {"name": "nightly"}}
        code, out, _ = shown(capsys, tmp_path, cron | {"spec": {"schedule": "@daily", "jobTemplate": job}})
        assert code == 0
        assert "--- spec.jobTemplate.spec.tasks[0].template, as Volcano fills it in\n" in out
        assert "Volcano 1.16" in out

    @pytest.mark.parametrize("kind", ["ReplicationController", "PodTemplate"])
    def test_kinds_that_few_people_write(self, kind: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        def owner(pod: dict[str, Any]) -> dict[str, Any]:
            template = {"template": {"spec": pod["spec"]}}
            place = template if kind == "PodTemplate" else {"spec": template}
            return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "w"}, **place}

        code, out, _ = shown(capsys, tmp_path, owner(SOFT), owner(REFUSED))
        assert code == 1
        assert f"{kind} w: allowed, completed\n" in out
        assert f"{kind} w: its pods would be refused\n" in out

    def test_the_setting_scheduler_name_leaves_a_volcano_job_alone(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        settings = tmp_path / "settings.yaml"
        settings.write_text("schedulerName: ours\n")
        tasks = [{"name": "worker", "template": {"spec": SOFT["spec"]}}]
        job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "spec": {"tasks": tasks}}
        _, out, _ = shown(capsys, tmp_path, job, options=("--config", str(settings)))
        assert "ours" not in out

    def test_what_makes_no_pods(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        config_map = {"kind": "ConfigMap", "metadata": {"name": "c"}}
        code, out, err = shown(capsys, tmp_path, PLAIN, config_map)
        assert (code, err) == (0, "")
        not_judged = "ConfigMap c: not judged: it holds no pod template at a place that is known"
        assert out.endswith(f"FILE, document 2: {not_judged}\n\n")

    @pytest.mark.parametrize(
        ("document", "hint"),
        [
            (None, None),
            ({"kind": "List", "items": []}, None),
            ({"kind": "ConfigMap", "metadata": {"name": "c"}}, ""),
            ({"kind": "Deployment", "metadata": {"name": "c"}}, ""),
            ({"kind": "Deploymnet", "metadata": {"name": "c"}}, "; did you mean Deployment?"),
        ],
    )
    def test_nothing_to_judge_is_a_fault(
        self, document: Any, hint: str | None, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        code, out, err = shown(capsys, tmp_path, document)
        assert (code, err) == (2, "webhook: nothing to judge: no manifest makes pods\n")
        assert out == "" if hint is None else out.endswith(f"at a place that is known{hint}\n\n")

    def test_a_slip_in_the_name_of_a_chip_is_told_though_a_cluster_lets_it_pass(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        slip = yaml.safe_load(yaml.safe_dump(pod(**{"": "1"})).replace("Ascend910B3", "Ascend910B"))
        code, out, _ = shown(capsys, tmp_path, slip)
        assert code == 0
        assert ": allowed as it is\n  warning: spec.containers[0].resources.limits[huawei.com/Ascend910B]: " in out
        assert "and leaves it to another device plugin; did you mean huawei.com/Ascend910B" in out

    def test_a_name_that_would_fake_a_line(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        code, out, _ = shown(capsys, tmp_path, pod("x\nFILE, document 2: Pod y: allowed"))
        assert code == 0
        assert out.count("\n") == 2

    def test_nothing_that_a_manifest_says_reaches_the_terminal_as_it_is(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        hostile = "x\x1b[2J\N{RIGHT-TO-LEFT OVERRIDE}\N{LINE SEPARATOR}y"
        named = pod(hostile, **{"-memory": "10000"})
        named["metadata"] |= {"namespace": hostile, "labels": {hostile: hostile}}
        refused = pod("refused", **{"-memory": hostile})
        refused["spec"]["containers"][0]["name"] = hostile
        other = {"kind": hostile, "metadata": {"name": hostile}}
        (tmp_path / f"{hostile}.yaml").write_text(yaml.safe_dump_all([named, refused, other]))
        assert main(["preview", str(tmp_path / f"{hostile}.yaml")]) == 1
        out = capsys.readouterr().out
        assert "".join(out.split("\n")).isprintable()
        assert out.count("\N{REPLACEMENT CHARACTER}[2J") > 6


class TestInput:
    def test_standard_input(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(yaml.safe_dump(SOFT).encode())))
        assert main(["preview", "-"]) == 0
        assert capsys.readouterr().out.startswith("standard input, document 1: Pod train: allowed, completed\n")

    def test_a_list_of_kubectl(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        code, out, _ = shown(capsys, tmp_path, {"kind": "List", "items": [SOFT, REFUSED]})
        assert code == 1
        assert "FILE, document 1, items[0]: Pod train: allowed, completed\n" in out
        assert "FILE, document 1, items[1]: Pod greedy: refused\n" in out

    @pytest.mark.parametrize("content", ["a: [", "just a text", "[1, 2]", "{a: 1}", "kind: 7", "\x00"])
    def test_what_is_no_manifest(self, content: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        file = tmp_path / "manifest.yaml"
        file.write_text(content)
        assert main(["preview", str(file)]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith(f"webhook: {file}, document 1: ")
        assert captured.err.count("\n") == 1

    def test_what_is_no_manifest_hides_none_of_the_others(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        code, out, err = shown(capsys, tmp_path, SOFT, {"nodes": []}, "text", REFUSED)
        assert code == 2
        assert "document 1: Pod train: allowed, completed" in out
        assert "document 4: Pod greedy: refused" in out
        places = [line.partition(", ")[2].partition(":")[0] for line in err.splitlines()]
        assert places == ["document 2", "document 3"]

    def test_a_file_that_cannot_be_read_hides_none_of_the_others(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        for name, content in (("broken", "kind: Pod\n---\n{"), ("good", yaml.safe_dump(SOFT))):
            (tmp_path / name).write_text(content)
        code = main(["preview", *(str(tmp_path / name) for name in ("missing", "broken", "good"))])
        captured = capsys.readouterr()
        assert code == 2
        assert [line.partition(":")[0] for line in captured.out.splitlines() if line.startswith(str(tmp_path))] == [
            f"{tmp_path / 'broken'}, document 1",
            f"{tmp_path / 'good'}, document 1",
        ]
        assert captured.err.count("\n") == 2

    def test_settings_that_surprise_are_told(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        (tmp_path / "settings").write_text("schedulerName: ours\n")
        code, _, err = shown(capsys, tmp_path, SOFT, options=("--config", str(tmp_path / "settings")))
        assert code == 0
        assert 'settings, document 1: schedulerName: "ours" is written into pods, but it is not among' in err

    def test_a_reader_that_leaves_does_not_change_the_exit_code(self, tmp_path: Path) -> None:
        file = tmp_path / "manifest.yaml"
        file.write_text(yaml.safe_dump_all([SOFT, REFUSED]))
        command = [sys.executable, "-m", "webhook", "preview", str(file)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            assert process.stderr.read() == b""
            assert process.wait() == 1

    @pytest.mark.parametrize("output", [">/dev/full", ">&-"])
    def test_an_output_that_takes_nothing_is_one_line(self, output: str, tmp_path: Path) -> None:
        file = tmp_path / "manifest.yaml"
        file.write_text(yaml.safe_dump_all([SOFT, REFUSED]))
        command = ["sh", "-c", f'"$0" -m webhook preview "$1" {output}', sys.executable, str(file)]
        done = subprocess.run(command, capture_output=True, check=False, text=True)
        assert done.returncode == 2
        assert done.stderr.startswith("webhook: standard output")
        assert done.stderr.count("\n") == 1

    @pytest.mark.parametrize("digits", ["9" * 5000, "0x" + "F" * 5000, "0o" + "7" * 9999, "1e400"])
    @pytest.mark.parametrize("field", ["spec: {priority: %s}", "metadata: {name: n, generation: %s}", "spec: {%s: 1}"])
    def test_numbers_beyond_all_bounds(
        self, field: str, digits: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        file = tmp_path / "manifest.yaml"
        file.write_text(f"kind: Pod\n{field % digits}\n")
        code = main(["preview", str(file)])
        captured = capsys.readouterr()
        assert (code, captured.err.count("\n")) in ((0, 0), (2, 1))

    def test_a_terminal_that_shows_less(self, tmp_path: Path) -> None:
        file = tmp_path / "manifest.yaml"
        file.write_text(yaml.safe_dump(pod("päd", **{"-memory": "10000"}), allow_unicode=True))
        command = [sys.executable, "-m", "webhook", "preview", str(file)]
        environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
        done = subprocess.run(command, capture_output=True, check=True, env=environment)
        assert b"Pod p?d: allowed, completed" in done.stdout

    def test_a_file_that_is_not_there(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        assert main(["preview", str(tmp_path / "missing")]) == 2
        assert "missing" in capsys.readouterr().err

    @pytest.mark.parametrize("place", ["before the command", "behind it"])
    def test_settings_and_chips(self, place: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        settings, chips, manifest = (tmp_path / name for name in ("settings", "chips", "manifest"))
        settings.write_text("schedulerName: ours\n")
        chips.write_text(
            "vnpus: {configs: [{commonWord: Ascend910B3, chipName: 910B3, resourceName: huawei.com/Ascend910B3,"
            " memoryAllocatable: 9000, memoryCapacity: 9000, spare: 1}]}\n"
        )
        manifest.write_text(yaml.safe_dump_all([SOFT, pod(**{"-memory": "9001", "-core": "1"})]))
        options = ["--config", str(settings), "--device-config", str(chips)]
        before, behind = (options, []) if place == "before the command" else ([], options)
        assert main([*before, "preview", *behind, str(manifest)]) == 1
        captured = capsys.readouterr()
        assert "+  schedulerName: ours\n" in captured.out
        assert "from 1 to 9000 MiB is allowed" in captured.out
        assert "spare: unknown key" in captured.err


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("mutate-")])
def test_recorded_pods_meet_the_same_answer_as_in_a_cluster(name: str) -> None:
    manifest = recorded(name)["request"]["object"]
    assert (not preview(manifest, CONTEXT).refusals) == EXPECTED[name]["allowed"]
