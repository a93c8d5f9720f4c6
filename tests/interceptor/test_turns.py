from __future__ import annotations

import subprocess

import pytest

from tests.support import native


@pytest.mark.parametrize(("flavour", "part"), [("x86_64", []), ("thread", ["threads"]), ("address", ["threads"])])
def test_the_rules_of_turns(flavour: str, part: list[str]) -> None:
    command = [*native.unit("turns", flavour), *part]
    result = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (result.returncode, result.stdout, result.stderr) == (0, "ok\n", "")
