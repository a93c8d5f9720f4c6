"""Containers as the C side sees them: an environment, a region, registries, and a limiter that keeps them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interceptor import region
from tests.support import native
from vnpu import names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PATIENCE_S = 20.0
"""How long a test waits for what must come: the machine is shared, so this is no measurement."""


def eventually(condition: Callable[[], bool], *, within_s: float = PATIENCE_S) -> bool:
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


@dataclass
class Container:
    """One container: ``shared`` is the directory of the registries, ``own`` holds everything else."""

    own: Path
    shared: Path
    memory: str | None = "1024"
    priority: str | None = "20"
    devices: str | None = "0"
    arch: str = "x86_64"
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def region_path(self) -> Path:
        return self.own / "region"

    @property
    def mirror_path(self) -> Path:
        return self.own / "mirror"

    @property
    def log_path(self) -> Path:
        return self.own / "limiter.log"

    def registry_path(self, card: int = 0) -> Path:
        return self.shared / f"{card}{names.REGISTRY_SUFFIX}"

    @property
    def env(self) -> dict[str, str]:
        wanted = {
            names.ENV_REGION: str(self.region_path),
            names.ENV_LOG: str(self.log_path),
            names.ENV_GLOBAL_SHM: str(self.shared / "0_global_registry"),
            names.ENV_LOCAL_SHM: str(self.mirror_path),
            names.ENV_MEMORY: self.memory,
            names.ENV_PRIORITY: self.priority,
            names.ENV_VISIBLE_DEVICES: self.devices,
            "PATH": os.environ["PATH"],
            **self.extra,
        }
        return {name: value for name, value in wanted.items() if value is not None}

    def limiter(self, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        command = [*native.emulator(self.arch), str(native.limiter(self.arch)), *arguments]
        return subprocess.run(
            command, env=self.env | env, capture_output=True, text=True, check=False, timeout=PATIENCE_S * 2
        )

    def read(self) -> region.Region:
        return region.read_region(self.region_path)

    def _view(self) -> Any:
        layouts = region.ffi()
        content = self.region_path.read_bytes()
        return layouts.from_buffer("struct vnpu_region *", content.ljust(layouts.sizeof("struct vnpu_region"), b"\0"))

    def pids(self) -> tuple[int, int]:
        """Limiter and guardian."""
        view = self._view()
        return view.limiter_pid, view.guardian_pid

    def holder(self) -> int | None:
        """The tenant that has the turn on card 0."""
        return region.read_registry(self.registry_path()).holder

    def has_work(self, pid: int) -> bool:
        """Whether a process says that it launched on card 0 in this turn."""
        view = self._view()
        start = region.read_registry(self.registry_path()).start_us
        running = {view.slots[slot].pid: view.books[0].slots[slot].running for slot in range(view.slots_used)}
        return start != 0 and bool(running.get(pid) == start)

    def lives(self) -> bool:
        return self.limiter("status").returncode == 0

    @contextmanager
    def running(self) -> Iterator[Container]:
        """With a limiter that is ready; afterwards limiter and guardian are gone."""
        started = self.limiter("start")
        assert started.returncode == 0, started.stderr
        try:
            yield self
        finally:
            self.limiter("stop")


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return _state(pid) != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def stopped(pid: int) -> bool:
    return _state(pid) == "T"


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    assert pid > 1, "only processes that a test started"
    os.kill(pid, number)


def freeze(pid: int) -> None:
    """Stops a process; what it was doing when the signal was sent is done."""
    kill(pid, signal.SIGSTOP)
    assert eventually(lambda: stopped(pid))
