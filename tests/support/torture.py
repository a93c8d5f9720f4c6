"""Processes that allocate and free as fast as they can while they are killed, stopped and replaced at random.

The card is the judge: it counts every allocation that it granted beyond the quota, and at the end the books must say
what it says. ``python -m tests.support.torture SECONDS [PROCESSES [SEED]]`` runs it for long.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.support import native
from tests.support.containers import Container, alive, eventually, kill
from tests.support.npu_client import Machine

QUOTA_MIB = 256
PAGES = 24 * 256
"""The most that one allocation asks for: two dozen of them fill the quota."""
POINTS = ("slot-settling", "slot-claimed", "asked", "reserved", "releasing")
ENDLESS_MS = 10**9


@dataclass
class Outcome:
    """What the torture came to; memory in bytes, times in seconds."""

    events: int
    excesses: int
    peak: int
    books: int
    device: int
    longest_wait_s: float
    limiters_killed: int
    cleared: bool
    """When all are dead, neither the books nor the card hold anything."""


class Torture:
    """One container, its processes and their fate."""

    def __init__(self, directory: Path, processes: int, seed: int) -> None:
        for name in ("own", "shared"):
            (directory / name).mkdir()
        self.container = Container(own=directory / "own", shared=directory / "shared", memory=str(QUOTA_MIB))
        self.machine = Machine(directory / "npu")
        self.chance = random.Random(seed)
        self.processes: list[subprocess.Popen[str]] = [self.born() for _ in range(processes)]
        self.limiters_killed = 0

    def born(self) -> subprocess.Popen[str]:
        env = {**self.container.env, **self.machine.env, "NPU_SIM_TAG": "tortured"}
        env["LD_PRELOAD"] = str(native.library_with_faults())
        if self.chance.random() < 0.5:
            action = self.chance.choice(["kill", "stop"])
            env["VNPU_FAULT"] = f"{self.chance.choice(POINTS)}:{action}:{self.chance.randrange(1, 2000)}"
        process = subprocess.Popen(
            [str(native.client("client"))],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdin is not None
        process.stdin.write(f"call aclrtSetDevice 0\nstress {self.chance.randrange(1 << 30)} {ENDLESS_MS} {PAGES}\n")
        process.stdin.flush()
        return process

    def strike(self) -> None:
        """One event: a death, a stop of a moment, or the death of a limiter."""
        place = self.chance.randrange(len(self.processes))
        process = self.processes[place]
        if self.chance.random() < 0.05:
            limiter, _ = self.container.pids()
            if alive(limiter):
                kill(limiter)
                self.limiters_killed += 1
        elif self.chance.random() < 0.3 and process.poll() is None:
            kill(process.pid, signal.SIGSTOP)
            time.sleep(self.chance.random() * 0.05)
            kill(process.pid, signal.SIGCONT)
        else:
            bury(process)
            self.processes[place] = self.born()

    def probe(self) -> float:
        """How long a fresh process, which gets in the way of nobody, needs for its first small allocation."""
        before = time.monotonic()
        env = {**self.container.env, **self.machine.env, "LD_PRELOAD": str(native.library()), "NPU_SIM_TAG": "probe"}
        commands = "call aclrtSetDevice 0\ncall rtMalloc &a 4096 0 33\n"
        subprocess.run(
            [str(native.client("client"))],
            env=env,
            input=commands,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        return time.monotonic() - before

    def run(self, seconds: float) -> Outcome:
        """Strikes for so long, then lets the processes live and compares books and card."""
        events = 0
        longest = 0.0
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.strike()
            events += 1
            if events % 20 == 0:
                longest = max(longest, self.probe())
            time.sleep(self.chance.random() * 0.02)
        for process in self.processes:
            if process.poll() is None:
                kill(process.pid, signal.SIGSTOP)
        books, device = self.held(), self.on_card()
        self.end()
        cleared = eventually(lambda: self.held() == self.on_card() == 0)
        tag = next(tag for tag in self.machine.status()["tags"] if tag["name"] == "tortured")["cards"][0]
        return Outcome(
            events, tag["excesses"], tag["peak"], books, device, longest, self.limiters_killed, cleared=cleared
        )

    def held(self) -> int:
        """What the books say of those who live; whoever is stopped inside a reservation holds it already."""
        return self.container.read().cards[0].used

    def on_card(self) -> int:
        return int(self.machine.status()["cards"][0]["used"])

    def end(self) -> None:
        for process in self.processes:
            bury(process)


def bury(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    if process.stdin is not None:
        process.stdin.close()


def torture(directory: Path, *, seconds: float, processes: int, seed: int) -> Outcome:
    """The whole of it: a card without overhead, so that everything on it is the applications'."""
    machine = Machine(directory / "npu")
    machine.tool("create", "context_mib=0", "stream_kib=0")
    machine.tool("expect", "tortured", str(QUOTA_MIB))
    victim = Torture(directory, 0, seed)
    with victim.container.running():
        victim.processes = [victim.born() for _ in range(processes)]
        try:
            return victim.run(seconds)
        finally:
            victim.end()


if __name__ == "__main__":
    given = [*map(int, sys.argv[1:]), *(60, 64, random.randrange(1 << 30))[len(sys.argv) - 1 :]]
    sys.stdout.write(f"seconds, processes, seed: {given}\n")
    with tempfile.TemporaryDirectory() as folder:
        result = torture(Path(folder), seconds=given[0], processes=given[1], seed=given[2])
    sys.stdout.write(f"{result}\n")
    sys.exit(result.excesses != 0 or result.books < result.device or not result.cleared)
