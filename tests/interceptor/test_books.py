from __future__ import annotations

import subprocess

import pytest

from tests.support import native


@pytest.mark.parametrize("flavour", ["x86_64", "thread", "address"])
def test_threads_as_processes_never_pass_the_quota(flavour: str) -> None:
    result = subprocess.run(native.unit("books", flavour), capture_output=True, text=True, check=False)

    assert (result.returncode, result.stdout, result.stderr) == (0, "ok\n", "")
