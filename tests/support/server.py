"""The webhook's server in a process of its own, on a free port."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import requests

from tests.support.traffic import Client

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

TIMEOUT_S = 30


@dataclass
class Server:
    """A running server.

    Attributes:
        process: the master process.
        ready: its ready line.
        log: every line so far, parsed.
        reader: the thread that reads them, until the server ends.
    """

    process: subprocess.Popen[bytes]
    ready: dict[str, Any]
    log: list[dict[str, Any]]
    reader: threading.Thread

    @property
    def url(self) -> str:
        return str(self.ready["url"])

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        assert parts.port is not None
        return parts.hostname, parts.port

    def children(self) -> list[int]:
        """The processes that the master has started."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(child) for child in children.split()]

    def workers(self) -> list[int]:
        """Those of them that serve: forked, and so of the same command line."""
        command = Path(f"/proc/{self.process.pid}/cmdline").read_bytes()
        return [child for child in self.children() if _command_of(child) == command]

    def metric(self, name: str, host: str | None = None) -> float:
        """A number of ``/metrics``, by its name and labels as they stand there; ``host`` is the name to verify."""
        with Client(self.address, self.trust(), host) as client:
            text = client.get("/metrics").decode()
        return next((float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(f"{name} ")), 0.0)

    def said(self, message: str) -> list[dict[str, Any]]:
        """The lines of the log that have this text in their message."""
        return [line for line in self.log if message in line["message"]]

    def trust(self) -> ssl.SSLContext:
        """Verifies the server by its CA."""
        return ssl.create_default_context(cafile=self.ready["ca"])

    def session(self) -> requests.Session:
        """A client that trusts the server's CA alone, whatever the environment says."""
        session = requests.Session()
        session.trust_env = False
        session.verify = self.ready["ca"]
        return session

    def connect(self) -> Connection:
        """A TLS connection for bytes that no client library would send."""
        context = ssl.create_default_context(cafile=self.ready["ca"])
        host, port = self.address
        plain = socket.create_connection((host, port), timeout=TIMEOUT_S)
        return Connection(context.wrap_socket(plain, server_hostname=host))

    def kill(self, pid: int) -> None:
        """Kill a process of this server, as a machine without memory does."""
        assert pid in self.workers()
        os.kill(pid, signal.SIGKILL)

    def stop(self) -> int:
        """SIGTERM; gives the exit code, when the log is complete."""
        self.process.terminate()
        code = self.process.wait(TIMEOUT_S)
        self.reader.join(TIMEOUT_S)
        return code


def _command_of(pid: int) -> bytes:
    with suppress(OSError):  # it ends at this moment
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


class Connection:
    """One TLS connection, and the answers that come over it."""

    def __init__(self, tls: ssl.SSLSocket) -> None:
        self._tls = tls
        self._received = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._tls.close()

    def send(self, data: bytes) -> None:
        self._tls.sendall(data)

    def answer(self) -> tuple[int, dict[str, str], bytes]:
        """The next answer: status, headers in lower case, body."""
        while b"\r\n\r\n" not in self._received:
            self._read()
        head, _, self._received = self._received.partition(b"\r\n\r\n")
        status, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        length = int(headers.get("content-length", "0"))
        while len(self._received) < length:
            self._read()
        body, self._received = self._received[:length], self._received[length:]
        return int(status.split()[1]), headers, body

    def ended(self) -> bool:
        """Whether the server closes the connection and sends nothing more."""
        try:
            return self._received == b"" and self._tls.recv(1) == b""
        except (ConnectionResetError, ssl.SSLEOFError):
            return True

    def _read(self) -> None:
        data = self._tls.recv(65536)
        assert data, f"the connection ended after {self._received!r}"
        self._received += data


@contextmanager
def running(
    *arguments: str,
    temporary: Path,
    ca: Path | None = None,
    read: bool = True,
    environment: Mapping[str, str] | None = None,
    prefix: Sequence[str] = (),
) -> Iterator[Server]:
    """``python -m webhook --port 0`` with further arguments, its temporary files in the given folder.

    The CA is that of the server itself, unless the pair is another one's. Without ``read`` nobody reads the log behind
    the ready line before somebody starts the reader. ``prefix`` is a program that runs another one.
    """
    variables = {**os.environ, "TMPDIR": str(temporary), **(environment or {})}
    command = [*prefix, sys.executable, "-m", "webhook", "--port", "0", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=variables) as process:
        assert process.stdout is not None
        lines = map(json.loads, iter(process.stdout.readline, b""))
        log: list[dict[str, Any]] = []
        reader = threading.Thread(target=lambda: log.extend(lines), daemon=True)
        try:
            for line in lines:
                log.append(line)
                if line["message"] == "ready":
                    break
            else:
                raise AssertionError(f"the server ended without a ready line: {log}")
            ready = log[-1] if ca is None else {**log[-1], "ca": str(ca)}
            if read:
                reader.start()
            yield Server(process, ready, log, reader)
        finally:
            if process.poll() is None:
                process.terminate()
            process.wait(TIMEOUT_S)
            if reader.ident is not None:
                reader.join(TIMEOUT_S)


def refused(*arguments: str) -> tuple[int, str]:
    """The exit code and standard error of a server that does not start."""
    command = [sys.executable, "-m", "webhook", "--port", "0", *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=TIMEOUT_S)
    return done.returncode, done.stderr
