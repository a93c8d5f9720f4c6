"""What a report looks like: the same facts on a terminal, in a pipe, as JSON and as YAML."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from vnpu.fit import inputs
from vnpu.fit.arguments import Output, parse
from vnpu.fit.json_form import to_json
from vnpu.fit.plan import Workload
from vnpu.fit.progress import LARGE_INPUT, LONG_PLAN, reading, watched
from vnpu.fit.render import MissingLibraryError, plain, write
from vnpu.fit.table import Column, Section, sections
from vnpu.mode import Mode
from vnpu.request import PodRequest

if TYPE_CHECKING:
    from vnpu.fit.report import Report

FOLDER = Path(__file__).parents[2] / "fixtures" / "planner"
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
COLOUR = re.compile(r"\x1b\[[0-9;]*3[1-7]m")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="module")
def report() -> Report:
    options = parse(["--nodes", str(FOLDER / "inventory.yaml"), str(FOLDER / "workloads.yaml")])
    return inputs.load(options).report(explained="whole")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("TERM", "xterm")
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    return Terminal()


def words(text: str) -> set[str]:
    return set(ESCAPE.sub("", text).split())


def test_a_terminal_shows_what_a_pipe_gets(report: Report, terminal: Terminal) -> None:
    pipe = io.StringIO()
    write(report, Output.TABLE, pipe)
    write(report, Output.TABLE, terminal)
    assert COLOUR.search(terminal.getvalue())
    assert words(pipe.getvalue()) <= words(terminal.getvalue())
    assert "\x1b" not in pipe.getvalue()


def test_no_colour_where_it_is_not_wanted(report: Report, terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    write(report, Output.TABLE, terminal)
    assert "Not placed" in terminal.getvalue()
    assert not COLOUR.search(terminal.getvalue())


def test_without_rich_a_terminal_gets_plain_text(
    report: Report, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rich", None)
    write(report, Output.TABLE, terminal)
    assert terminal.getvalue() == plain(sections(report))


def test_yaml_and_json_say_the_same(report: Report) -> None:
    as_json, as_yaml = io.StringIO(), io.StringIO()
    write(report, Output.JSON, as_json)
    write(report, Output.YAML, as_yaml)
    assert json.loads(as_json.getvalue()) == yaml.safe_load(as_yaml.getvalue()) == to_json(report)
    assert as_json.getvalue().isascii()


def test_yaml_without_pyyaml_says_what_to_install(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(MissingLibraryError, match="pip install"):
        write(report, Output.YAML, io.StringIO())


def test_warnings_can_be_left_out_of_tables(report: Report) -> None:
    titles = [section.title for section in sections(report)]
    assert titles[-1] == "Warnings"
    assert [section.title for section in sections(report, warnings=False)] == titles[:-1]


def test_cards_in_the_same_state_share_a_row() -> None:
    options = parse(["--card", "Ascend910B3x8", "--slice", "60000x3", "--card-policy", "binpack"])
    cards = next(sections(inputs.load(options).report()))
    assert cards.title == "8 cards on 1 node"
    assert [row[1] for row in cards.rows] == ["0-2", "3-7"]


def test_plain_text_is_aligned_and_printable() -> None:
    columns = (Column("NAME"), Column("MiB", number=True))
    table = Section("Two", columns, (("a\x1b[31m", "5"), ("\ud800long", "10000")))
    assert plain([table]) == "Two\nNAME      MiB\na\ufffd[31m      5\n\ufffdlong   10000\n"
    assert plain([Section("Note", (Column(""),), (("one",),))]) == "Note\none\n"


def workloads(pods: int) -> list[Workload]:
    return [Workload((PodRequest("", f"p-{number}", Mode.SOFT, (), {}),)) for number in range(pods)]


def test_long_plans_show_a_bar_on_a_terminal(terminal: Terminal) -> None:
    asked = workloads(LONG_PLAN)
    assert list(watched(asked, terminal)) == asked
    assert "Placing pods" in terminal.getvalue()


@pytest.mark.parametrize("pods", [LONG_PLAN - 1, LONG_PLAN])
def test_no_bar_for_short_plans_nor_in_a_pipe_nor_without_rich(
    pods: int, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = workloads(pods)
    pipe = io.StringIO()
    assert list(watched(asked, pipe)) == asked
    if pods == LONG_PLAN:
        monkeypatch.setitem(sys.modules, "rich.progress", None)
    assert list(watched(asked, terminal)) == asked
    assert pipe.getvalue() == terminal.getvalue() == ""


@pytest.mark.parametrize("installed", [True, False])
def test_reading_large_files_is_shown_on_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, installed: bool
) -> None:
    large, gone = tmp_path / "large.json", tmp_path / "gone.json"
    with large.open("wb") as file:
        file.truncate(LARGE_INPUT)
    if not installed:
        monkeypatch.setitem(sys.modules, "rich.progress", None)
    for paths, cluster, words in (
        ([large, gone], False, "Reading 4 MB of files"),
        ([gone], True, "Reading the cluster"),
        ([large], True, "Reading the cluster and 4 MB of files"),
        ([gone], False, ""),
    ):
        terminal, pipe = Terminal(), io.StringIO()
        with reading(paths, terminal, cluster=cluster), reading(paths, pipe, cluster=cluster):
            pass
        assert pipe.getvalue() == ""
        assert words in terminal.getvalue() if installed else not terminal.getvalue()
