"""A real API server, for the tests that are marked ``cluster``: one that runs already, or one that is started.

``make test-cluster`` asks for it. Without that, tests run against the stand-in alone and touch no cluster, whatever
KUBECONFIG says in the shell of the developer.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import socket
import subprocess
import time
import urllib.request
import uuid
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from certs.authority import make_authority, make_serving, write_pair
from vnpu.kube import NAMESPACES, Cluster, connect

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WANTED = "VNPU_TEST_CLUSTER"
"""Set by ``make test-cluster``."""
_READY_S = 120
_STOP_S = 30


def missing() -> str:
    """Why there is no real API server here; empty where there is one."""
    if not os.environ.get(WANTED):
        return "a real API server is used by `make test-cluster` alone"
    if not os.environ.get("KUBECONFIG") and not os.environ.get("KUBEBUILDER_ASSETS"):
        return "neither KUBECONFIG nor KUBEBUILDER_ASSETS says where a real API server is"
    return ""


@contextmanager
def kubeconfig(folder: Path) -> Iterator[Path | str]:
    """The kubeconfig of the server that runs, else of one that is started from KUBEBUILDER_ASSETS and stopped again."""
    running = os.environ.get("KUBECONFIG")
    if running:
        yield running
        return
    with _started(folder, os.environ["KUBEBUILDER_ASSETS"]) as path:
        yield path


@contextmanager
def namespace(cluster: Cluster) -> Iterator[str]:
    """A namespace of its own, deleted at the end."""
    name = f"vnpu-test-{uuid.uuid4().hex[:8]}"
    cluster.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    try:
        yield name
    finally:
        cluster.delete(NAMESPACES, name)


@contextmanager
def _started(folder: Path, assets: str) -> Iterator[Path]:
    """etcd and kube-apiserver, as envtest's archives hold them."""
    client, peer, secure = _free_ports(3)
    token = secrets.token_hex(16)
    authority = make_authority("test", now=datetime.now(UTC))
    serving = make_serving(authority, dns_names=["localhost"], ip_addresses=["127.0.0.1"], now=datetime.now(UTC))
    write_pair(serving, folder / "tls.crt", folder / "tls.key")
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    (folder / "sa.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )
    (folder / "tokens.csv").write_text(f'{token},admin,admin,"system:masters"\n')
    store = {
        "name": "test",
        "data-dir": str(folder / "etcd"),
        "listen-client-urls": f"http://127.0.0.1:{client}",
        "advertise-client-urls": f"http://127.0.0.1:{client}",
        "listen-peer-urls": f"http://127.0.0.1:{peer}",
        "initial-advertise-peer-urls": f"http://127.0.0.1:{peer}",
        "initial-cluster": f"test=http://127.0.0.1:{peer}",
        "unsafe-no-fsync": True,
        "log-level": "warn",
    }
    (folder / "etcd.json").write_text(json.dumps(store))
    with _process(folder, [f"{assets}/etcd", f"--config-file={folder / 'etcd.json'}"]):
        _wait(f"http://127.0.0.1:{client}/health")
        server = [
            f"{assets}/kube-apiserver",
            "--bind-address=127.0.0.1",
            f"--secure-port={secure}",
            f"--etcd-servers=http://127.0.0.1:{client}",
            f"--tls-cert-file={folder / 'tls.crt'}",
            f"--tls-private-key-file={folder / 'tls.key'}",
            f"--token-auth-file={folder / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={folder / 'sa.key'}",
            f"--service-account-signing-key-file={folder / 'sa.key'}",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--disable-admission-plugins=ServiceAccount",
            "--endpoint-reconciler-type=none",
        ]
        with _process(folder, server):
            path = _written(folder / "kubeconfig", f"https://127.0.0.1:{secure}", token, authority.certificate)
            _wait_ready(path)
            yield path


def _written(path: Path, url: str, token: str, ca: bytes) -> Path:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "clusters": [
            {"name": "test", "cluster": {"server": url, "certificate-authority-data": base64.b64encode(ca).decode()}}
        ],
        "users": [{"name": "test", "user": {"token": token}}],
    }
    path.write_text(json.dumps(document))
    return path


@contextmanager
def _process(folder: Path, command: list[str]) -> Iterator[None]:
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _free_ports(count: int) -> list[int]:
    with_ports = [socket.socket() for _ in range(count)]
    for one in with_ports:
        one.bind(("127.0.0.1", 0))
    ports = [int(one.getsockname()[1]) for one in with_ports]
    for one in with_ports:
        one.close()
    return ports


def _wait(url: str) -> None:
    deadline = time.monotonic() + _READY_S
    while True:
        with suppress(OSError), urllib.request.urlopen(url, timeout=5):
            return
        assert time.monotonic() < deadline, f"{url} does not answer"
        time.sleep(0.1)


def _wait_ready(path: Path) -> None:
    cluster = connect(kubeconfig=str(path))
    deadline = time.monotonic() + _READY_S
    while True:
        with suppress(ValueError):
            found: Any = cluster.read("/api/v1/namespaces/default")
            if found["status"]["phase"] == "Active":
                return
        assert time.monotonic() < deadline, "the API server is not ready"
        time.sleep(0.2)
