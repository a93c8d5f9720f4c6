"""Containers that share a card while their processes, limiters and guardians are killed and stopped at random.

Processes allocate, free and launch as fast as they can. One container may live in a pid namespace of its own. The card
is the judge: it counts every allocation that it granted beyond a quota, and at the end the books must say what it says.
Beside them one process per container, whom nobody harms, measures how long it waits: each of its rounds allocates,
launches and frees. ``python -m tests.support.torture SECONDS [PROCESSES [SEED]]`` runs it for long.
"""

from __future__ import annotations

import os
import random
import shlex
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support import native
from tests.support.containers import Container, eventually
from tests.support.npu_client import Client, Machine, client, kernel

if TYPE_CHECKING:
    from collections.abc import Iterator

QUOTA_MIB = 256
PAGES = 24 * 256
"""The most that one allocation asks for: two dozen of them fill the quota."""
KERNEL_US = 50
POINTS = ("slot-settling", "slot-claimed", "asked", "reserved", "releasing", "handed-over", "closed", "passing")
LIMITER_POINTS = (
    "limiter-born",
    "file-made",
    "file-named",
    "region-locked",
    "taking-over",
    "moving-in",
    "moved-in",
    "limiter-ready",
    "limiter-round",
    "mirror-open",
)
GUARDIAN_POINTS = ("guardian-spawned", "guardian-locked", "guardian-alone")
LONGEST_WAIT_S = 2.0
"""Nobody waits for the dead longer than 1 s; the same again is for dozens of processes that share two processors."""
GUARDED_AGAIN_S = 1.0
"""How long limiter and guardian are left alone after one of them was killed, so that it has another."""
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
    rounds: int
    """Of those who measured the wait."""
    keepers_killed: int
    """Limiters and guardians."""
    apart: bool
    """Whether one of the containers had a pid namespace of its own."""
    cleared: bool
    """When all are dead, neither the books nor the card hold anything."""

    @property
    def wrong(self) -> tuple[str, ...]:
        """What must not be."""
        judged = {
            "memory beyond the quota": self.excesses != 0 or self.peak > QUOTA_MIB << 20,
            "less in the books than on the card": self.books < self.device,
            "something is left of the dead": not self.cleared,
            "somebody waited too long": self.longest_wait_s > LONGEST_WAIT_S,
            "nobody measured": self.rounds == 0,
        }
        return tuple(text for text, holds in judged.items() if holds)


