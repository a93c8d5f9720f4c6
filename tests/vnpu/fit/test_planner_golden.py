"""Recorded runs of the planner: each ``*.expected`` has the command, what it prints, and its exit code.

Adding a case needs no code: a file whose first line is the command, run in tests/fixtures/planner.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import jsonschema
import pytest
import yaml

from tests.support.planner import run

TOP = Path(__file__).parents[3]
FOLDER = TOP / "tests" / "fixtures" / "planner"
COMMAND = "$ python -m vnpu.fit "
SCHEMA = json.loads((TOP / "vnpu" / "fit" / "plan.schema.json").read_text())


@pytest.mark.parametrize("case", sorted(FOLDER.glob("*.expected")), ids=lambda case: case.stem)
def test_a_run_prints_what_was_recorded(case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)
    command, _, expected = case.read_text().partition("\n")
    assert command.startswith(COMMAND)
    found = run(*shlex.split(command.removeprefix(COMMAND)))
    assert f"{found.out}{found.err}exit {found.code}\n" == expected
    if "-o json" in command:
        jsonschema.validate(json.loads(found.out), SCHEMA)
    if "-o yaml" in command:
        jsonschema.validate(yaml.safe_load(found.out), SCHEMA)


def test_the_picture_in_the_readme_is_what_its_command_draws() -> None:
    (command,) = re.findall(r"^python -m vnpu.fit (.*) > plan.svg$", (TOP / "README.md").read_text(), re.MULTILINE)
    assert run(*shlex.split(command)).out == (TOP / "docs" / "examples" / "plan.svg").read_text()


def test_there_are_cases_for_every_exit_code() -> None:
    codes = {case.read_text().rstrip().rpartition(" ")[2] for case in FOLDER.glob("*.expected")}
    assert codes == {"0", "1", "2"}
