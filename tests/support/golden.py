"""Golden annotation texts: what upstream writes, what is legal but odd, and what is illegal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

_FOLDER: Final = Path(__file__).parents[1] / "fixtures" / "annotations"


def cases(codec: str, *kinds: str) -> Any:
    """The cases of these kinds in one codec's file, as pytest parameters named after the case."""
    document = json.loads((_FOLDER / f"{codec}.json").read_text(encoding="utf-8"))
    return [pytest.param(case, id=case["case"]) for kind in kinds for case in document[kind]]
