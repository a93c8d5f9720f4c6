"""``HYPOTHESIS_PROFILE=long`` reaches every property test: none has a number of examples of its own."""

from __future__ import annotations

import re
from pathlib import Path

FIXED = re.compile(r"max_examples=\d+[,)]")


def test_the_number_of_examples_follows_the_profile() -> None:
    files = Path(__file__).parent.rglob("*.py")
    assert [path for path in files if FIXED.search(path.read_text())] == []
