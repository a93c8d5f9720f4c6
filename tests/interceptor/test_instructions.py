"""What a launch and an allocation cost in instructions of ours: they do not depend on what else the machine does."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.support import native
from tests.support.npu_client import Machine

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.containers import Container

CALLS = 50
"""Of one block of the client ``cost``."""
FEW, MANY = 40, 120
"""Blocks: what comes before and after them is the same in both, and falls out."""
NAME = re.compile(r"(c?ob|c?fn)=\((\d+)\)(?: (.*))?$")


class Cost(NamedTuple):
    """Of the first thread: instructions of libvnpu.so itself, and its calls of functions outside, by name."""

    instructions: int
    calls: Counter[str]


def read(profile: Path) -> Cost:
    """Reads what callgrind wrote: a line of costs is the own cost of a function, unless it follows ``calls=``."""
    names: dict[tuple[str, str], str] = {}
    at = dict.fromkeys(("ob", "cob", "fn", "cfn"), "")
    instructions = 0
    calls: Counter[str] = Counter()
    of_a_call = False
    for line in profile.read_text().splitlines():
        if found := NAME.match(line):
            kind, number, name = found.groups()
            key = (kind.removeprefix("c"), number)
            names.setdefault(key, name)
            at[kind] = names[key]
            if kind == "fn":
                at["cob"] = at["ob"]
        elif line.startswith("calls="):
            of_a_call = True
            if at["ob"].endswith("/libvnpu.so") and at["cob"] != at["ob"]:
                calls[at["cfn"].partition("@")[0]] += int(line.removeprefix("calls=").split()[0])
            at["cob"] = at["ob"]
        elif re.match(r"[-+*\d]", line):
            if not of_a_call and at["ob"].endswith("/libvnpu.so"):
                instructions += int(line.split()[1])
            of_a_call = False
    return Cost(instructions, calls)


def cost(container: Container, machine: Machine, directory: Path, what: str, blocks: int) -> Cost:
    out = directory / f"{what}.{blocks}"
    command = ["valgrind", "--tool=callgrind", "--separate-threads=yes", f"--callgrind-out-file={out}"]
    subprocess.run(
        [*command, str(native.client("cost")), what, str(blocks)],
        env={**container.env, **machine.env, "LD_PRELOAD": str(native.library())},
        capture_output=True,
        check=True,
    )
    return read(out.with_name(f"{out.name}-01"))


def of_each(container: Container, directory: Path, what: str) -> tuple[float, dict[str, float]]:
    """Instructions and calls outside for each call of the client, marks of the stream included."""
    if shutil.which("valgrind") is None:
        pytest.skip("no valgrind")
    machine = Machine(directory / "npu")
    with container.running():
        few, many = (cost(container, machine, directory, what, blocks) for blocks in (FEW, MANY))
    times = (MANY - FEW) * CALLS
    calls = {name: (count - few.calls[name]) / times for name, count in many.calls.items()}
    return (many.instructions - few.instructions) / times, calls


def test_a_launch_with_a_turn_in_hand(container: Container, tmp_path: Path) -> None:
    instructions, calls = of_each(container, tmp_path, "launch")

    assert 50 < instructions < 200
    assert calls.pop("rtKernelLaunch") == pytest.approx(1, abs=0.01)
    assert sum(calls.values()) < 0.2, "no lock, clock, look-up or formatting: only a mark now and then calls anything"


def test_allocating_and_freeing(container: Container, tmp_path: Path) -> None:
    instructions, calls = of_each(container, tmp_path, "memory")

    assert 100 < instructions < 800
    often = {name: round(count) for name, count in calls.items() if count > 0.01}
    locks = {"pthread_mutex_lock": 3, "pthread_mutex_unlock": 3}
    assert often == {"halMemAlloc": 1, "halMemFree": 1, **locks}, "and no system call"
