"""A signal that arrives at the worst moment ends the program all the same."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.support import native
from tests.support.containers import PATIENCE_S

PROGRAM = """
import os, sys, threading
from interceptor import signals

ended = threading.Event()
signals.on_end(ended.set)
with ended._cond:  # as in the middle of a wait
    os.kill(os.getpid(), int(sys.argv[1]))
ended.wait()
print("ended")
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_in_the_middle_of_a_wait_is_no_deadlock(number: signal.Signals) -> None:
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(int(number))],
        capture_output=True,
        text=True,
        check=False,
        cwd=native.TOP,
        timeout=PATIENCE_S,
    )
    assert (result.returncode, result.stdout) == (0, "ended\n"), result.stderr
