"""The installer on a host of its own: a directory that plays the host's root."""

from __future__ import annotations

import os
import platform
import resource
import shutil
import stat
import subprocess
import sys
from importlib import metadata
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interceptor.install import Place, main
from tests.support import native
from tests.support.examples import examples
from vnpu import names

if TYPE_CHECKING:
    from pathlib import Path

MACHINE = platform.machine()
OTHER = {"x86_64": "aarch64", "aarch64": "x86_64"}[MACHINE]
VERSION = "9.9.9"
VERSION_DIR = f"{names.CORE_DIR}/{VERSION}"
MODES = {
    names.CORE_DIR: 0o755,
    VERSION_DIR: 0o755,
    f"{VERSION_DIR}/libvnpu.so": 0o644,
    f"{VERSION_DIR}/limiter": 0o755,
    f"{VERSION_DIR}/ld.so.preload": 0o644,
    names.CONTAINERS_HOST: 0o755,
    names.QUOTAS_HOST: 0o755,
    names.SHARED_REGION_HOST: 0o1777,
}


@pytest.fixture(scope="module")
def source() -> Path:
    return native.source(MACHINE)


@pytest.fixture
def host(tmp_path: Path) -> Path:
    root = tmp_path / "host"
    root.mkdir()
    return root


def at(host: Path, path: str) -> Path:
    return host / path.removeprefix("/")


def run(host: Path, source: Path, *arguments: str) -> int:
    return main([*arguments, f"--host-root={host}", f"--source={source}", f"--core-version={VERSION}"])


def tree(host: Path) -> dict[str, tuple[int, int, bytes]]:
    """Mode, inode and content of all that is there."""
    found = {}
    for path in sorted(host.rglob("*")):
        info = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(info.st_mode) else b""
        found[str(path.relative_to(host))] = (info.st_mode, info.st_ino, content)
    return found


def test_an_empty_host_gets_everything_with_its_mode_whatever_the_umask(host: Path, source: Path) -> None:
    before = os.umask(0o077)
    try:
        assert run(host, source) == 0
    finally:
        os.umask(before)
    assert {path: stat.S_IMODE(at(host, path).stat().st_mode) for path in MODES} == MODES
    assert at(host, f"{VERSION_DIR}/libvnpu.so").read_bytes() == native.library(MACHINE).read_bytes()
    assert at(host, f"{VERSION_DIR}/ld.so.preload").read_text() == f"{names.CORE_DIR}/libvnpu.so\n"


