"""``python -m tests.torch.judge PYTHON``: the wheel of torch_npu under libvnpu.so, held against the card's own word.

PYTHON is the one that has torch and torch_npu. Prints what was expected and what was seen, in both wirings of CANN and
by both ways of preloading; exit 1 when one is not the other.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support import native
from tests.support.containers import Container
from tests.support.npu_client import MIB, Machine
from tests.support.preload_file import mount_namespace, plugged

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

QUOTA_MIB = 1024
BLOCK_MIB = 64
PINNED_MIB = 1536
"""More than the quota."""
TAG = "default"
"""The simulator's name for those who tell none."""
WHEEL = Path(__file__).with_name("wheel.py")
EXPANDABLE = {"PYTORCH_NPU_ALLOC_CONF": "expandable_segments:True"}


@dataclass
class Judge:
    facts: int = 0
    wrong: int = 0

    def hold(self, what: str, expected: object, seen: object) -> None:
        """Something that must be so, told as it is found."""
        self.facts += 1
        self.wrong += expected != seen
        verdict = "" if expected == seen else f"   WRONG: {told(expected)} was expected"
        sys.stdout.write(f"  {what:58} {told(seen)}{verdict}\n")
        sys.stdout.flush()


def told(value: object) -> str:
    return "no error" if value is None else str(value)


