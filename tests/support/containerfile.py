"""A Containerfile as its instructions, and its steps run for real without a container engine.

A stage's root is the machine's own, below an overlay: what a step writes is seen by the stage alone. The base images
are so stood in for by whatever this machine is, with its Python under the name ``python``.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_ARGUMENT: Final = re.compile(r"\$\{([A-Z_]+)\}")
_STEP_S: Final = 900
_PYTHON: Final = Path(sys.executable).resolve()


@dataclass(frozen=True)
class Instruction:
    """One instruction, its lines joined: ``RUN``, and what stands behind it."""

    word: str
    text: str


@dataclass
class Stage:
    """The instructions from one FROM to the next."""

    base: str
    name: str
    instructions: list[Instruction] = field(default_factory=list)


def parse(path: Path) -> list[Stage]:
    """The stages of a Containerfile, with the defaults of its global arguments filled in."""
    lines = [line for line in path.read_text().splitlines() if line.strip() and not line.lstrip().startswith("#")]
    stages: list[Stage] = []
    defaults: dict[str, str] = {}
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        word, _, text = line.partition(" ")
        if word == "FROM":
            words = [_filled(part, defaults) for part in text.split() if not part.startswith("--")]
            stages.append(Stage(words[0], words[2] if len(words) > 1 else ""))
        elif stages:
            stages[-1].instructions.append(Instruction(word, text.strip()))
        else:
            name, _, value = text.partition("=")
            defaults[name] = value
    return stages


def _filled(text: str, values: Mapping[str, str]) -> str:
    return _ARGUMENT.sub(lambda found: values[found[1]], text)


class Built:
    """The root of a stage whose steps have been run. Only for a process with a mount namespace of its own."""

    def __init__(self, folder: Path, stage: Stage, context: Path, others: Mapping[str, Built], arch: str) -> None:
        """Run the steps.

        Args:
            folder: for the overlay; must not be there yet.
            stage: what to run.
            context: the folder that COPY takes from.
            others: the stages before, by name.
            arch: what the engine calls TARGETARCH.

        Raises:
            CalledProcessError: a step failed.
        """
        self.root = folder / "root"
        self.environment = {"PATH": f"{_PYTHON.parent}:/usr/local/bin:/usr/bin:/bin", "HOME": "/root"}
        self.user = "0:0"
        self._work = "/"
        self._mount(folder, context)
        arguments: dict[str, str] = {}
        for step in stage.instructions:
            match step.word:
                case "ARG":
                    arguments[step.text] = {"TARGETARCH": arch}[step.text]
                case "ENV":
                    for pair in shlex.split(step.text):
                        name, _, value = pair.partition("=")
                        self.environment[name] = _filled(value, self.environment)
                case "WORKDIR":
                    self._work = step.text
                    self._inside(step.text).mkdir(parents=True, exist_ok=True)
                case "COPY":
                    self._copy(step.text, context, others)
                case "RUN":
                    self.run("sh", "-ec", step.text, **arguments)
                case "USER":
                    self.user = step.text
                case "LABEL" | "ENTRYPOINT" | "CMD":
                    pass
                case _:
                    raise ValueError(step.word)

    def _mount(self, folder: Path, hidden: Path) -> None:
        for name in ("root", "upper", "work"):
            (folder / name).mkdir(parents=True)
        options = f"lowerdir=/,upperdir={folder / 'upper'},workdir={folder / 'work'}"
        _call("mount", "-t", "overlay", "overlay", "-o", options, str(self.root))
        for shared in ("proc", "dev"):
            _call("mount", "--bind", f"/{shared}", str(self.root / shared))
        # The checkout must not be found by accident, and neither what was installed for its development.
        _call("mount", "-t", "tmpfs", "tmpfs", f"{self.root}{hidden}")
        _call("mount", "-t", "tmpfs", "tmpfs", str(self.root / "tmp"))
        python = _PYTHON
        link = self._inside(str(python.with_name("python")))
        if not link.exists():
            link.symlink_to(python.name)
        for parent in python.parents[:-1]:
            self._inside(str(parent)).chmod(0o755)  # root's home may be closed to the image's user

    def _inside(self, path: str) -> Path:
        return Path(f"{self.root}{os.path.join(self._work, path)}")  # noqa: PTH118 - an absolute path wins

    def _copy(self, text: str, context: Path, others: Mapping[str, Built]) -> None:
        words = text.split()
        source = context
        if words[0].startswith("--from="):
            source = others[words.pop(0).removeprefix("--from=")].root
        *found, target = words
        into = target.endswith("/") or len(found) > 1
        for name in found:
            origin = source / name.lstrip("/")
            place = self._inside(target) / origin.name if into else self._inside(target)
            if origin.is_dir():
                shutil.copytree(origin, place, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(origin, place)

    def command(self, *command: str, user: str | None = None, **environment: str) -> list[str]:
        """What runs a command in this root as the image's user, with nothing of our environment but a mirror's name."""
        known = {**self.environment, **environment}
        known |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        prefix = ["chroot", f"--userspec={user or self.user}", "--groups=", str(self.root)]
        change = ["sh", "-c", 'cd "$0" && exec "$@"', self._work]
        return [*prefix, "env", "-i", *(f"{name}={value}" for name, value in known.items()), *change, *command]

    def run(self, *command: str, user: str | None = None, **environment: str) -> str:
        """Run a command; returns its standard output.

        Raises:
            CalledProcessError: it failed.
        """
        line = self.command(*command, user=user, **environment)
        return subprocess.run(line, check=True, stdout=subprocess.PIPE, text=True, timeout=_STEP_S).stdout

    def freeze(self) -> None:
        """Make the root read-only, as a pod has it; /tmp stays a tmpfs."""
        _call("mount", "-o", "remount,ro", str(self.root))


def _call(*command: str) -> None:
    subprocess.run(command, check=True, timeout=60)
