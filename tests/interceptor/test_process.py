"""What the library does to a process before, at and without its first NPU call."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from interceptor import region
from tests.support import native
from tests.support.containers import PATIENCE_S, Container, eventually, kill
from tests.support.npu_client import MIB, OUT_OF_MEMORY, Machine, client
from vnpu import names

if TYPE_CHECKING:
    from collections.abc import Callable

SHORT_WAIT = {"VNPU_TEST_WAIT_MS": "700"}
EXIT_WITHOUT_LIMITER = 71
DENIED = 507899


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "npu")


def run(*command: str, **env: str) -> subprocess.CompletedProcess[str]:
    whole = {"PATH": os.environ["PATH"], "LD_PRELOAD": str(native.library()), **env}
    return subprocess.run(command, env=whole, capture_output=True, text=True, check=False, timeout=PATIENCE_S)


def test_a_process_that_makes_no_npu_call_is_left_alone(container: Container, machine: Machine) -> None:
    with (
        client(container, machine, device=None) as held,
        client(container, machine, device=None, preload=False) as bare,
    ):
        seen = []
        for npu in (held, bare):
            pid = int(npu.ask("pid"))
            opened = sorted(path.name for path in Path(f"/proc/{pid}/fd").iterdir())
            seen.append((opened, len(list(Path(f"/proc/{pid}/task").iterdir()))))

        assert seen[0] == seen[1]
    assert not container.region_path.exists()


@pytest.mark.parametrize("command", [("true",), ("ls", "/"), ("sh", "-c", "echo $(echo nested)")])
def test_ordinary_programs_run_as_ever(command: tuple[str, ...]) -> None:
    bare = subprocess.run(command, capture_output=True, text=True, check=True)
    held = run(*command)

    assert (held.returncode, held.stdout, held.stderr) == (0, bare.stdout, "")


def test_python_finds_functions_as_ever() -> None:
    code = (
        "import ssl, sqlite3, ctypes; print(ctypes.CDLL(None).getpid() > 0, ctypes.CDLL('libm.so.6').cos is not None)"
    )
    done = run(sys.executable, "-c", code)

    assert (done.returncode, done.stdout, done.stderr) == (0, "True True\n", "")


def test_a_look_up_through_rtld_next_sees_its_true_caller() -> None:
    """R55: if the library were the caller, the next function would be the asking library's own, for ever."""
    wrapper = native.client("next.so")
    done = run(
        sys.executable,
        "-c",
        "import os; print(os.getppid() > 0)",
        LD_PRELOAD=f"{native.library()} {wrapper}",
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


BOUND_TO_ITS_OWN_DRIVER = """
import os, sys, cffi
ffi = cffi.FFI()
ffi.cdef("int rtSetDevice(int); int rtMalloc(void **, uint64_t, uint32_t, uint16_t); int rtFree(void *);")
runtime = ffi.dlopen("libruntime.so", os.RTLD_NOW | os.RTLD_LOCAL | os.RTLD_DEEPBIND)
out = ffi.new("void **")
other = ffi.new("void **")
size = 600 << 20
print(runtime.rtSetDevice(0), runtime.rtMalloc(out, size, 0, 33), runtime.rtMalloc(other, size, 0, 33))
print(other[0] == ffi.NULL, runtime.rtFree(out[0]), runtime.rtMalloc(out, size, 0, 33))
"""


@pytest.mark.parametrize("wiring", ["nested", "fused"])
def test_a_runtime_that_is_bound_to_its_own_driver_is_counted_all_the_same(
    container: Container, tmp_path: Path, wiring: str
) -> None:
    machine = Machine(tmp_path / "npu", wiring)
    with container.running():
        done = run(sys.executable, "-c", BOUND_TO_ITS_OWN_DRIVER, **container.env, **machine.env)

    assert (done.returncode, done.stdout, done.stderr) == (0, f"0 0 {OUT_OF_MEMORY}\nTrue 0 0\n", "")


def test_the_limiter_starts_under_the_preload_that_waits_for_it(container: Container) -> None:
    started = container.limiter("start", LD_PRELOAD=str(native.library()))
    try:
        assert (started.returncode, started.stderr) == (0, "")
    finally:
        container.limiter("stop")


def test_without_a_limiter_the_process_waits_and_ends(container: Container, machine: Machine) -> None:
    before = time.monotonic()
    with client(
        container, machine, device=None, library=native.library_with_faults(), stderr=subprocess.PIPE, **SHORT_WAIT
    ) as npu:
        assert npu.ask("call aclrtSetDevice 0") == "", "no answer: the process ended"
        assert npu.process.wait(PATIENCE_S) == EXIT_WITHOUT_LIMITER
        assert npu.process.stderr is not None
        lines = npu.process.stderr.read().splitlines()

    assert time.monotonic() - before >= 0.7
    assert len(lines) == 2
    assert lines[0].startswith("vnpu: waiting for the limiter of this container")
    assert lines[1] == (
        f"vnpu: no limiter came, so this process may not use the NPU; region {container.region_path}: there is none"
    )


def test_deny_answers_every_call_with_an_error(container: Container, machine: Machine) -> None:
    env = {**SHORT_WAIT, names.ENV_ON_TIMEOUT: names.ON_TIMEOUT_DENY}
    with client(
        container, machine, device=None, library=native.library_with_faults(), stderr=subprocess.DEVNULL, **env
    ) as npu:
        assert npu.call("rtMalloc", "&a", MIB, 0, 33) == DENIED
        assert npu.call("halMemAlloc", "&a", MIB, 0) != 0
        assert npu.call("aclrtGetMemInfo", 1, "&a", "&b") == DENIED
        assert npu.call("aclrtSetDevice", 0) != 0
    assert machine.status()["cards"][0]["used"] == 0


def test_a_limiter_that_comes_later_is_found(container: Container, machine: Machine) -> None:
    starter = threading.Timer(0.5, container.limiter, ["start"])
    starter.start()
    try:
        with client(container, machine, stderr=subprocess.DEVNULL) as npu:
            assert npu.memory_info()[1] == 1024 * MIB
    finally:
        starter.join()
        container.limiter("stop")


def leave_stale_region(container: Container) -> None:
    """A region of the right shape whose limiter is dead."""
    assert container.limiter("start").returncode == 0
    limiter, guardian = container.pids()
    kill(guardian, signal.SIGSTOP)
    kill(limiter)
    kill(guardian)
    assert eventually(lambda: not container.lives())


def _stale(container: Container) -> str:
    leave_stale_region(container)
    return "its limiter does not live"


def _empty(container: Container) -> str:
    container.region_path.write_bytes(b"")
    return "it is too short"


def _foreign(container: Container) -> str:
    container.region_path.write_bytes(b"\x7fELF" * 30_000)
    return "it is no region"


def _cut(container: Container) -> str:
    leave_stale_region(container)
    os.truncate(container.region_path, 4096)
    return "it is damaged"


def _of_another_version(container: Container) -> str:
    leave_stale_region(container)
    with container.region_path.open("r+b") as file:
        file.seek(8)
        file.write((99).to_bytes(4, "little"))
    return "it is of another version of this software"


def _link(container: Container) -> str:
    container.region_path.symlink_to("/etc/passwd")
    return "its name is a symbolic link"


def _fifo(container: Container) -> str:
    os.mkfifo(container.region_path)
    return "it is no regular file, or cannot be opened"


def _directory(container: Container) -> str:
    container.region_path.mkdir()
    return "it is no regular file, or cannot be opened"


def _sparse(container: Container) -> str:
    leave_stale_region(container)
    content = container.region_path.read_bytes()
    container.region_path.unlink()
    with container.region_path.open("wb") as file:
        file.write(content[:4096])
        file.truncate(len(content))
    return "it cannot be mapped, or is not reserved in full"


@pytest.mark.parametrize(
    "spoil", [_stale, _empty, _foreign, _cut, _of_another_version, _link, _fifo, _directory, _sparse]
)
def test_existence_is_not_readiness(container: Container, machine: Machine, spoil: Callable[[Container], str]) -> None:
    reason = spoil(container)
    with client(
        container, machine, device=None, library=native.library_with_faults(), stderr=subprocess.PIPE, **SHORT_WAIT
    ) as npu:
        assert npu.ask("call aclrtSetDevice 0") == ""
        assert npu.process.wait(PATIENCE_S) == EXIT_WITHOUT_LIMITER
        assert npu.process.stderr is not None
        assert npu.process.stderr.read().splitlines()[-1].endswith(reason)


def test_places_run_out_cleanly(container: Container, machine: Machine) -> None:
    layouts = region.ffi()
    with container.running():
        first = layouts.offsetof("struct vnpu_region", "slots")
        step = layouts.sizeof("struct vnpu_slot")
        with container.region_path.open("r+b", buffering=0) as file:
            for slot in range(region.constant("SLOTS")):
                file.seek(first + slot * step)
                file.write((1).to_bytes(4, "little"))
        with client(container, machine, device=None, stderr=subprocess.PIPE) as npu:
            assert npu.ask("call aclrtSetDevice 0") == ""
            assert npu.process.wait(PATIENCE_S) == EXIT_WITHOUT_LIMITER
            assert npu.process.stderr is not None
            assert "all its places for processes are taken" in npu.process.stderr.read()


def test_books_survive_a_limiter(container: Container, machine: Machine) -> None:
    with container.running(), client(container, machine) as npu:
        assert npu.call("aclrtMalloc", "&a", 600 * MIB, 0) == 0
        limiter, _ = container.pids()
        kill(limiter)
        assert eventually(lambda: container.read().generation == 2)
        assert container.read().cards[0].used >= 600 * MIB
        assert npu.call("aclrtMalloc", "&b", 600 * MIB, 0) == OUT_OF_MEMORY
        with client(container, machine) as other:
            assert other.call("aclrtMalloc", "&a", 600 * MIB, 0) == OUT_OF_MEMORY


@pytest.mark.parametrize("point", ["slot-settling", "slot-claimed", "asked", "reserved", "releasing"])
def test_a_death_at_any_point_frees_what_it_held(container: Container, machine: Machine, point: str) -> None:
    with container.running():
        with client(
            container, machine, device=None, library=native.library_with_faults(), VNPU_FAULT=f"{point}:kill:1"
        ) as npu:
            for command in ("aclrtSetDevice 0", f"aclrtMalloc &a {600 * MIB} 0", "aclrtFree $a"):
                if npu.ask(f"call {command}") == "":
                    break
            assert npu.process.wait(PATIENCE_S) == -signal.SIGKILL
        with client(container, machine) as npu:
            assert npu.call("aclrtMalloc", "&a", 900 * MIB, 0) == 0
            card = container.read().cards[0]
            assert card.used + card.overhead == machine.status()["cards"][0]["used"]


@pytest.mark.parametrize("point", ["slot-settling", "asked"])
def test_a_stop_at_any_point_holds_nobody_up(container: Container, machine: Machine, point: str) -> None:
    with (
        container.running(),
        client(
            container, machine, device=None, library=native.library_with_faults(), VNPU_FAULT=f"{point}:stop:1"
        ) as stopped,
    ):
        assert stopped.process.stdin is not None
        stopped.process.stdin.write(f"call aclrtSetDevice 0\ncall aclrtMalloc &a {900 * MIB} 0\n")
        stopped.process.stdin.flush()
        os.waitid(os.P_PID, stopped.process.pid, os.WSTOPPED)
        with client(container, machine) as npu:
            before = time.monotonic()
            assert npu.call("aclrtMalloc", "&a", 900 * MIB, 0) == 0
            assert time.monotonic() - before < 1
            kill(stopped.process.pid, signal.SIGCONT)
            assert stopped.process.stdout is not None
            assert stopped.process.stdout.readline() == "0\n"
            assert stopped.process.stdout.readline() == f"{OUT_OF_MEMORY}\n"
