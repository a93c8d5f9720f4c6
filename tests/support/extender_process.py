"""The extender in a process of its own, and the questions of a kube-scheduler."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import requests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

TIMEOUT_S = 60
SYNC_S = 300


@dataclass
class Extender:
    """A running extender.

    Attributes:
        process: its master; the child that serves ends with it.
        url: where it answers.
        log: its lines so far.
    """

    process: subprocess.Popen[bytes]
    url: str
    log: list[dict[str, Any]]

    def post(self, verb: str, document: Any) -> Any:
        with _session() as session:
            answer = session.post(f"{self.url}/{verb}", json=document, timeout=TIMEOUT_S)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def get(self, path: str) -> requests.Response:
        with _session() as session:
            return session.get(f"{self.url}{path}", timeout=TIMEOUT_S)

    def filter(self, pod: Any, names: Sequence[str]) -> Any:
        return self.post("filter", {"pod": pod, "nodenames": list(names)})

    def bind(self, pod: Any, node: str) -> str:
        """Gives the error, ``""`` for none."""
        metadata = pod["metadata"]
        order = {"podName": metadata["name"], "podNamespace": metadata["namespace"], "podUID": metadata["uid"]}
        return str(self.post("bind", order | {"node": node}).get("error", ""))

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def wait_ready(self) -> None:
        deadline = time.monotonic() + SYNC_S
        while self.get("/readyz").status_code != 200:
            assert self.process.poll() is None, self.log
            assert time.monotonic() < deadline, self.log
            time.sleep(0.05)

    def pids(self) -> list[int]:
        """The master, and the process that serves."""
        command = ["ps", "--ppid", str(self.process.pid), "-o", "pid="]
        children = subprocess.run(command, check=False, capture_output=True, text=True).stdout.split()
        return [self.process.pid, *map(int, children)]

    def kill(self) -> None:
        """kill -9 for all of it."""
        for pid in self.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(TIMEOUT_S)


@contextmanager
def running(
    *arguments: str, kubeconfig: str, port: int = 0, before: Callable[[Extender], object] = bool
) -> Iterator[Extender]:
    """``python -m webhook.extender`` that knows the cluster already; ``before`` is called when it only answers."""
    command = [sys.executable, "-m", "webhook.extender", "--port", str(port), "--kubeconfig", kubeconfig, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        lines = map(json.loads, iter(process.stdout.readline, b""))
        log: list[dict[str, Any]] = []
        try:
            for line in lines:
                log.append(line)
                if "url" in line:
                    break
            else:
                raise AssertionError(f"the extender ended: {log}")
            threading.Thread(target=lambda: log.extend(lines), daemon=True).start()
            extender = Extender(process, line["url"], log)
            before(extender)
            extender.wait_ready()
            yield extender
        finally:
            if process.poll() is None:
                process.terminate()
            process.wait(TIMEOUT_S)


def _session() -> requests.Session:
    session = requests.Session()
    session.trust_env = False
    return session
