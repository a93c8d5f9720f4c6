"""The simulated NPU alone: a machine of its own per test, and processes that call CANN on it as they are told."""

from __future__ import annotations

import json
import os
import select
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from tests.support import native

if TYPE_CHECKING:
    import signal
    from pathlib import Path

WIRINGS = ("nested", "fused")

KIB = 1 << 10
MIB = 1 << 20
MS = 1_000_000
"""In ns, as device time is told."""

APP = 33
RUNTIME = 7
HUGE = 1 << 17
KERNEL_MAGIC = 0x4C454E52454B494E

ASAN_OPTIONS = "detect_leaks=0:verify_asan_link_order=0"
"""Processes are killed with what they hold, and some have a library preloaded."""

CONTEXT_NULL = 107002
OUT_OF_MEMORY = 207001
NOT_SUPPORTED = 207000
INVALID_DEVICE = 107001
PARAM_INVALID = 107000


def flag(card: int = 0, *, kind: int = 1, huge: bool = False, module: int = APP) -> int:
    """The flag of halMemAlloc."""
    return card | kind << 10 | 1 << 14 | (HUGE if huge else 0) | module << 56


@dataclass(frozen=True)
class Answer:
    """What a call came to: code, how often it was made, how long that took, and the variables named in it."""

    code: int
    times: int
    ns: int
    values: dict[str, int]

    def __getitem__(self, name: str) -> int:
        return self.values[name]


class Client:
    """A process on a machine. Strings are arguments as npu-client reads them: ``&p``, ``p``, ``'text``."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def answers(self, *, within_s: float) -> bool:
        """Whether the call that was started comes back in that time."""
        return bool(select.select([self.process.stdout], [], [], within_s)[0])

    def finish(self) -> Answer:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the process ended: {self.process.poll()}"
        assert not line.startswith("?"), line
        code, times, ns, *values = line.split()
        return Answer(int(code), int(times), int(ns), {k: int(v) for k, v in (value.split("=") for value in values)})

    def call(self, name: str, *arguments: int | str, how: str = "") -> Answer:
        self.start(" ".join([*how.split(), name, *map(str, arguments)]))
        return self.finish()

    def do(self, name: str, *arguments: int | str, how: str = "") -> Answer:
        """A call that has to succeed."""
        answer = self.call(name, *arguments, how=how)
        assert answer.code == 0, (name, arguments, answer)
        return answer

    def has(self, name: str) -> bool:
        return self.call("has", name).code == 1

    def value(self, variable: str) -> int:
        return self.do("get", variable)[variable]

    def word(self, variable: str, offset: int) -> int:
        """Eight bytes of a variable."""
        return self.do("peek", variable, offset).times

    def calls(self, name: str) -> int:
        """How often a function of CANN was entered in this process, through whatever layer."""
        return self.call("npu_sim_calls", f"'{name}").code

    def kernel(self, variable: str, us: int, *, group: int = 0, members: int = 0) -> None:
        """Describes a kernel in a variable, to be launched with its address."""
        for index, word in enumerate((KERNEL_MAGIC, us * 1000, group, members)):
            self.do("poke", variable, 8 * index, 8, word)

    def launch(self, variable: str, stream: str = "0", *, times: int = 1) -> Answer:
        return self.do("rtKernelLaunch", 0, 1, f"&{variable}", 32, 0, stream, how=f"repeat {times}")

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()

    def end(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait()


@dataclass
class Machine:
    """A simulated machine: a file of cards, as one wiring of CANN sees it."""

    state: Path
    wiring: str = "nested"
    env: dict[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return native.simulator(self.wiring)

    def environment(self, **env: str) -> dict[str, str]:
        own = {"NPU_SIM_STATE": str(self.state), "ASAN_OPTIONS": ASAN_OPTIONS}
        return {**os.environ, **own, **self.env, **env}

    def run(self, tool: str, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.folder / tool), *arguments]
        return subprocess.run(command, env=self.environment(**env), capture_output=True, text=True, check=False)

    def tool(self, *arguments: str) -> str:
        result = self.run("npu-sim", *arguments)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = json.loads(self.tool("status"))
        return status

    def card(self, index: int = 0) -> dict[str, Any]:
        card: dict[str, Any] = self.status()["cards"][index]
        return card

    def tag(self, name: str = "default", card: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = next(tag for tag in self.status()["tags"] if tag["name"] == name)["cards"][card]
        return found

    def client(self, *libraries: str, device: int | None = 0, preload: str = "", **env: str) -> Client:
        """A process with a context on ``device``, unless None."""
        names = libraries or ("ascendcl", "acl_op_compiler", "acl_dvpp", "acl_dvpp_mpi", "dcmi")
        whole = self.environment(**env)
        if preload:
            whole["LD_PRELOAD"] = preload
        process = subprocess.Popen(
            [str(self.folder / "npu-client"), *(str(self.folder / f"lib{name}.so") for name in names)],
            env=whole,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        client = Client(process)
        if device is not None:
            try:
                client.do("aclrtSetDevice", device)
            except BaseException:
                client.kill()
                raise
        return client
