"""``python -m interceptor.install [check]``: library and limiter onto this node, where containers find them.

Each version has a directory of its own on the host, so that a container keeps the one that it started with. Files are
written beside their place and renamed, never written over: what a running process has mapped stays as it is.

Exit codes: 0 all is well; 1 something is not, a line each on standard error; 2 bad usage.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import subprocess
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

from interceptor import elf, host_root, versions
from vnpu import names
from vnpu.command_line import Parser, UsageError
from vnpu.errors import VnpuError
from vnpu.terminal import complain, output

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

FAULTY: Final = 1
BAD_USAGE: Final = 2

_PROGRAMS: Final = {names.LIBRARY_NAME: 0o644, names.LIMITER_NAME: 0o755}
_PRELOAD_MODE: Final = 0o644
_DIRECTORY_MODE: Final = 0o755
_REMOVED: Final = ".removed"
_PATIENCE_S: Final = 20.0
_LOADED: Final = "import sys; sys.exit('/libvnpu.so' not in open('/proc/self/maps').read())"


class InstallError(VnpuError):
    """The host or the source is not as it must be."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where things go on the host.

    Attributes:
        root: where the host's ``/`` is seen from here.
        directory: of library, limiter and preload file, on the host.
        seen_as: where containers see that directory: what the preload file names.
    """

    root: Path
    directory: str
    seen_as: str

    @classmethod
    def of_version(cls, root: Path, version: str) -> Place:
        """For our own device plugin: a directory for each version."""
        return cls(root, f"{names.CORE_DIR}/{version}", names.CORE_DIR)

    @classmethod
    def of_hami(cls, root: Path) -> Place:
        """For HAMi's device plugin, which knows one directory and no versions."""
        return cls(root, names.CORE_DIR, names.CORE_DIR_HAMI)

    def seen(self, path: str) -> Path:
        """A path of the host from here."""
        return host_root.seen(self.root, path)

    @property
    def preload(self) -> bytes:
        """The content of the preload file."""
        return f"{self.seen_as}/libvnpu.so\n".encode()

    @property
    def directories(self) -> dict[str, int]:
        """Directories of the host and their modes, outer ones first."""
        return {
            names.CORE_DIR: _DIRECTORY_MODE,
            self.directory: _DIRECTORY_MODE,
            names.CONTAINERS_HOST: _DIRECTORY_MODE,
            names.QUOTAS_HOST: _DIRECTORY_MODE,
            names.SHARED_REGION_HOST: names.SHARED_REGION_MODE,
        }


def read_source(source: Path, machine: str) -> dict[str, bytes]:
    """The programs to install.

    Args:
        source: a directory with one for each machine.
        machine: of this node.

    Raises:
        InstallError: one is not there, or for another machine.
    """
    found = {}
    for program in _PROGRAMS:
        path = source / machine / program
        try:
            found[program] = path.read_bytes()
        except OSError as error:
            holds = f"a {program} for each machine (build/native of a checkout)"
            raise InstallError(f"{path}: {error.strerror}: --source names the directory that holds {holds}") from error
        if fault := elf.fault(found[program], machine):
            raise InstallError(f"{path}: {fault}")
    return found


def install(place: Place, programs: dict[str, bytes]) -> list[str]:
    """Put everything in its place; what is right already stays untouched.

    Returns:
        What was changed, a path each.

    Raises:
        InstallError: the host refuses; what was in place before is as it was.
    """
    changed = []
    try:
        for directory, mode in place.directories.items():
            changed += [directory] if _directory(place.seen(directory), mode) else []
        target = place.seen(place.directory)
        with _alone(target):
            for leftover in target.glob(".*.new"):
                if leftover.is_dir() and not leftover.is_symlink():
                    leftover.rmdir()
                else:
                    leftover.unlink()
            for name, content, mode in _files(place, programs):
                changed += [f"{place.directory}/{name}"] if _file(target / name, content, mode) else []
    except OSError as error:
        raise InstallError(f"{error.filename}: {error.strerror}") from error
    return changed


