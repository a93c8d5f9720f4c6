"""A process that uses a simulated NPU under libvnpu.so, and does what a test tells it, call by call."""

from __future__ import annotations

import json
import os
import select
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.support import native
from tests.support.containers import PATIENCE_S, Container
from tests.support.simulated_npu import ASAN_OPTIONS, KERNEL_MAGIC

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

MIB = 1 << 20
OUT_OF_MEMORY = 207001
NOT_SUPPORTED = 207000
HAL_OUT_OF_MEMORY = 6
HAL_NOT_SUPPORTED = 0xFFFE


@dataclass
class Machine:
    """A simulated machine: a file of cards that processes share, as one wiring of CANN sees it."""

    state: Path
    wiring: str = "nested"
    arch: str = "x86_64"
    preload: str | None = None
    """What to preload there; None for the library that is shipped."""

    def libraries(self, wiring: str) -> Path:
        return native.simulator(wiring if self.arch == "x86_64" else f"{self.arch}/{wiring}")

    def command(self, program: Path) -> list[str]:
        """What runs a program of this machine's kind."""
        return [*native.emulator(self.arch, dynamic=True), str(program)]

    @property
    def env(self) -> dict[str, str]:
        own = {"NPU_SIM_STATE": str(self.state), "ASAN_OPTIONS": ASAN_OPTIONS}
        return {**own, "LD_LIBRARY_PATH": str(self.libraries(self.wiring))}

    def tool(self, *arguments: str) -> str:
        command = [*self.command(self.libraries("nested") / "npu-sim"), *arguments]
        env = {**os.environ, **self.env, "LD_LIBRARY_PATH": str(self.libraries("nested"))}
        result = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def status(self) -> Any:
        """What the cards themselves say: the truth that the promises are held against."""
        return json.loads(self.tool("status"))


def kernel(us: int) -> tuple[str, str]:
    """The commands that describe a kernel in buffer k."""
    return f"poke k 0 64 {KERNEL_MAGIC}", f"poke k 8 64 {us * 1000}"


class Client:
    """The process. A call answers its result; what it wrote is kept in variables of one letter."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def start(self, command: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def answers(self, *, within_s: float) -> bool:
        """Whether the command that was started comes back in that time."""
        return bool(select.select([self.process.stdout], [], [], within_s)[0])

    def answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def ask(self, command: str) -> str:
        self.start(command)
        return self.answer()

    def call(self, name: str, *arguments: int | str) -> int | None:
        """The result of a function of CANN; None when this CANN lacks it."""
        answer = self.ask(" ".join(["call", name, *map(str, arguments)]))
        return None if answer == "absent" else int(answer)

    def get(self, variable: str) -> int:
        return int(self.ask(f"get {variable}"))

    def kernel(self, us: int) -> None:
        """Describes a kernel in buffer k."""
        for command in kernel(us):
            self.ask(command)

    def launch(self, stream: str = "0") -> int | None:
        return self.call("rtKernelLaunch", 0, 1, "@k", 32, 0, stream)

    def start_launch(self) -> None:
        self.start("call rtKernelLaunch 0 1 @k 32 0 0")

    def memory_info(self) -> tuple[int, int]:
        assert self.call("aclrtGetMemInfo", 1, "&y", "&z") == 0
        return self.get("y"), self.get("z")

    def end(self) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        code = self.process.wait(PATIENCE_S)
        self.process.stdout.close()
        return code


@contextmanager
def client(
    container: Container,
    machine: Machine,
    *,
    way: str = "linked",
    preload: bool = True,
    through: Sequence[str] = (),
    library: Path | None = None,
    device: int | None = 0,
    stderr: int | None = None,
    **env: str,
) -> Iterator[Client]:
    """A client in ``container``; ``device`` is set first, unless None. It ends with the context, at the latest.

    ``through`` is a command that runs the command which follows it.
    """
    whole = {**container.env, **machine.env, "NPU_CLIENT": way, **env}
    if preload:
        whole["LD_PRELOAD"] = str(library or machine.preload or native.library(machine.arch))
    process = subprocess.Popen(
        [*through, *machine.command(native.client("client", machine.arch))],
        env=whole,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    )
    made = Client(process)
    try:
        if device is not None:
            answer = made.call("aclrtSetDevice", device)
            assert answer == 0, answer
        yield made
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
