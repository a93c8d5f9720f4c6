"""What a replica does when the API server fails, and what it says; against the stand-in alone."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from certs import keep
from certs.__main__ import main
from certs.folder import stored
from certs.keep import Log, Replica
from certs.publish import Place
from certs.rotation import Step
from tests.support.api_stand_in import ApiStandIn, Fault
from tests.support.certs_process import keeping, wait_for
from tests.support.configurations import configured
from vnpu.kube import MUTATING, SECRETS
from vnpu.kube import cluster as cluster_module

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from vnpu.kube import Cluster

PLACE = Place("vnpu", "webhook", "certs", ("vnpu",))
ARGUMENTS = [
    *("--namespace", PLACE.namespace, "--service", PLACE.service, "--secret", PLACE.secret),
    *("--webhook-configurations", *PLACE.configurations),
]


@pytest.fixture
def api() -> Iterator[ApiStandIn]:
    with configured() as server:
        yield server


@pytest.fixture
def cluster(api: ApiStandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.setattr(cluster_module, "sleep", lambda _: None)
    made = api.cluster(tmp_path)
    yield made
    made.close()


@pytest.fixture
def replica(cluster: Cluster, tmp_path: Path) -> Replica:
    return started(cluster, tmp_path / "folder")


def started(cluster: Cluster, folder: Path) -> Replica:
    made = Replica(cluster, PLACE, folder, Log(), propagation=timedelta(0))
    made.start()
    return made


def settle(replica: Replica) -> None:
    for _ in range(20):
        if replica.turn()[0] is Step.SETTLED:
            return
    pytest.fail("does not come to rest")


def said(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


class TestFailures:
    @pytest.mark.parametrize("path", ["/secrets/certs$", "/secrets$"])
    def test_forbidden_secrets_are_told_once_and_asked_for_slowly(
        self, api: ApiStandIn, replica: Replica, capsys: pytest.CaptureFixture[str], path: str
    ) -> None:
        fault = api.fail(Fault("", path, status=403, reason="Forbidden", times=-1))
        assert [replica.turn() for _ in range(3)] == [(None, 30.0)] * 3
        (line,) = said(capsys)
        assert line["level"] == "error"
        assert line["reason"] == "injected: Forbidden (403 Forbidden)"
        assert line["serves"] == "nothing is served yet"
        fault.times = 0
        settle(replica)

    def test_forbidden_configurations_do_not_keep_it_from_serving(
        self, api: ApiStandIn, replica: Replica, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        fault = api.fail(Fault("GET", "webhookconfigurations", status=403, reason="Forbidden", times=-1))
        assert replica.turn()[0] is Step.FOUND
        assert [replica.turn() for _ in range(3)] == [(Step.STUCK, 30.0)] * 3
        assert stored(tmp_path / "folder")[0] is not None
        assert [line["level"] for line in said(capsys)] == ["info", "info", "error"]
        fault.times = 0
        settle(replica)

    def test_a_forbidden_patch_is_told(
        self, api: ApiStandIn, replica: Replica, capsys: pytest.CaptureFixture[str]
    ) -> None:
        api.fail(Fault("PATCH", status=403, reason="Forbidden", times=-1))
        assert replica.turn()[0] is Step.FOUND
        assert replica.turn() == (None, 30.0)
        assert said(capsys)[-1]["serves"] == "nothing is served yet"

    def test_a_server_that_is_away_at_the_start_is_waited_for(
        self, api: ApiStandIn, replica: Replica, capsys: pytest.CaptureFixture[str]
    ) -> None:
        api.away()
        pauses = [replica.turn()[1] for _ in range(8)]
        assert max(pauses) <= 20
        assert pauses[-1] > pauses[0]
        assert said(capsys)[0]["serves"] == "nothing is served yet"
        api.back()
        settle(replica)
        assert "the certificates are kept again" in {line["message"] for line in said(capsys)}

    def test_what_was_served_goes_on_while_the_server_is_away(
        self, api: ApiStandIn, replica: Replica, tmp_path: Path
    ) -> None:
        settle(replica)
        before = stored(tmp_path / "folder")
        api.away()
        assert replica.turn()[0] is None
        assert stored(tmp_path / "folder") == before
        api.back()
        settle(replica)
        assert stored(tmp_path / "folder") == before

    @pytest.mark.parametrize("cut", ["before", "after", "half"])
    @pytest.mark.parametrize("method", ["POST", "PATCH", "PUT"])
    def test_a_write_of_unknown_outcome_is_looked_at(
        self, api: ApiStandIn, replica: Replica, method: str, cut: str
    ) -> None:
        api.fail(Fault(method, cut=cut))
        settle(replica)
        assert len(api.objects(SECRETS)) == 1
        assert api.objects(MUTATING)[0]["webhooks"][0]["clientConfig"]["caBundle"]

    def test_who_is_slower_takes_what_the_faster_made(
        self, api: ApiStandIn, replica: Replica, cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        other = started(cluster, tmp_path / "other")
        api.fail(Fault("POST", act=other.turn))
        step, pause_s = replica.turn()
        assert step is None
        assert pause_s < 1
        settle(other)
        settle(replica)
        assert stored(tmp_path / "folder") == stored(tmp_path / "other")
        assert [line["level"] for line in said(capsys)].count("warning") == 0, "one race is nothing to speak of"

    def test_a_configuration_that_changes_in_between_is_patched_as_it_is_then(
        self, api: ApiStandIn, replica: Replica
    ) -> None:
        assert replica.turn()[0] is Step.FOUND
        webhooks = [{"name": "new", "clientConfig": {}}, {"name": "w", "clientConfig": {}}]
        theirs = {"metadata": {"name": "vnpu"}, "webhooks": webhooks}
        api.fail(Fault("PATCH", act=lambda: api.put(MUTATING, theirs)))
        assert replica.turn()[0] is None
        settle(replica)
        (configuration,) = api.objects(MUTATING)
        assert [one["name"] for one in configuration["webhooks"]] == ["new", "w"]
        assert all(one["clientConfig"]["caBundle"] for one in configuration["webhooks"])

    def test_a_bundle_that_somebody_keeps_emptying_is_filled_without_haste(
        self, api: ApiStandIn, replica: Replica, capsys: pytest.CaptureFixture[str]
    ) -> None:
        settle(replica)
        said(capsys)
        pauses = []
        for _ in range(5):
            api.put(MUTATING, {"metadata": {"name": "vnpu"}, "webhooks": [{"name": "w", "clientConfig": {}}]})
            step, pause_s = replica.turn()
            assert step is Step.PUBLISH
            pauses.append(pause_s)
        assert pauses[0] == 0
        assert all(pause_s > 2 for pause_s in pauses[1:])
        assert len(said(capsys)) == 1, "once in ten minutes is enough"

    def test_a_folder_that_cannot_be_written_is_told(
        self, cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "file").write_text("")
        one = started(cluster, tmp_path / "file" / "folder")
        assert [one.turn()[0] for _ in range(3)] == [Step.FOUND, Step.PUBLISH, None]
        assert "Not a directory" in said(capsys)[-1]["reason"]


class TestProcess:
    def test_it_waits_for_the_server_and_survives_its_absence(self, api: ApiStandIn, tmp_path: Path) -> None:
        api.away()
        path = api.kubeconfig(tmp_path)
        with keeping([*ARGUMENTS, "--kubeconfig", str(path)], tmp_path / "folder") as keeper:
            line = keeper.wait_until_it_says("kept for now")
            assert line["serves"] == "nothing is served yet"
            api.back()
            served = wait_for(lambda: keeper.served, "serves")
            api.away()
            keeper.wait_until_it_says("what was served goes on being served")
            assert keeper.served == served

    def test_it_ends_with_the_process_that_started_it(self, api: ApiStandIn, tmp_path: Path) -> None:
        command = ["keep", *ARGUMENTS, "--kubeconfig", str(api.kubeconfig(tmp_path)), "--folder", str(tmp_path / "f")]
        program = (
            "import subprocess, sys, time\n"
            "child = subprocess.Popen([sys.executable, '-m', 'certs', *sys.argv[1:]], stdout=subprocess.DEVNULL)\n"
            "print(child.pid, flush=True)\n"
            "time.sleep(600)\n"
        )
        parent = subprocess.Popen([sys.executable, "-c", program, *command], stdout=subprocess.PIPE, text=True)
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        wait_for(lambda: stored(tmp_path / "f")[0], "serves")
        parent.kill()
        parent.wait()
        parent.stdout.close()
        wait_for(lambda: not alive(child), "the child has ended")


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:  # noqa: PTH123 - of proc
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class TestLog:
    def test_what_is_said_again_is_written_again_after_a_while(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        now = 0.0
        monkeypatch.setattr(keep.time, "monotonic", lambda: now)
        log = Log()
        for now in (0.0, 10.0, 599.0, 601.0):  # noqa: B007 - the clock reads it
            log.say_once("info", "same")
            log.say_once("info", "other", number=1)
        assert [line["message"] for line in said(capsys)] == ["same", "other"] * 2


class TestUsage:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ([], "the following arguments are required: COMMAND"),
            (["keep", *ARGUMENTS], "--folder"),
            (["check", *ARGUMENTS, "--connect", "x"], "x: HOST:PORT is expected"),
            (["check", *ARGUMENTS, "--connect", "x:99999"], "x:99999: HOST:PORT is expected"),
            (["check", "--namespace", "x"], "--service, --secret, --webhook-configurations"),
            (["check", *ARGUMENTS, "--kubeconfig", "/nowhere"], "/nowhere"),
        ],
    )
    def test_is_one_line(self, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(arguments) == 2
        error = capsys.readouterr().err
        assert error.startswith("certs: ")
        assert message in error
        assert error.count("\n") == 1

    def test_libraries_are_loaded_when_they_are_needed(self) -> None:
        program = "import sys, certs.__main__; print('kubernetes' in sys.modules)"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert done.stdout == "False\n"
