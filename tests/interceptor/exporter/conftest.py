from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.exporter import Exporter

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def exporter(tmp_path: Path) -> Exporter:
    return Exporter(tmp_path / "host")
