"""A private folder, and what servers that were killed left behind."""

from __future__ import annotations

import os
import stat
import tempfile
from typing import TYPE_CHECKING

import pytest

from webhook.folder import private_folder

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_it_is_private_and_goes_away(temporary: Path) -> None:
    with private_folder() as folder:
        assert folder.parent == temporary
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / "tls.key").write_text("secret")
    assert list(temporary.iterdir()) == []


def test_a_child_does_not_remove_it() -> None:
    with private_folder() as folder:
        pid = os.fork()
        if pid == 0:
            try:
                raise SystemExit
            finally:
                os._exit(0 if folder.exists() else 1)
        assert os.waitpid(pid, 0)[1] == 0
        assert folder.exists()


def test_what_others_left_behind_is_removed_and_what_they_use_is_not(temporary: Path) -> None:
    abandoned, unrelated = temporary / "vnpu-webhook-abandoned", temporary / "other"
    for folder in (abandoned, unrelated):
        folder.mkdir()
        (folder / "tls.key").write_text("secret")
    link = temporary / "vnpu-webhook-link"
    link.symlink_to(unrelated)
    with private_folder() as first, private_folder() as second:
        assert first.exists()
        assert second.exists()
        assert not abandoned.exists()
    assert (unrelated / "tls.key").exists(), "no link is followed"