class Application:
    """The process with the wheel, on a card that only it and its children use."""

    def __init__(self, process: subprocess.Popen[str], machine: Machine, log: Path) -> None:
        self.process = process
        self.machine = machine
        self.log = log

    def step(self, name: str, number: int = 0) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{name} {number}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"{name}: it ended with {self.process.wait()}: {self.log.read_text()}"
        return json.loads(line)

    def card(self) -> dict[str, int]:
        """What the card says that the application has of it, in MiB; how often it was given more than the quota."""
        tag = next(tag for tag in self.machine.status()["tags"] if tag["name"] == TAG)["cards"][0]
        sizes = {name: tag[name] // MIB for name in ("app", "overhead", "peak")}
        return {**sizes, "used": sizes["app"] + sizes["overhead"], "excesses": tag["excesses"]}

    def info(self) -> list[int]:
        """What torch says is free and what there is in all, in MiB."""
        return [size // MIB for size in self.step("info")]

    def end(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait()


@contextmanager
def application(python: str, wiring: str, *, by_file: bool, **env: str) -> Iterator[Application]:
    """The wheel in a container of its own on a machine of its own; nothing of them is left afterwards."""
    with tempfile.TemporaryDirectory(prefix="vnpu-torch.") as folder:
        own, shared = Path(folder) / "own", Path(folder) / "shared"
        own.mkdir()
        shared.mkdir()
        machine = Machine(Path(folder) / "npu", f"torch/{wiring}")
        machine.tool("create", "chip=Ascend910B4")
        machine.tool("expect", TAG, str(QUOTA_MIB))
        container = Container(own, shared, memory=str(QUOTA_MIB))
        command = [python, str(WHEEL)]
        variables = [f"{name}={value}" for name, value in env.items()]
        if by_file:
            quota = shared / "quota.json"
            quota.write_text(json.dumps({"memory_mib": QUOTA_MIB}))
            # What the environment says is not what counts then.
            container.memory = str(4 * QUOTA_MIB)
            with running([*plugged(container, quota), "env", *variables, *command], machine, {}) as made:
                yield made
            return
        settings = {**container.env, "LD_PRELOAD": str(native.library()), **env}
        with container.running(), running(command, machine, settings) as made:
            yield made


@contextmanager
def running(command: Sequence[str], machine: Machine, env: dict[str, str]) -> Iterator[Application]:
    whole = {"PATH": os.environ["PATH"], "NPU_CLIENT": "", **machine.env, **env}
    log = machine.state.with_name("stderr")
    with log.open("w") as stderr:
        process = subprocess.Popen(
            command, env=whole, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True
        )
    try:
        yield Application(process, machine, log)
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()


def judge_memory(judge: Judge, torch: Application) -> None:
    """The whole of the quota, and not a page more; afterwards it goes on."""
    free, total = torch.info()
    judge.hold("mem_get_info: total, MiB", QUOTA_MIB, total)
    judge.hold("the runtime itself has of the card, MiB", QUOTA_MIB - free, torch.card()["overhead"])
    judge.hold("mem_get_info: free, MiB", QUOTA_MIB - torch.card()["overhead"], free)
    kind, text = torch.step("fill", BLOCK_MIB)
    judge.hold("tensors until they are refused: the error", "OutOfMemoryError", kind)
    judge.hold("its words name the quota", expected=True, seen=f"{QUOTA_MIB}.00 MiB total capacity" in text)
    judge.hold("the card then holds, MiB", QUOTA_MIB, torch.card()["used"])
    judge.hold("mem_get_info then: free, total, MiB", [0, QUOTA_MIB], torch.info())
    judge.hold("freed: reserved by torch, bytes", 0, torch.step("free"))
    judge.hold("freed: mem_get_info, MiB", [QUOTA_MIB - torch.card()["used"], QUOTA_MIB], torch.info())
    judge.hold("and on: 512 MiB", None, torch.step("hold", 512))


def judge_work(judge: Judge, torch: Application) -> None:
    judge.hold("a copy to the card and back is what it was", expected=True, seen=torch.step("copy"))
    judge.hold("1000 operators and a wait", None, torch.step("launch", 1000))
    judge.hold("a captured graph, replayed 10 times", None, torch.step("graph", 10))


def judge_pinned(judge: Judge, torch: Application) -> None:
    before = torch.card()["used"]
    judge.hold(f"{PINNED_MIB} MiB of pinned memory", expected=True, seen=torch.step("pin", PINNED_MIB))
    judge.hold("which the card does not hold, MiB", before, torch.card()["used"])
    torch.step("free")


def judge_two(judge: Judge, torch: Application) -> None:
    """A spawned process and its parent share one quota."""
    judge.hold("two processes: the first takes 512 MiB", None, torch.step("hold", 512))
    judge.hold("a spawned one fills the rest until", "OutOfMemoryError", torch.step("spawn", BLOCK_MIB)[0])
    judge.hold("together they hold, MiB", QUOTA_MIB, torch.card()["used"])
    judge.hold("the first is refused then", "OutOfMemoryError", (torch.step("hold", BLOCK_MIB) or [None])[0])
    judge.hold("the second is killed", -9, torch.step("kill"))
    judge.hold("and the first has its part at once: 256 MiB", None, torch.step("hold", 256))


def judge_wheel(judge: Judge, python: str, wiring: str, *, by_file: bool) -> None:
    way = "/etc/ld.so.preload" if by_file else "LD_PRELOAD"
    for title, env in (("", {}), (", expandable segments", EXPANDABLE)):
        sys.stdout.write(f"\n{wiring}, {way}{title}\n")
        with application(python, wiring, by_file=by_file, **env) as torch:
            if not env:
                sys.stdout.write("  torch {}, torch_npu {}, {} x {}\n".format(*torch.step("device")))
            judge_memory(judge, torch)
            torch.step("free")
            judge_work(judge, torch)
            judge_pinned(judge, torch)
            judge_two(judge, torch)
            judge.hold("most that the card held at any moment, MiB", QUOTA_MIB, torch.card()["peak"])
            judge.hold("allocations that the card granted beyond the quota", 0, torch.card()["excesses"])
            judge.hold("exit code", 0, torch.end())


def main(python: str) -> int:
    judge = Judge()
    for by_file in (False, True):
        if by_file and not mount_namespace():
            sys.stdout.write("\n/etc/ld.so.preload is not tried: this machine allows no mount namespace\n")
            continue
        for wiring in ("nested", "fused"):
            judge_wheel(judge, python, wiring, by_file=by_file)
    sys.stdout.write(f"\n{judge.facts} facts, {judge.wrong} wrong\n")
    return 1 if judge.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