def test_the_second_run_changes_nothing(host: Path, source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(host, source) == 0
    first = tree(host)
    capsys.readouterr()
    assert run(host, source) == 0
    assert tree(host) == first
    assert capsys.readouterr().out == f"{VERSION_DIR} is as it should be\n"


@given(data=st.data())
@examples(30)
def test_any_damage_is_reported_and_repaired(
    data: st.DataObject, source: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    host = tmp_path_factory.mktemp("host")
    assert run(host, source) == 0
    path = data.draw(st.sampled_from(sorted(MODES)), "path")
    target = at(host, path)
    kinds = ["mode"] if target.is_dir() else ["mode", "gone", "text", "cut", "link", "directory"]
    match data.draw(st.sampled_from(kinds), "damage"):
        case "mode":
            wrong = data.draw(st.integers(0o700, 0o777).filter(lambda mode: mode != MODES[path]), "mode")
            target.chmod(wrong)
        case "gone":
            target.unlink()
        case "text":
            target.write_text("hello\n")
        case "cut":
            target.write_bytes(target.read_bytes()[:-1])
        case "link":
            target.unlink()
            target.symlink_to("/etc/hostname")
        case "directory":
            target.unlink()
            target.mkdir()
    assert run(host, source, "check") == 1
    assert run(host, source) == 0
    assert run(host, source, "check") == 0


@pytest.mark.parametrize("program", ["libvnpu.so", "limiter"])
def test_a_program_of_another_machine_is_refused_before_the_host_is_touched(
    host: Path, source: Path, tmp_path: Path, program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    mixed = tmp_path / "source" / MACHINE
    shutil.copytree(source / MACHINE, mixed)
    shutil.copy(native.library(OTHER) if program == "libvnpu.so" else native.limiter(OTHER), mixed / program)
    assert run(host, mixed.parent) == 1
    assert f"made for {OTHER}, and this machine is {MACHINE}" in capsys.readouterr().err
    assert tree(host) == {}


def test_a_source_without_programs_names_the_option(
    host: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(host, tmp_path, "check") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert str(tmp_path / MACHINE / "libvnpu.so") in line
    assert line.endswith(
        "--source names the directory that holds a libvnpu.so for each machine (build/native of a checkout)"
    )


def test_check_tells_each_fault_in_a_line(host: Path, source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(host, source, "check") == 1
    complaints = capsys.readouterr().err.splitlines()
    assert len(complaints) == len(MODES)
    assert all("No such file or directory" in line for line in complaints)


def test_a_library_that_the_loader_does_not_take_is_found(
    host: Path, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "source" / MACHINE
    shutil.copytree(source / MACHINE, broken)
    (broken / "libvnpu.so").write_bytes((broken / "libvnpu.so").read_bytes()[:4096])
    (broken / "limiter").write_bytes((broken / "limiter").read_bytes()[:64])
    assert run(host, broken.parent) == 1
    complaints = capsys.readouterr().err
    assert "libvnpu.so: the loader does not take it" in complaints
    assert "limiter: it does not start" in complaints


def test_a_full_disk_is_told_and_what_was_there_stays(host: Path, source: Path) -> None:
    assert run(host, source) == 0
    library = at(host, f"{VERSION_DIR}/libvnpu.so")
    library.write_text("the library of before")
    # A process that may not write more than this into one file meets a full disk's answer with another number.
    command = [sys.executable, "-m", "interceptor.install", f"--host-root={host}", f"--source={source}"]
    result = subprocess.run(
        [*command, f"--core-version={VERSION}"],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
    )
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    assert "File too large" in result.stderr
    assert library.read_text() == "the library of before"
    assert not list(library.parent.glob(".*"))


@pytest.mark.parametrize("layout", ["vnpu", "hami"])
def test_whatever_an_end_in_the_middle_left_is_in_nobodys_way(host: Path, source: Path, layout: str) -> None:
    directory = at(host, VERSION_DIR if layout == "vnpu" else names.CORE_DIR)
    (directory / ".limiter.new").mkdir(parents=True)
    (directory / ".libvnpu.so.new").symlink_to(host / "victim")
    (directory / ".ld.so.preload.new").write_text("half")
    assert run(host, source, f"--layout={layout}") == 0
    assert not (host / "victim").exists()
    assert not list(directory.glob(".*"))


def test_a_disk_that_is_full_is_told_by_path(host: Path, source: Path) -> None:
    command = [sys.executable, "-m", "interceptor.install", f"--host-root={host}", f"--source={source}"]
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(host)]
    result = subprocess.run(
        ["unshare", "--mount", "sh", "-c", '"$@" && shift $# && exec $INSTALL', "sh", *mount],
        env=os.environ | {"INSTALL": " ".join(command)},
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare" in result.stderr:
        pytest.skip("no mounts here")
    assert result.returncode == 1
    path = f"{host}{names.CORE_DIR}/{metadata.version('ascend-vnpu')}/.libvnpu.so.new"
    assert result.stderr == f"install: {path}: No space left on device\n"


def test_installers_that_run_at_once_agree(host: Path, source: Path) -> None:
    for version in ("0.1", "0.2", "0.3"):
        (at(host, names.CORE_DIR) / version).mkdir(parents=True)
        (at(host, names.CORE_DIR) / version / "ld.so.preload").write_text("x")
    command = [sys.executable, "-m", "interceptor.install", f"--host-root={host}", f"--source={source}"]
    running = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(4)]
    assert [(one.communicate()[1], one.returncode) for one in running] == [(b"", 0)] * len(running)


def test_a_host_that_may_not_be_written_is_told_by_path(
    host: Path, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at(host, "/usr").write_text("a file where a directory should be")
    assert run(host, source) == 1
    assert capsys.readouterr().err == f"install: {host}{names.CORE_DIR}: Not a directory\n"


def test_hamis_layout_has_no_versions(host: Path, source: Path) -> None:
    assert run(host, source, "--layout=hami") == 0
    assert at(host, f"{names.CORE_DIR}/ld.so.preload").read_text() == "/hami-vnpu-core/libvnpu.so\n"
    assert at(host, f"{names.CORE_DIR}/limiter").exists()
    assert run(host, source, "check", "--layout=hami") == 0


def test_links_of_the_host_lead_where_they_lead_there(host: Path, source: Path) -> None:
    at(host, "/data/local").mkdir(parents=True)
    at(host, "/usr").mkdir()
    at(host, "/usr/local").symlink_to("/data/local")
    assert run(host, source) == 0
    assert at(host, "/data/local/hami-vnpu-core").is_dir()


def test_fifty_installs_disturb_no_process_that_calls_the_library(host: Path, source: Path, tmp_path: Path) -> None:
    """Each install replaces all files, since those of the other source differ by a byte at their ends."""
    assert run(host, source) == 0
    other = tmp_path / "other" / MACHINE
    shutil.copytree(source / MACHINE, other)
    for program in ("libvnpu.so", "limiter"):
        with (other / program).open("ab") as file:
            file.write(b"\0")
    library = Place.of_version(host, VERSION).seen(f"{VERSION_DIR}/libvnpu.so")
    # dlsym is the library's own, so each call goes through its code.
    loop = (
        "import cffi\n"
        "ffi = cffi.FFI(); ffi.cdef('void *dlsym(void *, const char *);'); c = ffi.dlopen(None)\n"
        "print('ready', flush=True); n = 0\n"
        "while True:\n"
        "    assert c.dlsym(ffi.NULL, b'malloc') != ffi.NULL; n += 1\n"
        "    if n % 1000 == 0: print(n, flush=True)\n"
    )
    worker = subprocess.Popen(
        [sys.executable, "-c", loop], env=os.environ | {"LD_PRELOAD": str(library)}, stdout=subprocess.PIPE, text=True
    )
    try:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
        for round_ in range(50):
            assert run(host, other.parent if round_ % 2 == 0 else source) == 0
            assert int(worker.stdout.readline()) > 0
        assert worker.poll() is None
    finally:
        worker.kill()
        worker.communicate()
