"""Real processes and real sockets: the server as an API server meets it."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import requests
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from certs.authority import make_authority, make_serving, write_pair
from tests.support.reviews import EXPECTED, NAMES, body_of, endpoint_of
from tests.support.server import TIMEOUT_S, Server, refused, running
from webhook.wire import LARGEST_BODY

if TYPE_CHECKING:
    from collections.abc import Iterator

SOFT = body_of("mutate-create-pods-soft-910b3.json")
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(temporary=tmp_path_factory.mktemp("server")) as started:
        yield started


def head(length: object = len(SOFT), *further: str, path: str = "/mutate") -> bytes:
    lines = (f"POST {path} HTTP/1.1", "Host: webhook", "Content-Type: application/json", f"Content-Length: {length}")
    return "\r\n".join((*lines, *further, "", "")).encode()


def answered_uid(server: Server, uid: str) -> str:
    """The uid in the answer to a review with this uid, over a connection of its own."""
    review = json.loads(SOFT)
    review["request"]["uid"] = uid
    with server.session() as session:
        response = session.post(f"{server.url}/mutate", json=review, timeout=TIMEOUT_S)
    answered: str = response.json()["response"]["uid"]
    return answered


class TestReviews:
    def test_every_recorded_review_over_one_connection(self, server: Server) -> None:
        with server.session() as session:
            for name in NAMES:
                url = f"{server.url}/{endpoint_of(name).value}?timeout=3s"
                response = session.post(url, data=body_of(name), headers=JSON, timeout=TIMEOUT_S)
                assert response.status_code == 200
                assert response.json()["response"]["allowed"] is EXPECTED[name]["allowed"]

    def test_many_at_once_and_a_line_for_each(self, tmp_path: Path) -> None:
        uids = [f"uid-{number}" for number in range(64)]
        with running(temporary=tmp_path) as started, ThreadPoolExecutor(16) as pool:
            assert list(pool.map(partial(answered_uid, started), uids)) == uids
            assert started.stop() == 0
            assert sorted(line["uid"] for line in started.log if line["message"] == "review") == sorted(uids)

    def test_health_and_metrics(self, server: Server) -> None:
        with server.session() as session:
            session.post(f"{server.url}/mutate", data=SOFT, headers=JSON, timeout=TIMEOUT_S)
            assert session.get(f"{server.url}/healthz", timeout=TIMEOUT_S).text == "ok\n"
            assert session.get(f"{server.url}/readyz", timeout=TIMEOUT_S).text == "ok\n"
            metrics = session.get(f"{server.url}/metrics", timeout=TIMEOUT_S).text
        assert 'vnpu_webhook_reviews_total{decision="allowed",endpoint="mutate",reason="patched"}' in metrics


class TestTls:
    @pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
    def test_versions_that_are_served(self, server: Server, version: ssl.TLSVersion) -> None:
        context = ssl.create_default_context(cafile=server.ready["ca"])
        context.minimum_version = context.maximum_version = version
        with (
            socket.create_connection(server.address, TIMEOUT_S) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as connection,
        ):
            assert connection.version() == version.name.replace("_", ".")

    @pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
    def test_tls_1_1_is_not_served(self, server: Server) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.load_verify_locations(server.ready["ca"])
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
        with socket.create_connection(server.address, TIMEOUT_S) as plain, pytest.raises(ssl.SSLError):
            context.wrap_socket(plain, server_hostname="localhost")

    def test_plain_http_gets_nothing(self, server: Server) -> None:
        with server.session() as session, pytest.raises(requests.ConnectionError):
            session.get(server.url.replace("https:", "http:"), timeout=TIMEOUT_S)


class TestRefusedBodies:
    def test_a_body_that_is_too_large_is_answered_before_it_is_sent(self, server: Server) -> None:
        with server.connect() as connection:
            connection.send(head(LARGEST_BODY + 1))
            status, headers, body = connection.answer()
        assert (status, headers["connection"]) == (413, "close")
        assert body == b"at most 8388608 bytes are read\n"

    def test_a_client_that_sends_it_all_the_same_finds_the_answer(self, server: Server) -> None:
        with server.session() as session:
            body = SOFT.ljust(LARGEST_BODY + 1)
            for _ in range(3):
                response = session.post(f"{server.url}/mutate", data=body, headers=JSON, timeout=TIMEOUT_S)
                assert response.status_code == 413

    def test_the_largest_body_is_answered(self, server: Server) -> None:
        with server.session() as session:
            body = SOFT.ljust(LARGEST_BODY)
            response = session.post(f"{server.url}/mutate", data=body, headers=JSON, timeout=TIMEOUT_S)
        assert response.json()["response"]["allowed"] is True

    def test_chunked(self, server: Server) -> None:
        with server.session() as session:
            response = session.post(f"{server.url}/mutate", data=iter([SOFT]), headers=JSON, timeout=TIMEOUT_S)
        assert response.status_code == 411
        assert response.headers["Connection"] == "close"

    def test_a_chunk_that_is_none_brings_no_second_answer(self, server: Server) -> None:
        with server.connect() as connection:
            connection.send(b"POST /mutate HTTP/1.1\r\nHost: w\r\nTransfer-Encoding: chunked\r\n\r\nno chunk\r\n\r\n")
            assert connection.answer()[0] == 411
            assert connection.ended()

    def test_another_media_type_keeps_the_connection(self, server: Server) -> None:
        with server.connect() as connection:
            body = b"x" * 300_000
            connection.send(head(len(body)).replace(b"application/json", b"text/plain") + body)
            status, headers, _ = connection.answer()
            assert (status, headers["connection"]) == (415, "keep-alive")
            connection.send(head() + SOFT)
            assert connection.answer()[0] == 200

    def test_expect_continue(self, server: Server) -> None:
        with server.connect() as connection:
            connection.send(head(len(SOFT), "Expect: 100-continue"))
            assert connection.answer()[0] == 100
            connection.send(SOFT)
            assert connection.answer()[0] == 200

    def test_expect_continue_for_what_will_not_be_read(self, server: Server) -> None:
        with server.connect() as connection:
            connection.send(head(LARGEST_BODY + 1, "Expect: 100-continue"))
            assert connection.answer()[0] == 413

    @pytest.mark.parametrize(
        "request_bytes",
        [
            b"\x00\x01\x02\r\n\r\n",
            b"GET\r\n\r\n",
            b"GET / HTTP/1.1\r\nno header\r\n\r\n",
            head("-1"),
            head("x"),
            head(5, "Content-Length: 6"),
            head(5, "Transfer-Encoding: chunked"),
            head(5, "Transfer-Encoding: rot13"),
            head(5, "Expect: miracles"),
            head(5, f"X: {'y' * 9000}"),
            b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\n\r\n",
        ],
        ids=lambda sent: repr(sent[:20]),
    )
    def test_what_is_no_http_request(self, server: Server, request_bytes: bytes) -> None:
        with server.connect() as connection:
            connection.send(request_bytes)
            status, headers, body = connection.answer()
            assert (status, headers["connection"], headers["content-type"]) == (400, "close", "text/plain")
            assert body == b"not an HTTP request that is served here\n"
            assert connection.ended()


class TestSelfSigned:
    def test_the_folder_is_private_and_goes_away(self, tmp_path: Path) -> None:
        with running(temporary=tmp_path) as server:
            (folder,) = [path for path in tmp_path.iterdir() if path.is_dir()]
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
            assert Path(server.ready["ca"]).parent == folder
            assert [path.name for path in folder.iterdir()] == ["ca.crt"], "the key is in no file"
            assert server.stop() == 0
        assert list(tmp_path.iterdir()) == []

    def test_the_keys_folder_outlives_a_worker_that_dies(self, tmp_path: Path) -> None:
        with running(temporary=tmp_path) as server:
            children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
            (worker,) = map(int, children.read_text().split())
            os.kill(worker, 15)
            with server.session() as session:
                assert session.get(f"{server.url}/healthz", timeout=TIMEOUT_S).status_code == 200
            assert Path(server.ready["ca"]).exists()
            assert server.stop() == 0


@pytest.fixture
def pair(tmp_path: Path) -> dict[str, Path]:
    authority = make_authority("CA", now=datetime.now(UTC))
    serving = make_serving(authority, dns_names=["vnpu.test"], ip_addresses=["127.0.0.1"], now=datetime.now(UTC))
    paths = {"cert": tmp_path / "tls.crt", "key": tmp_path / "tls.key", "ca": tmp_path / "ca.crt"}
    write_pair(serving, paths["cert"], paths["key"])
    paths["ca"].write_bytes(authority.certificate)
    return paths


class TestFiles:
    def test_a_mounted_pair_is_served(self, pair: dict[str, Path], tmp_path: Path) -> None:
        with running("--cert", str(pair["cert"]), "--key", str(pair["key"]), temporary=tmp_path) as server:
            assert server.ready["ca"] is None
            with server.session() as session:
                session.verify = str(pair["ca"])
                assert session.get(f"{server.url}/healthz", timeout=TIMEOUT_S).status_code == 200

    def test_settings_and_chips_from_files(self, tmp_path: Path) -> None:
        settings, chips = tmp_path / "settings.yaml", tmp_path / "chips.yaml"
        settings.write_text("schedulerName: our-scheduler\n")
        chips.write_text(
            "vnpus:\n  configs:\n  - {commonWord: Ascend910B3, chipName: 910B3, resourceName: huawei.com/Ascend910B3,\n"
            "     memoryAllocatable: 20000, memoryCapacity: 65536, unknownKey: 1}\n"
        )
        arguments = ("--config", str(settings), "--device-config", str(chips))
        with running(*arguments, temporary=tmp_path) as server, server.session() as session:
            response = session.post(f"{server.url}/mutate", data=SOFT, headers=JSON, timeout=TIMEOUT_S).json()
            assert [line["level"] for line in server.said("unknownKey")] == ["warning"]
        assert response["response"]["allowed"] is False
        assert "20000" in response["response"]["status"]["message"], "28672 is more than this table allows"

    @pytest.mark.parametrize("workers", [2])
    def test_several_workers_count_together(self, workers: int, tmp_path: Path) -> None:
        with running("--workers", str(workers), temporary=tmp_path) as server:
            for _ in range(20):  # a new connection each time, so that both workers get some
                with server.session() as session:
                    session.post(f"{server.url}/mutate", data=SOFT, headers=JSON, timeout=TIMEOUT_S)
            with server.session() as session:
                metrics = session.get(f"{server.url}/metrics", timeout=TIMEOUT_S).text
            assert 'endpoint="mutate",reason="patched"} 20.0' in metrics
            assert "vnpu_webhook_config_generation 1.0" in metrics
            assert server.stop() == 0
        assert [path for path in tmp_path.iterdir() if path.is_dir()] == []


class TestStart:
    def test_a_key_of_another_certificate(self, tmp_path: Path) -> None:
        for name in ("one", "other"):
            pair = make_authority(name, now=datetime.now(UTC))
            write_pair(pair, tmp_path / f"{name}.crt", tmp_path / f"{name}.key")
        code, text = refused("--cert", str(tmp_path / "one.crt"), "--key", str(tmp_path / "other.key"))
        check_one_line(code, text, "other.key")

    @pytest.mark.parametrize("content", [b"", b"no PEM", None])
    def test_a_certificate_that_is_none(self, content: bytes | None, tmp_path: Path) -> None:
        file = tmp_path / "tls.crt"
        if content is not None:
            file.write_bytes(content)
        code, text = refused("--cert", str(file), "--key", str(file))
        check_one_line(code, text, "tls.crt")

    def test_an_encrypted_key_asks_nobody_for_its_password(self, pair: dict[str, Path]) -> None:
        key = load_pem_private_key(pair["key"].read_bytes(), None)
        secret = BestAvailableEncryption(b"secret")
        pair["key"].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, secret))
        code, text = refused("--cert", str(pair["cert"]), "--key", str(pair["key"]))
        check_one_line(code, text, "not encrypted")

    @pytest.mark.parametrize(
        ("option", "content", "word"),
        [
            ("--config", "defaultmode: template", "defaultMode"),
            ("--config", "limiter: {path: relative}", "limiter.path"),
            ("--config", "a: 1\n---\nb: 2", "2 documents"),
            ("--config", "{", "line 2"),
            ("--device-config", "vnpus: []", "vnpus"),
            ("--device-config", "", "a mapping is expected"),
        ],
    )
    def test_a_file_that_cannot_be_used(self, option: str, content: str, word: str, tmp_path: Path) -> None:
        file = tmp_path / "file.yaml"
        file.write_text(content)
        code, text = refused(option, str(file))
        check_one_line(code, text, str(file))
        assert word in text

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        code, text = refused("--config", str(tmp_path / "missing.yaml"))
        check_one_line(code, text, "missing.yaml")

    def test_a_port_in_use(self, server: Server) -> None:
        code, text = refused("--port", str(server.address[1]))
        check_one_line(code, text, str(server.address[1]))

    def test_a_host_that_is_not_ours(self) -> None:
        code, text = refused("--host", "192.0.2.1")
        check_one_line(code, text, "192.0.2.1")


def check_one_line(code: int, text: str, word: str) -> None:
    assert code == 2
    assert text.startswith("webhook: ")
    assert text.count("\n") == 1
    assert word in text


class TestStop:
    def test_requests_that_are_being_answered_are_finished(self, tmp_path: Path) -> None:
        with running(temporary=tmp_path) as server:
            finish_a_request_while_stopping(server)

    def test_also_after_handshakes_that_failed(self, tmp_path: Path) -> None:
        with running(temporary=tmp_path) as server:
            for _ in range(5):
                with socket.create_connection(server.address, TIMEOUT_S) as plain:
                    plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
                    while plain.recv(100):
                        pass
            finish_a_request_while_stopping(server)

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_an_idle_server_ends_with_0(self, number: signal.Signals, tmp_path: Path) -> None:
        with running(temporary=tmp_path) as server:
            server.process.send_signal(number)
            assert server.process.wait(TIMEOUT_S) == 0


def finish_a_request_while_stopping(server: Server) -> None:
    with server.connect() as slow, server.connect() as other:
        slow.send(head(len(SOFT), "Expect: 100-continue"))
        assert slow.answer()[0] == 100, "a thread is reading the body now"
        server.process.terminate()
        closing = False
        while not closing:  # the worker has seen the signal once it closes kept-alive connections
            other.send(b"GET /healthz HTTP/1.1\r\nHost: webhook\r\n\r\n")
            status, headers, _ = other.answer()
            assert status == 200
            closing = headers["connection"] == "close"
        slow.send(SOFT)
        assert slow.answer()[0] == 200
    assert server.process.wait(TIMEOUT_S) == 0


def test_help_names_both_commands() -> None:
    done = subprocess.run([sys.executable, "-m", "webhook", "--help"], capture_output=True, text=True, check=True)
    assert "preview" in done.stdout
    assert "--device-config" in done.stdout


def test_importing_the_server_costs_no_cryptography() -> None:
    code = "import sys, webhook.server, webhook.app; print({'cryptography', 'kubernetes', 'yaml'} & set(sys.modules))"
    done: Any = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
