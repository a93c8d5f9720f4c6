"""``make help`` tells every target that a user may call."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_help_lists_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = {name for line in re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE) for name in line.split()}
    done = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=ROOT, capture_output=True, check=True, text=True
    )
    told = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert told.keys() == targets
