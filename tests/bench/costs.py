"""What the interceptor adds to a call, to a process and to its start.

The same programs run with and without it, in turns. A single process is told by its fastest turns, since neighbours
slow it and never speed it up; what processes do to each other is told by the median.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.figure import Figure
from tests.support import native
from tests.support.containers import Container
from tests.support.npu_client import Machine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.bench.figure import Effort

CROWD = 300
STARTS_PER_ROUND = 20


def launch_figures(effort: Effort) -> Iterator[Figure]:
    with _container() as env:
        handed_in = [_pair("launch", 1, env) for _ in range(2 * effort.rounds)]
        done = [_pair("queue", 1, env) for _ in range(2 * effort.rounds)]
    yield _difference("launch_extra_ns", handed_in, 1, "ns a launch", min)
    yield _difference("launch_with_marks_extra_ns", done, 1, "ns a launch until it is done", min)


def memory_figures(effort: Effort) -> Iterator[Figure]:
    with _container() as env:
        alone = [_pair("memory", 1, env) for _ in range(effort.rounds)]
        together = [_pair("memory", 8, env) for _ in range(effort.rounds)]
    yield _difference("memory_extra_us", alone, 1e-3, "us for allocating and freeing", min)
    yield _difference(
        "memory_extra_us_8_processes", together, 1e-3, "us for the same in 8 processes", statistics.median
    )


def _difference(
    name: str, pairs: list[tuple[float, float]], scale: float, what: str, typical: Callable[[list[float]], float]
) -> Figure:
    bare, held = (typical(list(column)) * scale for column in zip(*pairs, strict=True))
    median = statistics.median(late - early for early, late in pairs) * scale
    note = f"{bare:.3g} {what}, {held:.3g} under the interceptor; median of {len(pairs)} differences {median:.3g}"
    return Figure(name, held - bare, note)


@contextmanager
def _container() -> Iterator[Mapping[str, str]]:
    """A container with a limiter and a card of its own: the environment of its processes."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("own", "shared"):
            (Path(folder) / name).mkdir()
        container = Container(own=Path(folder) / "own", shared=Path(folder) / "shared")
        machine = Machine(Path(folder) / "npu")
        # So that quota and card hold a crowd, whose contexts would fill them.
        machine.tool("create", "context_mib=0", "stream_kib=0")
        with container.running():
            yield {**container.env, **machine.env}


def _pair(what: str, processes: int, env: Mapping[str, str]) -> tuple[float, float]:
    """Nanoseconds for each call, without and with the library."""
    return _cost(what, processes, env), _cost(what, processes, {**env, "LD_PRELOAD": str(native.library())})


def _cost(what: str, processes: int, env: Mapping[str, str]) -> float:
    command = [str(native.client("cost")), what]
    running = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
    told = [process.communicate()[0] for process in running]
    assert not any(process.returncode for process in running)
    return statistics.median(map(float, told))


def preload_figure(effort: Effort) -> Iterator[Figure]:
    """A program that never uses an NPU."""
    held = {"LD_PRELOAD": str(native.library())}
    pairs = [(_start_ns({}), _start_ns(held)) for _ in range(STARTS_PER_ROUND * effort.rounds)]
    yield _difference("preload_extra_ms", pairs, 1e-6, "ms for starting /bin/true", statistics.median)


def _start_ns(env: Mapping[str, str]) -> int:
    begun = time.perf_counter_ns()
    _, status = os.waitpid(os.posix_spawn("/bin/true", ["true"], env), 0)
    assert status == 0
    return time.perf_counter_ns() - begun


def crowd_figure(_: Effort) -> Iterator[Figure]:
    with _container() as env:
        bare = _crowd_s(env)
        held = _crowd_s({**env, "LD_PRELOAD": str(native.library())})
    yield Figure("crowd_s", held, f"{CROWD} processes start at once, each allocates; without interceptor {bare:.1f} s")


def _crowd_s(env: Mapping[str, str]) -> float:
    """Seconds until the last of a crowd has its memory; all of them hold it until then."""
    command = [str(native.client("client"))]
    begun = time.perf_counter()
    with ExitStack() as stack:
        crowd = [
            stack.enter_context(
                subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            for _ in range(CROWD)
        ]
        for process in crowd:
            assert process.stdin is not None
            process.stdin.write("call aclrtSetDevice 0\ncall rtMalloc &a 4096 0 33\n")
            process.stdin.flush()
        for process in crowd:
            assert process.stdout is not None
            assert [process.stdout.readline(), process.stdout.readline()] == ["0\n", "0\n"]
        return time.perf_counter() - begun
