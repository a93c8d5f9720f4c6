from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.containers import Container

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def container(tmp_path: Path) -> Container:
    """A container with a quota of 1024 MiB on card 0, whose limiter was not started yet."""
    for name in ("own", "shared"):
        (tmp_path / name).mkdir()
    return Container(own=tmp_path / "own", shared=tmp_path / "shared")


@pytest.fixture
def neighbour(tmp_path: Path, container: Container) -> Container:
    """A second container on the same card."""
    (tmp_path / "neighbour").mkdir()
    return Container(own=tmp_path / "neighbour", shared=container.shared, memory="2048", priority="40")
