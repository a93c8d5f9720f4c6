"""Signs of life while somebody watches a terminal and rich is installed: large files are read, long plans are made."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from vnpu.fit.plan import Workload

LONG_PLAN: Final = 500
"""Pods from which a plan takes long enough to be watched."""


LARGE_INPUT: Final = 4 * 10**6
"""Bytes from which reading takes long enough to be watched."""


def reading(paths: Iterable[Path], stream: TextIO, *, cluster: bool = False) -> AbstractContextManager[object]:
    """Shows how long reading takes, while the block runs.

    Args:
        paths: what is read; what is not there is for the reader to tell.
        stream: where it is shown; nothing is shown where it is no terminal.
        cluster: whether a cluster is read too.
    """
    size = sum(map(_size, paths))
    if not stream.isatty() or (size < LARGE_INPUT and not cluster):
        return nullcontext()
    try:
        from rich.console import Console  # noqa: PLC0415 - only where a terminal is
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415
    except ImportError:
        return nullcontext()
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    bar = Progress(*columns, console=Console(file=stream), transient=True)
    what = ["the cluster"] * cluster + [f"{size / 10**6:.0f} MB of files"] * (size >= LARGE_INPUT)
    bar.add_task(f"Reading {' and '.join(what)}", total=None)
    return bar


def _size(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_size
    return 0


def watched(workloads: Sequence[Workload], stream: TextIO) -> Iterable[Workload]:
    """The workloads one after the other, with a bar that grows as they are taken.

    Args:
        workloads: what is to be placed.
        stream: where the bar is drawn; nothing is drawn where it is no terminal.
    """
    total = sum(len(workload.pods) for workload in workloads)
    if total < LONG_PLAN or not stream.isatty():
        return workloads
    try:
        from rich.console import Console  # noqa: PLC0415 - only where a terminal is
        from rich.progress import Progress  # noqa: PLC0415
    except ImportError:
        return workloads

    def counted() -> Iterable[Workload]:
        with Progress(console=Console(file=stream), transient=True) as bar:
            task = bar.add_task("Placing pods", total=total)
            for workload in workloads:
                yield workload
                bar.advance(task, len(workload.pods))

    return counted()
