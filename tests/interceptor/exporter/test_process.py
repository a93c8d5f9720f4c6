"""The exporter as a process of its own: real sockets, a real limiter, and a simulated card that counts by itself."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import requests

from interceptor.exporter import __main__ as command_line
from tests.support import exporter_process, native
from tests.support.api_stand_in import ApiStandIn
from tests.support.containers import PATIENCE_S, Container, eventually
from tests.support.exporter import RUNTIME_ID
from tests.support.mirrors import MIB, mirror_path
from tests.support.npu_client import Client, Machine, client
from tests.support.objects import CHIP, pod
from vnpu import kube, names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.exporter_process import ExporterProcess

USED = ("hami_vgpu_memory_used_bytes", "vnpu_memory_driver_bytes", "hami_host_gpu_memory_used_bytes")


@pytest.fixture
def api() -> Iterator[ApiStandIn]:
    with ApiStandIn() as api:
        yield api


@contextmanager
def running(folder: Path, api: ApiStandIn, **env: str) -> Iterator[ExporterProcess]:
    with exporter_process.running(folder, api, root=folder, node="n1", **env) as exporter:
        yield exporter


def tenant(uuid: str, **metadata: Any) -> dict[str, Any]:
    made = pod(text=f"{uuid},{CHIP},1024,20:;")
    made["metadata"] |= metadata
    made["status"]["containerStatuses"] = [{"name": "app", "containerID": f"containerd://{RUNTIME_ID}"}]
    return made


def program_share(exporter: ExporterProcess, program: Client) -> float:
    """The share that is told while the program keeps the card busy for another moment."""
    program.kernel(us=10_000)
    assert program.launch() == 0
    assert program.call("aclrtSynchronizeDevice") == 0
    return exporter.value("vnpu_core_received_ratio") or 0.0


def show(host: Path, pid: int, uid: str) -> None:
    """A process of this machine, as a process of the pod's container in the host's /proc."""
    folder = host / "proc" / str(pid)
    folder.mkdir(parents=True)
    (folder / "cgroup").write_text(f"0::/kubepods.slice/kubepods-pod{uid.replace('-', '_')}.slice/{RUNTIME_ID}\n")
    (folder / "maps").symlink_to(f"/proc/{pid}/maps")


def test_use_and_share_are_those_that_the_card_counts_itself(tmp_path: Path, api: ApiStandIn) -> None:
    with tempfile.TemporaryDirectory(prefix="npu_sim.", dir="/dev/shm") as folder:
        machine = Machine(Path(folder) / "state")
        machine.tool("create", f"chip={CHIP}", "memory_mib=65536")
        libraries = {"NPU_SIM_STATE": str(machine.state), "LD_LIBRARY_PATH": str(native.simulator("nested"))}
        with running(tmp_path, api, **libraries) as exporter:
            assert eventually(lambda: exporter.value("vnpu_host_healthy") == 1)
            ((labels, _),) = exporter.samples("vnpu_host_healthy")
            uuid = labels["device_uuid"]
            uid = api.put(kube.PODS, tenant(uuid))["metadata"]["uid"]
            for name in ("own", "shared"):
                (tmp_path / name).mkdir()
            mirror = mirror_path(tmp_path, uid, "app")
            mirror.parent.mkdir(parents=True)
            container = Container(tmp_path / "own", tmp_path / "shared", extra={names.ENV_LOCAL_SHM: str(mirror)})
            with container.running(), client(container, machine) as program:
                show(tmp_path, program.process.pid, uid)
                assert program.call("aclrtMalloc", "&p", 100 * MIB, 0) == 0
                (card,) = machine.status()["cards"]
                counted = card["used"]

                assert eventually(lambda: {exporter.value(name) for name in USED} == {counted}), exporter.text()
                assert exporter.value("hami_vgpu_memory_limit_bytes", device_uuid=uuid) == 1024 * MIB
                assert exporter.value("vnpu_memory_enforced_bytes", device_uuid=uuid) == 1024 * MIB
                assert exporter.value("vnpu_core_entitled_ratio", device_uuid=uuid) == pytest.approx(0.2)
                assert exporter.value("vnpu_processes", pod="app") == 1
                assert exporter.value("vnpu_processes_unmanaged", pod="app") == 0
                assert eventually(lambda: 0 < program_share(exporter, program) <= 1)


def test_pods_that_come_and_go_are_followed(tmp_path: Path, api: ApiStandIn) -> None:
    with running(tmp_path, api) as exporter:
        api.put(kube.PODS, tenant("U0"))
        elsewhere = tenant("U1", name="other")
        elsewhere["spec"]["nodeName"] = "n2"
        api.put(kube.PODS, elsewhere)
        assert eventually(lambda: exporter.value("vnpu_limiter_up", pod="app") == 0)
        api.remove(kube.PODS, "app", "team")
        assert eventually(lambda: exporter.value("vnpu_limiter_up") is None)


def test_what_was_known_stays_while_the_api_server_is_away(tmp_path: Path, api: ApiStandIn) -> None:
    api.put(kube.PODS, tenant("U0"))
    with running(tmp_path, api) as exporter:
        assert eventually(lambda: exporter.value("vnpu_limiter_up", pod="app") == 0)
        api.away()
        assert exporter.value("vnpu_limiter_up", pod="app") == 0
        assert eventually(lambda: exporter.value("vnpu_exporter_source_up", source="pods") == 0)
        assert exporter.value("vnpu_limiter_up", pod="app") == 0
        api.back()


def test_silent_clients_do_not_stop_a_scrape(tmp_path: Path, api: ApiStandIn) -> None:
    """Those who came first hold their places for some seconds; afterwards there is room again."""
    with running(tmp_path, api) as exporter:
        silent = [socket.create_connection(("127.0.0.1", exporter.port)) for _ in range(50)]

        def answered() -> bool:
            try:
                return bool(exporter.text())
            except requests.ConnectionError:
                return False

        assert eventually(answered, within_s=2 * PATIENCE_S)
        for connection in silent:
            connection.close()


def test_a_signal_ends_it(tmp_path: Path, api: ApiStandIn) -> None:
    with running(tmp_path, api) as exporter:
        exporter.process.send_signal(signal.SIGTERM)
        assert exporter.process.wait(PATIENCE_S) == 0


def test_a_port_that_is_taken_is_told_in_a_line(tmp_path: Path, api: ApiStandIn) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "interceptor.exporter", "--node=n1", "--host=127.0.0.1", f"--port={port}"]
        result = subprocess.run(
            [*command, f"--kubeconfig={api.kubeconfig(tmp_path)}"], capture_output=True, text=True, check=False
        )
    assert result.returncode == 2
    assert result.stderr == f"exporter: 127.0.0.1:{port}: Address already in use\n"


@pytest.mark.parametrize(
    ("argument", "reason"),
    [
        ("--port=65536", "from 0 to 65535"),
        ("--port=-1", "from 0 to 65535"),
        ("--interval=0", "from 0.1 to 3600"),
        ("--interval=nan", "from 0.1 to 3600"),
    ],
)
def test_numbers_out_of_range_are_told_in_a_line(
    argument: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line.main(["--node=n1", argument]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert reason in line


def test_the_node_must_be_told() -> None:
    env = {name: value for name, value in os.environ.items() if name != "NODE_NAME"}
    command = [sys.executable, "-m", "interceptor.exporter"]
    result = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert "--node is needed, or NODE_NAME in the environment" in result.stderr
