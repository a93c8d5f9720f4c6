"""A progress bar for long plans, where somebody watches a terminal and rich is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from vnpu.fit.plan import Workload

LONG_PLAN: Final = 500
"""Pods from which a plan takes long enough to be watched."""


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
