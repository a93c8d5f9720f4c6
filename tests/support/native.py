"""The C parts as the tests use them: built once by the interceptor's Makefile, whichever test comes first."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
BUILD = TOP / "build"
ARCHES = ("x86_64", "aarch64")
AARCH64_ROOT = Path("/usr/aarch64-linux-gnu")


@cache
def made(*targets: str) -> None:
    """Makes targets of the interceptor's Makefile."""
    _make("interceptor", f"ZIG={sys.executable} -m ziglang", *targets)


def _make(folder: str, *arguments: str) -> None:
    """Runs make in a folder; one test worker builds while the others wait."""
    BUILD.mkdir(exist_ok=True)
    with (BUILD / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        command = ["make", "-s", "-C", str(TOP / folder), *arguments]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


@cache
def simulator(wiring: str) -> Path:
    """The directory of the simulated CANN in one wiring: ``nested``, ``fused``, ``old``, or one of the first two that
    was built otherwise, such as ``sanitize/nested`` and ``aarch64/fused``.
    """
    flavour, _, _ = wiring.rpartition("/")
    _make("tests/npu_sim", flavour or "all")
    return BUILD / "npu_sim" / wiring


def client(name: str, arch: str = "x86_64") -> Path:
    """A program that is linked with the simulated CANN."""
    simulator("nested" if arch == "x86_64" else f"{arch}/nested")
    path = BUILD / "clients" / arch / name
    made(str(path))
    return path


def library(arch: str = "x86_64") -> Path:
    path = BUILD / "native" / arch / "libvnpu.so"
    made(str(path))
    return path


def library_with_faults(arch: str = "x86_64") -> Path:
    """The library with named points for faults and clocks that can be shortened."""
    path = BUILD / "testing" / arch / "libvnpu.so"
    made(str(path))
    return path


def system_compiler() -> str:
    """The compiler that the sanitizers' runtimes come with; the test is skipped where there is none."""
    found = shutil.which("cc")
    if found is None:
        pytest.skip("no system compiler, whose sanitizers this needs")
    return found


def sanitized(kind: str) -> str:
    """What to preload for the library under a sanitizer, whose dlsym is the real one: ``address`` (with undefined
    behaviour) or ``thread``.
    """
    compiler = system_compiler()
    path = BUILD / "sanitized" / kind / "libvnpu.so"
    made(str(path))
    where = [compiler, f"-print-file-name=lib{kind[0]}san.so"]
    runtime = subprocess.run(where, capture_output=True, text=True, check=True).stdout.strip()
    return f"{runtime} {path}"


def limiter(arch: str = "x86_64") -> Path:
    path = BUILD / "native" / arch / "limiter"
    made(str(path))
    return path


def limiter_with_faults() -> Path:
    """The limiter with named points for faults, and a round that can be of another length."""
    path = BUILD / "testing" / "x86_64" / "limiter"
    made(str(path))
    return path


def source(arch: str = "x86_64") -> Path:
    """What the installer takes its programs from."""
    limiter(arch)
    return library(arch).parents[1]


def unit(name: str, flavour: str = "x86_64") -> list[str]:
    """The command of a test program for a machine, or with the sanitizer ``thread`` or ``address``."""
    if flavour in {"thread", "address"}:
        system_compiler()
    path = BUILD / "units" / flavour / name
    made(str(path))
    return [*emulator(flavour), str(path)]


def emulator(arch: str, *, dynamic: bool = False) -> list[str]:
    """What runs a program of the machine ``arch`` here; a ``dynamic`` one needs that machine's C library too."""
    if arch != "aarch64":
        return []
    found = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
    if found is None:
        pytest.skip("no qemu-user for aarch64")
    if dynamic and not (AARCH64_ROOT / "lib" / "ld-linux-aarch64.so.1").exists():
        pytest.skip("no C library of aarch64, which libc6-arm64-cross installs")
    return [found, "-L", str(AARCH64_ROOT)] if dynamic else [found]
