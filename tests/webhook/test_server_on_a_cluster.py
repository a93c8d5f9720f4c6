"""``--certs self`` on a cluster: another process keeps the certificates, and the server serves what it finds."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from certs.authority import service_names
from tests.support.api_stand_in import ApiStandIn
from tests.support.configurations import configured
from tests.support.reviews import body_of
from tests.support.server import TIMEOUT_S, Server, running
from tests.support.traffic import Client, post, wait_until
from vnpu.kube import MUTATING

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = service_names("webhook", "vnpu")[2]
MESSAGE = post(body_of("mutate-create-pods-soft-910b3.json"))
OPTIONS = (
    *("--certs", "self", "--namespace", "vnpu", "--service", "webhook", "--secret", "certs"),
    *("--webhook-configurations", "vnpu"),
)


@pytest.fixture
def api() -> Iterator[ApiStandIn]:
    with configured() as server:
        yield server


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return tmp_path / "bundle.crt"


@pytest.fixture
def server(api: ApiStandIn, bundle: Path, tmp_path: Path) -> Iterator[Server]:
    environment = {"KUBECONFIG": str(api.kubeconfig(tmp_path))}
    with running(*OPTIONS, "--workers", "2", temporary=tmp_path, ca=bundle, environment=environment) as started:
        publish(api, bundle)
        yield started


def publish(api: ApiStandIn, bundle: Path) -> None:
    """What API servers trust, as a file."""

    def published() -> bool:
        configuration: Any = api.object(MUTATING, "vnpu")
        text = configuration["webhooks"][0]["clientConfig"].get("caBundle", "")
        bundle.write_bytes(base64.b64decode(text))
        return bool(text)

    wait_until(published, "the caBundle")


def keeper_of(server: Server) -> int:
    (found,) = set(server.children()) - set(server.workers())
    return found


def test_what_it_serves_is_what_api_servers_trust(server: Server) -> None:
    with Client(server.address, server.trust(), NAME) as client:
        assert client.call(MESSAGE)[0] == 200
    assert server.said("serves"), "the log of the other process is in that of the server"


def test_workers_know_nothing_of_keys_and_clusters(server: Server) -> None:
    for worker in server.workers():
        loaded = Path(f"/proc/{worker}/maps").read_text()
        assert "cryptography" not in loaded
    code = "import sys, webhook.server, webhook.app; print({'cryptography', 'kubernetes'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_the_other_process_is_started_again(server: Server) -> None:
    before = keeper_of(server)
    os.kill(before, signal.SIGKILL)
    wait_until(lambda: before not in server.children(), "its end")
    wait_until(lambda: bool(server.said("has ended")), "a line about it")
    wait_until(lambda: len(server.children()) == 3, "another one")
    with Client(server.address, server.trust(), NAME) as client:
        assert client.call(MESSAGE)[0] == 200


def test_nothing_is_left_behind(api: ApiStandIn, bundle: Path, tmp_path: Path) -> None:
    environment = {"KUBECONFIG": str(api.kubeconfig(tmp_path))}
    with running(*OPTIONS, temporary=tmp_path, ca=bundle, environment=environment) as server:
        keeper = keeper_of(server)
        (folder,) = tmp_path.glob("vnpu-webhook-*")
        assert (folder / "tls.key").exists()
        server.process.kill()
        server.process.wait(TIMEOUT_S)
        assert folder.exists(), "who is killed cannot clean up"
        wait_until(lambda: not Path(f"/proc/{keeper}").exists(), "the end of the other process")
    with running(temporary=tmp_path) as other:
        assert not folder.exists(), "the next one does"
        assert other.stop() == 0
    assert not list(tmp_path.glob("vnpu-webhook-*"))


def test_without_an_api_server_it_says_so_and_ends_when_it_is_told(tmp_path: Path) -> None:
    with ApiStandIn() as api:
        kubeconfig = api.kubeconfig(tmp_path)
    command = [sys.executable, "-m", "webhook", "--port", "0", *OPTIONS]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "KUBECONFIG": str(kubeconfig)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        assert any(b"no certificate yet" in line for line in process.stdout)
        process.terminate()
        assert process.wait(TIMEOUT_S) == 0
    assert not list(tmp_path.glob("vnpu-webhook-*"))