def faults(place: Place, programs: dict[str, bytes], machine: str) -> list[str]:
    """What is wrong with an installation, a sentence each."""
    found = [fault for path, mode in place.directories.items() if (fault := _directory_fault(place, path, mode))]
    damaged = [fault for file in _files(place, programs) if (fault := _file_fault(place, *file, machine))]
    return [*found, *(damaged or _start_faults(place))]


def remove_old(place: Place, current: str, checkpoint: str = names.KUBELET_CHECKPOINT) -> tuple[list[str], str]:
    """Remove versions that no container uses.

    The newest of the others stays in any case: kubelet may be about to start a container with it, and a way back is
    short.

    Args:
        place: of the installation.
        current: the version that is installed.
        checkpoint: kubelet's note of its devices, on the host.

    Returns:
        The removed versions; and why none could be, or ``""``.
    """
    core = place.seen(names.CORE_DIR)
    try:
        with _alone(core):
            for half_removed in core.glob(f".*{_REMOVED}"):
                shutil.rmtree(half_removed)
            unused = _unused(place, core, current, checkpoint)
            for entry in unused:
                shutil.rmtree(entry.rename(core / f".{entry.name}{_REMOVED}"))
    except VnpuError as error:
        return [], str(error)
    except OSError as error:
        return [], f"{error.filename}: {error.strerror}"
    return [entry.name for entry in unused], ""


def _unused(place: Place, core: Path, current: str, checkpoint: str) -> list[Path]:
    others = sorted(
        (entry for entry in core.iterdir() if entry.name != current and _is_version(entry)),
        key=lambda entry: entry.stat().st_mtime,
    )[:-1]
    if not others:
        return []
    used = versions.used([entry.name for entry in others], place.seen("/proc"), place.seen(checkpoint))
    return [entry for entry in others if entry.name not in used]


def _is_version(entry: Path) -> bool:
    return not entry.is_symlink() and not entry.name.startswith(".") and (entry / names.PRELOAD_FILE_NAME).is_file()


def _files(place: Place, programs: dict[str, bytes]) -> Iterator[tuple[str, bytes, int]]:
    """What lies in the directory: name, content, mode. The file that makes use of the others comes last."""
    for name, mode in _PROGRAMS.items():
        yield name, programs[name], mode
    yield names.PRELOAD_FILE_NAME, place.preload, _PRELOAD_MODE


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """While one installer writes, another waits."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _directory(path: Path, mode: int) -> bool:
    there = path.is_dir()
    path.mkdir(parents=True, exist_ok=True)
    if stat.S_IMODE(path.stat().st_mode) == mode:
        return not there
    path.chmod(mode)  # mkdir's own mode is cut by the umask
    return True


def _file(path: Path, content: bytes, mode: int) -> bool:
    """Whether the file had to be written."""
    if path.is_file() and not path.is_symlink() and path.read_bytes() == content:
        if stat.S_IMODE(path.stat().st_mode) == mode:
            return False
        path.chmod(mode)
        return True
    if path.is_dir() and not path.is_symlink():  # what a mount of a missing file leaves behind
        path.rmdir()
    new = path.with_name(f".{path.name}.new")
    try:
        with new.open("wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        new.replace(path)
    except OSError as error:
        with suppress(OSError):
            new.unlink()
        raise host_root.named(error, new) from error
    return True


def _directory_fault(place: Place, path: str, mode: int) -> str:
    try:
        found = place.seen(path).stat()
    except OSError as error:
        return f"{path}: {error.strerror}"
    if not stat.S_ISDIR(found.st_mode):
        return f"{path}: it is no directory"
    if stat.S_IMODE(found.st_mode) != mode:
        return f"{path}: its mode is {stat.S_IMODE(found.st_mode):o}, {mode:o} is needed"
    return ""


def _file_fault(place: Place, name: str, content: bytes, mode: int, machine: str) -> str:
    path = f"{place.directory}/{name}"
    seen = place.seen(path)
    try:
        found = seen.stat()
        if not stat.S_ISREG(found.st_mode):
            return f"{path}: it is no file"
        held = seen.read_bytes()
    except OSError as error:
        return f"{path}: {error.strerror}"
    if held != content:
        why = elf.fault(held, machine) if name in _PROGRAMS else f"it must hold the one line {content.decode().strip()}"
        return f"{path}: {why or 'it is not the one of this version'}"
    if stat.S_IMODE(found.st_mode) != mode:
        return f"{path}: its mode is {stat.S_IMODE(found.st_mode):o}, {mode:o} is needed"
    return ""


def _start_faults(place: Place) -> Iterator[str]:
    """Whether the loader takes the library and the kernel starts the limiter, from where they lie."""
    library, limiter = (str(place.seen(f"{place.directory}/{program}")) for program in _PROGRAMS)
    preloaded = [sys.executable, "-I", "-S", "-c", _LOADED]
    if why := _run(preloaded, {"LD_PRELOAD": library}):
        yield f"{place.directory}/libvnpu.so: the loader does not take it: {why}"
    if why := _run([limiter, "version"], {}):
        yield f"{place.directory}/limiter: it does not start: {why}"


def _run(command: Sequence[str], env: dict[str, str]) -> str:
    """Why the command failed, ``""`` where it did not."""
    try:
        result = subprocess.run(  # noqa: S603 - programs that this module has put there
            command, env=env, capture_output=True, text=True, errors="replace", check=False, timeout=_PATIENCE_S
        )
    except OSError as error:
        return error.strerror or str(error)
    except subprocess.TimeoutExpired:
        return f"no answer within {_PATIENCE_S:g} s"
    if result.returncode or result.stderr:
        return result.stderr.strip().partition("\n")[0] or f"exit code {result.returncode}"
    return ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns its exit code."""
    try:
        options = _parser().parse_args(arguments)
    except UsageError as error:
        complain(f"install: {error}")
        return BAD_USAGE
    try:
        return _run_verb(options)
    except VnpuError as error:
        complain(f"install: {error}")
        return FAULTY


