from __future__ import annotations

import io
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from vnpu import terminal
from vnpu.terminal import OutputError

if TYPE_CHECKING:
    from pathlib import Path


def test_what_is_written_is_out_when_the_block_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "out").open("w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        with terminal.output() as out:
            out.write("report")
        assert (tmp_path / "out").read_text() == "report"


def test_a_character_that_cannot_be_shown_is_a_question_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(buffer, encoding="ascii"))
    with terminal.output() as out:
        out.write("a \N{SNOWMAN}")
    assert buffer.getvalue() == b"a ?"


def test_a_reader_that_leaves_ends_nothing_but_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        with terminal.output() as out:
            print("report", file=out, flush=True)
            pytest.fail("there is a reader")
        with terminal.output() as out:
            out.write("report")


def test_other_faults_are_not_hidden() -> None:
    with pytest.raises(KeyError), terminal.output():
        raise KeyError


def test_a_device_that_is_full_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/full", "w") as stream:  # noqa: PTH123 - a device, not a path of ours
        monkeypatch.setattr(sys, "stdout", stream)
        with pytest.raises(OutputError, match=r"standard output.*No space left"), terminal.output() as out:
            out.write("report")


def test_an_output_that_is_closed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(OutputError, match="closed"), terminal.output():
        pytest.fail("there is no output")


def test_complaints_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.complain("a\nb\x1b")
    assert capsys.readouterr().err == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}\n"


@pytest.mark.parametrize("closing", ["2>&-", "2>/dev/full"])
def test_a_complaint_that_nobody_takes_changes_nothing(closing: str) -> None:
    program = "import sys; from vnpu import terminal; terminal.complain('lost'); sys.exit(2)"
    done = subprocess.run(["sh", "-c", f'"$0" -c "$1" {closing}', sys.executable, program], check=False)
    assert done.returncode == 2
