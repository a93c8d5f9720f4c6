"""Every program that a pod of the chart starts is there, and takes the arguments that it gets."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from typing import Any, Final

import pytest

from tests.support import helm
from tests.support.image import PROGRAMS

STARTED: Final = ("kube-scheduler",)
"""Programs of other images."""
REQUIRED_ENV: Final = {"NODE_NAME": "node-1", "LD_LIBRARY_PATH": "/host/usr/local/Ascend/driver/lib64/driver"}


def commands(values: str) -> dict[tuple[str, ...], dict[str, Any]]:
    """The command lines of all containers, each with its container."""
    found = {}
    for entry in helm.template(4, helm.VALUE_SETS[values]).objects:
        if entry["kind"] in {"Deployment", "DaemonSet"}:
            spec = entry["spec"]["template"]["spec"]
            for container in [*spec.get("initContainers", []), *spec["containers"]]:
                found[(*container["command"], *container.get("args", []))] = container
    return found


@pytest.mark.parametrize("values", helm.VALUE_SETS)
def test_every_command_is_one_that_the_image_is_tried_with(values: str) -> None:
    for command in commands(values):
        if command[0] not in STARTED:
            assert command[:2] == ("python", "-m")
            assert command[2] in PROGRAMS


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_command_line_is_taken_by_the_program_itself(program: str) -> None:
    """One option too many, and it is the only one that the parser complains of: all others were taken."""
    assert importlib.util.find_spec(program) is not None
    lines = {
        command[3:]: container
        for values in helm.VALUE_SETS
        for command, container in commands(values).items()
        if command[:3] == ("python", "-m", program)
    }
    for arguments, container in lines.items():
        set_env = {entry["name"]: REQUIRED_ENV[entry["name"]] for entry in container.get("env", [])}
        result = subprocess.run(
            [sys.executable, "-m", program, *arguments, "--no-such-option"],
            env={"PATH": "/usr/bin:/bin", **set_env},
            cwd=helm.TOP,
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )
        assert result.returncode == 2, (arguments, result.stderr)
        said = result.stderr.strip().removesuffix(" (see --help)")
        assert said.endswith("unrecognized arguments: --no-such-option"), (arguments, said)
