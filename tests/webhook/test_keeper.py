"""The process that keeps certificates is started again, after pauses that grow."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from webhook import keeper
from webhook.keeper import Keeper

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ENDS = [sys.executable, "-c", "print('{}')"]
STAYS = [sys.executable, "-c", "import time; time.sleep(600)"]


class Starts:
    """Runs other programs instead, and lets the time pass."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.program = ENDS
        self.commands: list[tuple[str, ...]] = []
        self.processes: list[subprocess.Popen[bytes]] = []
        monkeypatch.setattr(keeper.time, "monotonic", lambda: self.now)
        popen = subprocess.Popen

        def start(command: tuple[str, ...], **options: int) -> subprocess.Popen[bytes]:
            self.commands.append(command)
            self.processes.append(popen(self.program, **options))  # type: ignore[call-overload]
            return self.processes[-1]

        monkeypatch.setattr(keeper.subprocess, "Popen", start)

    def end(self, kept: Keeper, ran_s: float) -> float:
        """Let the process end after a time; how long the next one is waited for."""
        self.processes[-1].wait()
        number = len(self.processes)
        self.now += ran_s
        start = self.now
        kept.supervise()
        while len(self.processes) == number:
            self.now += 0.5
            kept.supervise()
        return self.now - start


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Starts]:
    found = Starts(monkeypatch)
    yield found
    for process in found.processes:
        process.kill()
        process.wait()


def test_pauses_grow_while_it_keeps_ending_and_begin_anew_when_it_ran_well(starts: Starts, tmp_path: Path) -> None:
    kept = Keeper(("--secret", "name"), tmp_path)
    kept.supervise()
    assert starts.commands[0][1:] == ("-m", "certs", "keep", "--folder", str(tmp_path), "--secret", "name")
    assert [starts.end(kept, 1) for _ in range(7)] == [1, 2, 4, 8, 16, 30, 30]
    assert starts.end(kept, 3600) == 1


def test_one_that_runs_is_left_alone_and_ended_with_the_server(starts: Starts, tmp_path: Path) -> None:
    starts.program = STAYS
    kept = Keeper((), tmp_path)
    for _ in range(3):
        kept.supervise()
    (process,) = starts.processes
    assert process.poll() is None
    kept.stop()
    assert process.poll() is not None
    assert process.stdout is not None


def test_nothing_to_end(tmp_path: Path) -> None:
    Keeper((), tmp_path).stop()
