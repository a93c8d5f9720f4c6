"""The second part of ``make run``, with wide margins."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from tests import demo

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"
ANY_SHARE = 30.0
"""A third of the card lies between the two shares: within these points neither gets the other's."""

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the clients are built for x86_64")


def test_two_containers_are_held_to_their_slices(capsys: pytest.CaptureFixture[str]) -> None:
    code = demo.main(EXAMPLES, ANY_SHARE)

    text = capsys.readouterr().out
    assert code == 0, text
    assert text.count("| 0 / 8192 ") == 2
    assert text.count("aclrtMalloc of 9216 MiB: refused, out of memory; of 1 MiB afterwards: granted") == 2
    assert text.count("hami_vgpu_memory_limit_bytes{") == text.count("} 8589934592.0") == 2
    assert "card 53490000-42C711D4-20B03704-4A10C8D4-00000001, NPU_MEM_QUOTA=8192 NPU_PRIORITY=40" in text


def test_the_same_without_namespaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "_SECONDS", 1.0)
    refusing = tmp_path / "unshare"
    refusing.write_text("#!/bin/sh\nexit 1\n")
    refusing.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    code = demo.main(EXAMPLES, ANY_SHARE)

    text = capsys.readouterr().out
    assert code == 0, text
    assert text.count("VNPU_REGION stands in") == 2


def test_a_share_that_is_off_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(demo, "_SECONDS", 1.0)

    assert demo.main(EXAMPLES, -1.0) == 1, capsys.readouterr().out
