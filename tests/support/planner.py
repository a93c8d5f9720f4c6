"""Runs of the planner inside the test's own process."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from types import SimpleNamespace
from typing import NamedTuple
from unittest.mock import patch

from vnpu.fit.__main__ import main


class Run(NamedTuple):
    """What a run of the planner left behind."""

    code: int
    out: str
    err: str


def run(*arguments: str, stdin: bytes = b"") -> Run:
    """Runs the planner with these arguments and this standard input."""
    out, err = io.StringIO(), io.StringIO()
    with (
        redirect_stdout(out),
        redirect_stderr(err),
        patch.object(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(stdin))),
    ):
        code = main(arguments)
    return Run(code, out.getvalue(), err.getvalue())
