from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING

import pytest

from vnpu import terminal

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
