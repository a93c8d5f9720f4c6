"""The offline planner: ``python -m vnpu.fit``."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Final

from vnpu import terminal
from vnpu.errors import VnpuError
from vnpu.fit import arguments, inputs, render
from vnpu.fit.progress import reading, watched

if TYPE_CHECKING:
    from collections.abc import Sequence

ALL_PLACED: Final = 0
SOME_UNPLACED: Final = 1
BAD_INPUT: Final = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Plans what the command line says and writes the report to standard output; the exit code.

    Args:
        argv: the arguments, those of the process by default.
    """
    try:
        options = arguments.parse(sys.argv[1:] if argv is None else argv)
        with nullcontext() if options.quiet else reading(options.files, sys.stderr, cluster=options.from_cluster):
            planner = inputs.load(options)
        watch = iter if options.quiet else partial(watched, stream=sys.stderr)
        report = planner.report(explained=options.explain, progress=watch)
        with terminal.output() as stream:
            render.write(report, options.output, stream, warnings=not options.quiet)
    except VnpuError as error:
        terminal.complain(f"error: {error}")
        return BAD_INPUT
    return SOME_UNPLACED if report.plan.unplaced else ALL_PLACED


if __name__ == "__main__":
    sys.exit(main())