def _run_verb(options: argparse.Namespace) -> int:
    root: Path = options.host_root
    hami = options.layout == "hami"
    place = Place.of_hami(root) if hami else Place.of_version(root, options.core_version)
    machine = elf.this_machine()
    programs = read_source(options.source, machine)
    with output() as report:
        if options.verb == "install":
            changed = install(place, programs)
            report.writelines(f"installed {path}\n" for path in changed)
            if not changed:
                report.write(f"{place.directory} is as it should be\n")
            removed, why_not = ([], "") if hami else remove_old(place, options.core_version, options.kubelet_checkpoint)
            report.writelines(f"removed {names.CORE_DIR}/{version}\n" for version in removed)
            if why_not:
                report.write(f"old versions stay: {why_not}\n")
        found = faults(place, programs, machine)
        if not found and options.verb == "check":
            report.write(f"{place.directory} is as it should be\n")
    for fault in found:
        complain(f"install: {fault}")
    return FAULTY if found else 0


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="python -m interceptor.install", description="Put library and limiter onto this node.")
    parser.add_argument("verb", nargs="?", choices=("install", "check"), default="install")
    parser.add_argument(
        "--host-root", type=Path, metavar="DIR", default="/", help="where the host's / is seen (default %(default)s)"
    )
    parser.add_argument(
        "--source",
        type=Path,
        metavar="DIR",
        default=names.NATIVE_DIR,
        help="<machine>/libvnpu.so and <machine>/limiter (default %(default)s)",
    )
    parser.add_argument(
        "--layout",
        choices=("vnpu", "hami"),
        default="vnpu",
        help="whose device plugin hands the files to containers (default %(default)s)",
    )
    parser.add_argument(
        "--kubelet-checkpoint",
        metavar="FILE",
        default=names.KUBELET_CHECKPOINT,
        help="kubelet's note of its devices, on the host (default %(default)s)",
    )
    parser.add_argument(
        "--core-version",
        metavar="VERSION",
        default=metadata.version("ascend-vnpu"),
        help="of the files (default %(default)s)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