class Cell:
    """One container: a shell in its pid namespace starts and kills its processes, by their ids there."""

    def __init__(self, container: Container, machine: Machine, tag: str, apart: tuple[str, ...]) -> None:
        self.container = container
        self.machine = machine
        self.tag = tag
        self.env = {**container.env, **machine.env, "NPU_SIM_TAG": tag}
        self.shell = subprocess.Popen(
            [*apart, "sh"], env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.processes: list[int] = []
        self.keepers_harmed_s = 0.0
        self.faults = container.own / "faults"
        self.faults.mkdir()

    def ask(self, command: str) -> str:
        assert self.shell.stdin is not None
        assert self.shell.stdout is not None
        self.shell.stdin.write(command + "\n")
        self.shell.stdin.flush()
        return self.shell.stdout.readline().strip()

    def start_limiter(self) -> None:
        """As often as it takes: it may die at a point that is armed."""
        command = f"VNPU_FAULTS={self.faults} {native.limiter_with_faults()} start 2>/dev/null; echo $?"
        assert eventually(lambda: self.ask(command) == "0")

    def born(self, chance: random.Random) -> int:
        """A process that works without end, and may die or stop at a named point."""
        env = {"LD_PRELOAD": str(native.library_with_faults())}
        if chance.random() < 0.5:
            action = chance.choice(["kill", "stop"])
            env["VNPU_FAULT"] = f"{chance.choice(POINTS)}:{action}:{chance.randrange(1, 2000)}"
        lines = [
            "call aclrtSetDevice 0",
            *kernel(KERNEL_US),
            f"stress {chance.randrange(1 << 30)} {ENDLESS_MS} {PAGES}",
        ]
        settings = " ".join(f"{name}={value}" for name, value in env.items())
        source = shlex.join(["printf", "%s\\n", *lines])
        return int(self.ask(f"{source} | {settings} {native.client('client')} >/dev/null 2>&1 & echo $!"))

    def signal(self, name: str, *pids: int) -> None:
        self.ask(f"kill -s {name} {' '.join(map(str, pids))} 2>/dev/null; echo")

    def strike(self, chance: random.Random) -> int:
        """One event: the death or the stop of a moment of a process or a keeper; how many keepers that killed."""
        if chance.random() < 0.1 and time.monotonic() > self.keepers_harmed_s + GUARDED_AGAIN_S:
            self.keepers_harmed_s = time.monotonic()
            return self.strike_keepers(chance)
        place = chance.randrange(len(self.processes))
        if chance.random() < 0.3:
            self.pause(chance, self.processes[place])
        else:
            self.signal("KILL", self.processes[place])
            self.processes[place] = self.born(chance)
        return 0

    def strike_keepers(self, chance: random.Random) -> int:
        limiter, guardian = self.container.pids()
        point = chance.choice([*LIMITER_POINTS, *GUARDIAN_POINTS, None])
        victims = chance.choice([[limiter], [guardian], [limiter, guardian], []])
        self.disarm()
        if point is not None:
            self.arm(point, chance.choice(["kill", "pause"]))
        if victims:
            self.signal("KILL", *victims)
        else:
            self.pause(chance, chance.choice([limiter, guardian]))
        # One of them brings the other back; where both may have died somebody has to start them.
        if point in GUARDIAN_POINTS or (guardian in victims and (limiter in victims or point is not None)):
            self.start_limiter()
        return len(victims)

    def arm(self, point: str, action: str) -> None:
        """The first keeper that comes to the point dies there, or stands still for a while."""
        fault = self.faults / f".{point}"
        fault.write_text(action)
        fault.rename(self.faults / point)

    def disarm(self) -> None:
        for fault in self.faults.iterdir():
            fault.unlink(missing_ok=True)

    def pause(self, chance: random.Random, pid: int) -> None:
        self.signal("STOP", pid)
        time.sleep(chance.random() * 0.05)
        self.signal("CONT", pid)

    def held(self) -> int:
        """What the books say of those who live; whoever is stopped inside a reservation holds it already."""
        return self.container.read().cards[0].used

    def end_processes(self) -> None:
        if self.processes:
            self.signal("KILL", *self.processes)
            self.processes = []

    def end(self) -> None:
        self.end_processes()
        self.disarm()
        self.ask(f"{native.limiter()} stop; echo")
        assert self.shell.stdin is not None
        assert self.shell.stdout is not None
        self.shell.stdin.close()
        self.shell.wait()
        self.shell.stdout.close()


class Torture:
    """The containers on one card and their fate."""

    def __init__(self, machine: Machine, cells: list[Cell], chance: random.Random) -> None:
        self.machine = machine
        self.cells = cells
        self.chance = chance

    def run(self, seconds: float) -> tuple[int, int]:
        """Strikes for so long; the number of events, and of keepers that were killed."""
        events = 0
        keepers = 0
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            keepers += self.chance.choice(self.cells).strike(self.chance)
            events += 1
            time.sleep(self.chance.random() * 0.02)
        return events, keepers

    def stopped(self) -> tuple[int, int]:
        """Books and card while all processes stand still."""
        for cell in self.cells:
            cell.signal("STOP", *cell.processes)
        return self.held(), self.on_card()

    def held(self) -> int:
        return sum(cell.held() for cell in self.cells)

    def on_card(self) -> int:
        return int(self.machine.status()["cards"][0]["used"])

    def judged(self) -> tuple[int, int]:
        """Of all containers: allocations beyond the quota, and the most that one held."""
        tags = {tag["name"]: tag["cards"][0] for tag in self.machine.status()["tags"]}
        mine = [tags[cell.tag] for cell in self.cells]
        return sum(tag["excesses"] for tag in mine), max(tag["peak"] for tag in mine)


def apart() -> tuple[str, ...]:
    """What runs a command in a pid namespace of its own, whose processes end with it; nothing where that cannot be."""
    user = () if os.geteuid() == 0 else ("--map-root-user",)
    command = ("unshare", *user, "--pid", "--fork", "--kill-child")
    allowed = subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0
    return command if allowed else ()


@contextmanager
def cell(container: Container, machine: Machine, tag: str, through: tuple[str, ...]) -> Iterator[Cell]:
    """A container with a limiter and no process yet; nothing of it is left afterwards."""
    made = Cell(container, machine, tag, through)
    try:
        made.start_limiter()
        yield made
    finally:
        made.end()


def waited(vigil: Client) -> tuple[int, int]:
    """The longest wait in microseconds, and the number of rounds."""
    longest, rounds = vigil.answer().split()
    assert vigil.end() == 0
    return int(longest), int(rounds)


def torture(directory: Path, *, seconds: float, processes: int, seed: int) -> Outcome:
    """The whole of it: a card without overhead, so that everything on it is the applications'."""
    machine = Machine(directory / "npu")
    machine.tool("create", "context_mib=0", "stream_kib=0")
    chance = random.Random(seed)
    ways = ((), apart())
    (directory / "shared").mkdir()
    with ExitStack() as stack:
        cells = []
        for number, through in enumerate(ways):
            own = directory / f"own{number}"
            own.mkdir()
            machine.tool("expect", f"tortured{number}", str(QUOTA_MIB))
            container = Container(own=own, shared=directory / "shared", memory=str(QUOTA_MIB), priority="40")
            cells.append(stack.enter_context(cell(container, machine, f"tortured{number}", through)))
        vigils = [stack.enter_context(client(one.container, machine, NPU_SIM_TAG="vigil")) for one in cells]
        for index in range(processes):
            one = cells[index % len(cells)]
            one.processes.append(one.born(chance))
        for vigil in vigils:
            vigil.kernel(KERNEL_US)
            vigil.start(f"vigil {int(seconds * 1000)}")
        victims = Torture(machine, cells, chance)
        events, keepers = victims.run(seconds)
        waits = [waited(vigil) for vigil in vigils]
        books, device = victims.stopped()
        for one in cells:
            one.end_processes()
        cleared = eventually(lambda: victims.held() == victims.on_card() == 0)
        excesses, peak = victims.judged()
        return Outcome(
            events=events,
            excesses=excesses,
            peak=peak,
            books=books,
            device=device,
            longest_wait_s=max(longest for longest, _ in waits) / 1e6,
            rounds=min(rounds for _, rounds in waits),
            keepers_killed=keepers,
            apart=bool(ways[1]),
            cleared=cleared,
        )


if __name__ == "__main__":
    given = [*map(int, sys.argv[1:]), *(60, 64, random.randrange(1 << 30))[len(sys.argv) - 1 :]]
    sys.stdout.write(f"seconds, processes, seed: {given}\n")
    with tempfile.TemporaryDirectory() as folder:
        result = torture(Path(folder), seconds=given[0], processes=given[1], seed=given[2])
    sys.stdout.write("\n".join([str(result), *result.wrong, ""]))
    sys.exit(bool(result.wrong))
