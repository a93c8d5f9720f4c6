"""What several tests of the server start with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.mounts import Mount

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def mount(tmp_path: Path) -> Mount:
    """A serving pair on disk."""
    folder = tmp_path / "tls"
    folder.mkdir()
    return Mount(folder)
