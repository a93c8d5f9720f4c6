"""The offline planner: ``python -m vnpu.fit``."""

from __future__ import annotations

import io
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Final

from vnpu.errors import VnpuError
from vnpu.fit import arguments, inputs, render
from vnpu.fit.progress import watched

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
        planner = inputs.load(options)
        watch = iter if options.quiet else partial(watched, stream=sys.stderr)
        report = planner.report(explained=options.explain, progress=watch)
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # a terminal that cannot show a character shows a question mark
        render.write(report, options.output, sys.stdout, warnings=not options.quiet)
        sys.stdout.flush()
    except VnpuError as error:
        sys.stderr.write(render.printable(f"error: {error}") + "\n")
        return BAD_INPUT
    except BrokenPipeError:
        # The reader of the plan has seen enough. Python would complain once more when it closes standard output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return SOME_UNPLACED if report.plan.unplaced else ALL_PLACED


if __name__ == "__main__":
    sys.exit(main())
