"""Containers that share a simulated card, and what the card itself says of the time that each got."""

from __future__ import annotations

import subprocess
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.support import native
from tests.support.containers import PATIENCE_S, Container
from vnpu import names

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.npu_client import Machine


@dataclass
class Load:
    """One container and what its processes do; ``arguments`` are those of the client ``load``, one for each process."""

    priority: str | None
    arguments: tuple[str, ...]
    ceiling: bool = False
    devices: str = "0"
    processes: list[subprocess.Popen[str]] = field(default_factory=list)
    container: Container | None = None

    def go(self) -> None:
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()

    def end(self) -> list[tuple[int, int]]:
        """Launches and the longest in microseconds, of each process."""
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.close()
        told = []
        for process in self.processes:
            assert process.stdout is not None
            launches, longest = process.stdout.read().split()
            told.append((int(launches), int(longest)))
            process.wait(PATIENCE_S)
        return told


@contextmanager
def sharing(machine: Machine, directory: Path, loads: list[Load], *, preload: bool = True) -> Iterator[None]:
    """All containers with their limiters and processes, ready to begin; the tag of a container is its place."""
    shared = directory / "shared"
    shared.mkdir(exist_ok=True)
    with ExitStack() as stack:
        for place, load in enumerate(loads):
            own = directory / f"container{place}"
            own.mkdir()
            load.container = Container(own=own, shared=shared, priority=load.priority, devices=load.devices)
            if load.ceiling:
                load.container.extra[names.ENV_CEILING] = "1"
            stack.enter_context(load.container.running())
            for arguments in load.arguments:
                process = born(machine, load, place, arguments, preload=preload)
                stack.callback(end, process)
                load.processes.append(process)
        for load in loads:
            for process in load.processes:
                assert process.stdout is not None
                assert process.stdout.readline() == "ready\n"
        yield


def born(machine: Machine, load: Load, place: int, arguments: str, *, preload: bool = True) -> subprocess.Popen[str]:
    """A process of a container; it says ``ready`` when it is."""
    assert load.container is not None
    env = {**load.container.env, **machine.env, "NPU_SIM_TAG": f"c{place}"}
    if preload:
        env["LD_PRELOAD"] = str(native.library())
    command = [str(native.client("load")), *arguments.split()]
    return subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None and not stream.closed:
            stream.close()


def busy_ns(machine: Machine, places: int, card: int = 0) -> tuple[int, list[int]]:
    """The card's clock, and how long it worked for each container."""
    status = machine.status()
    by_tag = {tag["name"]: tag["cards"][card]["busy_ns"] for tag in status["tags"]}
    return status["now_ns"], [by_tag.get(f"c{place}", 0) for place in range(places)]


def shares(machine: Machine, places: int, seconds: float, card: int = 0) -> list[float]:
    """Percent of the card that each container got in the next ``seconds``."""
    begun, before = busy_ns(machine, places, card)
    time.sleep(seconds)
    ended, after = busy_ns(machine, places, card)
    return [100 * (late - early) / (ended - begun) for early, late in zip(before, after, strict=True)]
