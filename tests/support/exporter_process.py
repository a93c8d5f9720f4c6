"""``python -m interceptor.exporter`` as a process of its own, asked as Prometheus asks it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import requests
from prometheus_client.parser import text_string_to_metric_families

from tests.support.containers import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.api_stand_in import ApiStandIn

_LISTENING = re.compile(r"listening on 127\.0\.0\.1:(\d+)")


class ExporterProcess:
    """The process, once it listens."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stderr is not None
        found = None
        while found is None:
            line = process.stderr.readline()
            assert line, process.wait()
            found = _LISTENING.search(line)
        self.port = int(found[1])

    def text(self) -> str:
        return requests.get(f"http://127.0.0.1:{self.port}/metrics", timeout=PATIENCE_S).text

    def samples(self, name: str) -> list[tuple[dict[str, str], float]]:
        """The labels and values of a metric."""
        return [
            (sample.labels, sample.value)
            for family in text_string_to_metric_families(self.text())
            for sample in family.samples
            if sample.name == name
        ]

    def value(self, name: str, **labels: str) -> float | None:
        """The one value of a metric that has these labels, None where there is none."""
        found = [value for has, value in self.samples(name) if labels.items() <= has.items()]
        assert len(found) <= 1, (name, labels, found)
        return found[0] if found else None


@contextmanager
def running(
    folder: Path, api: ApiStandIn, *arguments: str, root: Path, node: str, **env: str
) -> Iterator[ExporterProcess]:
    """The exporter of a node whose ``/`` is ``root``; ``folder`` takes its kubeconfig."""
    command = [sys.executable, "-m", "interceptor.exporter", "--host=127.0.0.1", "--port=0", f"--node={node}"]
    where = [f"--kubeconfig={api.kubeconfig(folder)}", f"--host-root={root}", "--interval=0.2"]
    process = subprocess.Popen([*command, *where, *arguments], env=os.environ | env, stderr=subprocess.PIPE, text=True)
    try:
        yield ExporterProcess(process)
    finally:
        process.kill()
        process.communicate()
