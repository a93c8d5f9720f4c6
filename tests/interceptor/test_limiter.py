from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from interceptor import region
from tests.support import native
from tests.support.containers import PATIENCE_S, Container, alive, eventually, kill, stopped
from vnpu import names
from vnpu.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 1 << 20


def test_start_publishes_a_region_with_the_quota(container: Container) -> None:
    container.devices = "3,1"
    with container.running():
        found = container.read()

    assert [(card.number, card.quota, card.priority) for card in found.cards] == [
        (3, 1024 * MIB, 20),
        (1, 1024 * MIB, 20),
    ]
    assert (found.generation, found.ceiling, found.processes) == (1, False, ())
    assert all(container.registry_path(card).stat().st_mode & 0o777 == 0o666 for card in (1, 3))


def test_start_holds_no_output_open(container: Container) -> None:
    """kubelet reads the output of a postStart hook to its end: a daemon that holds it open never ends the hook."""
    try:
        reading = subprocess.Popen(
            [str(native.limiter()), "start"],
            env=container.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        output = reading.communicate(timeout=PATIENCE_S)

        assert (reading.returncode, output) == (0, (b"", b""))
        limiter, guardian = container.pids()
        for pid in (limiter, guardian):
            links = [Path(f"/proc/{pid}/fd/{number}").readlink() for number in range(3)]
            assert links == [Path("/dev/null")] * 3
            assert os.getsid(pid) != os.getsid(0)
    finally:
        container.limiter("stop")


def test_a_second_start_changes_nothing(container: Container) -> None:
    with container.running():
        before = container.pids()
        again = container.limiter("start")

        assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
        assert container.pids() == before
        assert container.read().generation == 1


def test_starts_at_once_make_one_limiter(container: Container) -> None:
    try:
        with ThreadPoolExecutor(8) as pool:
            codes = list(pool.map(lambda _: container.limiter("start").returncode, range(8)))

        assert codes == [0] * 8
        assert container.read().generation == 1
        assert container.lives()
    finally:
        container.limiter("stop")


def test_start_becomes_the_command(container: Container) -> None:
    try:
        done = container.limiter("start", "--sleep", "0", "--", "/bin/echo", "work begins")

        assert (done.returncode, done.stdout) == (0, "work begins\n")
        assert container.lives()
    finally:
        container.limiter("stop")


def test_start_sleeps_after_it_is_ready(container: Container) -> None:
    with container.running():
        before = time.monotonic()
        assert container.limiter("start", "--sleep", "1").returncode == 0

        assert time.monotonic() - before >= 1


def test_stop_leaves_no_process_and_no_region(container: Container) -> None:
    with container.running():
        pids = container.pids()

    assert eventually(lambda: not any(alive(pid) for pid in pids))
    assert not container.region_path.exists()
    assert region.read_registry(container.registry_path()).tenants == ()
    assert container.limiter("stop").returncode == 0


def test_a_killed_limiter_comes_back_and_takes_the_region_over(container: Container) -> None:
    with container.running():
        limiter, guardian = container.pids()
        inode = container.region_path.stat().st_ino
        tenants = region.read_registry(container.registry_path()).tenants
        kill(limiter)

        assert eventually(lambda: container.read().generation == 2 and container.lives())
        assert container.region_path.stat().st_ino == inode
        assert container.pids()[1] == guardian
        after = region.read_registry(container.registry_path()).tenants
        assert [(tenant.index, tenant.key) for tenant in after] == [(tenant.index, tenant.key) for tenant in tenants]


@pytest.mark.parametrize("restarts", [0, 1])
def test_a_killed_guardian_is_replaced(container: Container, restarts: int) -> None:
    with container.running():
        limiter, guardian = container.pids()
        for _ in range(restarts):
            kill(limiter)
            assert eventually(lambda: container.read().generation == 2 and container.lives())
        kill(guardian)

        assert eventually(lambda: container.pids()[1] != guardian)
        assert eventually(container.lives)
        limiter, _ = container.pids()
        kill(limiter)
        assert eventually(lambda: container.pids()[0] != limiter and container.lives())


def test_a_stopped_limiter_is_not_replaced(container: Container) -> None:
    with container.running():
        limiter, _ = container.pids()
        kill(limiter, signal.SIGSTOP)
        try:
            assert container.lives()
            assert container.limiter("start").returncode == 0
            assert container.pids()[0] == limiter
        finally:
            kill(limiter, signal.SIGCONT)


def test_run_without_argument_is_run(container: Container) -> None:
    for arguments in ((), ("run",)):
        process = subprocess.Popen([str(native.limiter()), *arguments], env=container.env)
        try:
            assert eventually(container.lives)
            assert container.pids()[0] == process.pid
        finally:
            process.terminate()
        assert process.wait(PATIENCE_S) == 0
        assert not container.region_path.exists()


def test_another_priority_after_a_restart_counts_when_nobody_works(container: Container) -> None:
    assert container.limiter("start").returncode == 0
    limiter, guardian = container.pids()
    kill(guardian, signal.SIGSTOP)
    kill(limiter)
    kill(guardian)
    assert eventually(lambda: not alive(limiter))
    assert container.region_path.exists()

    container.memory = "512"
    with container.running():
        assert container.read().cards[0].quota == 512 * MIB


def test_version(container: Container) -> None:
    assert container.limiter("version").stdout.startswith("0.")


def test_a_ceiling_is_kept_in_the_region(container: Container) -> None:
    container.extra[names.ENV_CEILING] = "1"
    with container.running():
        assert container.read().ceiling
        assert region.read_registry(container.registry_path()).tenants[0].ceiling


def test_status_says_what_the_region_says(container: Container) -> None:
    container.priority = None
    assert container.limiter("status").returncode == 1
    with container.running():
        text = container.limiter("status")
        said = json.loads(container.limiter("status", "--json").stdout)

    assert "card 0: 0 / 1024 MiB" in text.stdout
    assert said["limiter"] is True
    assert said["processes"] == []
    assert {name: said["cards"][0][name] for name in ("card", "quota_mib", "used_bytes", "priority")} == {
        "card": 0,
        "quota_mib": 1024,
        "used_bytes": 0,
        "priority": None,
    }


def test_containers_share_registries_and_nothing_else(container: Container, neighbour: Container) -> None:
    with container.running(), neighbour.running():
        assert container.read().cards[0].quota == 1024 * MIB
        assert neighbour.read().cards[0].quota == 2048 * MIB
        tenants = region.read_registry(container.registry_path()).tenants

    assert sorted(tenant.weight for tenant in tenants) == [20, 40]
    assert len({tenant.key for tenant in tenants}) == 2


def test_the_mirror_is_upstreams_and_ours(container: Container) -> None:
    def written() -> bool:
        try:
            return region.read_mirror(container.mirror_path).written_us > 0
        except (FileNotFoundError, InputError):
            return False

    with container.running():
        assert eventually(written)
        first = region.read_mirror(container.mirror_path)
        upstream = container.mirror_path.read_bytes()[:6200]

        assert eventually(lambda: region.read_mirror(container.mirror_path).written_us > first.written_us)
    assert int.from_bytes(upstream[:8], "little") == 1024 * MIB
    assert int.from_bytes(upstream[16:24], "little") == 20
    assert (first.generation, first.processes) == (1, 0)
    assert [(card.number, card.quota, card.priority, card.weight) for card in first.cards] == [(0, 1024 * MIB, 20, 20)]


def test_a_log_that_cannot_be_written_stops_nothing(container: Container) -> None:
    container.extra[names.ENV_LOG] = str(container.own / "missing" / "limiter.log")
    with container.running():
        assert container.lives()


def test_the_log_is_bounded(container: Container) -> None:
    container.log_path.write_text("x" * 100_000)
    with container.running():
        assert container.log_path.stat().st_size < 1000


def _short(path: Path) -> None:
    path.write_bytes(b"short")


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _foreign(path: Path) -> None:
    path.write_bytes(os.urandom(100_000))


def _link(path: Path) -> None:
    victim = path.with_name("victim")
    victim.write_bytes(b"precious")
    path.symlink_to(victim)


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 20)


@pytest.mark.parametrize("spoil", [_short, _empty, _foreign, _link, _sparse])
def test_what_is_no_region_is_replaced_and_never_written(container: Container, spoil: Callable[[Path], None]) -> None:
    spoil(container.region_path)
    with container.running():
        assert container.read().generation == 1
        assert not container.region_path.is_symlink()
    victim = container.own / "victim"
    assert not victim.exists() or victim.read_bytes() == b"precious"


def test_a_registry_of_another_kind_is_refused(container: Container) -> None:
    container.registry_path().write_bytes(b"\0" * 4096)
    refused = container.limiter("start")

    assert (refused.returncode, refused.stdout) == (3, "")
    assert refused.stderr.startswith("limiter: it did not start")
    assert "cannot be used" in container.log_path.read_text()
    assert container.registry_path().read_bytes() == b"\0" * 4096
    assert not container.region_path.exists()


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@needs_root
def test_start_in_an_image_that_holds_nothing_else(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for name in ("proc", "dev/shm", "tmp", "shared"):
        (root / name).mkdir(parents=True)
    shutil.copy(native.limiter(), root / "limiter")
    script = (
        f"mount -t proc proc {root}/proc && mount -t tmpfs tmpfs {root}/dev/shm && "
        f"for verb in start 'status --json' stop; do chroot {root} /limiter $verb || exit 1; done; ls {root}/dev/shm"
    )
    env = {
        "PATH": os.environ["PATH"],
        names.ENV_MEMORY: "8192",
        names.ENV_VISIBLE_DEVICES: "0",
        names.ENV_GLOBAL_SHM: "/shared/0_global_registry",
    }
    done = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "sh", "-c", script],
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["cards"][0]["quota_mib"] == 8192
    assert list((root / "tmp").glob("vnpu-limiter.*.log"))


@needs_root
def test_regions_are_named_by_mount_namespace_and_cleared_away(tmp_path: Path) -> None:
    """Two containers of a pod share /dev/shm; a region whose limiter, processes and namespace are gone goes."""
    limiter = native.limiter()
    container = "unshare --mount --pid --fork --mount-proc sh -c"
    inner = f"{limiter} start && {limiter} status --json && ls /dev/shm | wc -l"
    outer = f"{limiter} start && {limiter} status --json && NPU_MEM_QUOTA=2048 {container} '{inner}'"
    # When the first process of a pid namespace ends, the kernel kills all others in it: limiters and guardians.
    script = f"""
mount -t tmpfs tmpfs /dev/shm
{container} "{outer}"
unshare --mount sh -c '{limiter} start; {limiter} stop'
ls /dev/shm
"""
    (tmp_path / "shared").mkdir()
    env = {
        "PATH": os.environ["PATH"],
        names.ENV_MEMORY: "8192",
        names.ENV_VISIBLE_DEVICES: "0",
        names.ENV_LOG: str(tmp_path / "log"),
        names.ENV_GLOBAL_SHM: str(tmp_path / "shared" / "0_global_registry"),
    }
    done = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", script],
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S * 2,
    )
    one, two, count, *left = done.stdout.splitlines()

    assert [json.loads(text)["cards"][0]["quota_mib"] for text in (one, two)] == [8192, 2048]
    assert count == "2"
    assert left == []


@needs_root
def test_check_names_processes_that_escape(container: Container) -> None:
    script = "mount -t tmpfs tmpfs /dev && touch /dev/davinci0 && echo ready && exec sleep 1000 < /dev/davinci0"
    process = subprocess.Popen(["unshare", "--mount", "sh", "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"

        def told() -> bool:
            found = container.limiter("check")
            return found.returncode == 1 and f"{process.pid} sleep: has an NPU open" in found.stdout

        assert eventually(told)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_check_says_so_where_none_escapes(container: Container) -> None:
    found = container.limiter("check")
    assert (found.returncode, found.stdout) == (0, "every process that has an NPU open has libvnpu.so loaded\n")


def test_a_stop_in_the_middle_of_a_restart_is_a_stop(container: Container) -> None:
    for _ in range(10):
        with container.running():
            limiter, guardian = container.pids()
            kill(limiter)
            assert eventually(container.lives)
        assert eventually(lambda pid=guardian: not alive(pid), within_s=5)
        assert not container.region_path.exists()


def test_a_guardian_that_dies_is_replaced_before_the_next_round(container: Container) -> None:
    """Else limiter and guardian that die seconds after each other would leave nobody."""
    slow = {"VNPU_TEST_TICK_MS": "10000"}
    started = subprocess.run([native.limiter_with_faults(), "start"], env=container.env | slow, check=False)
    assert started.returncode == 0
    try:
        for _ in range(3):
            _, guardian = container.pids()
            kill(guardian)
            assert eventually(lambda old=guardian: container.pids()[1] != old and container.lives())
            limiter, _ = container.pids()
            kill(limiter)
            assert eventually(lambda old=limiter: container.pids()[0] != old and container.lives())
    finally:
        container.limiter("stop")


def test_a_start_right_after_both_were_killed_is_no_second_start(container: Container) -> None:
    with container.running():
        for _ in range(5):
            limiter, guardian = container.pids()
            kill(guardian, signal.SIGSTOP)
            kill(limiter)
            kill(guardian)

            assert container.limiter("start").returncode == 0
            assert eventually(lambda old=limiter: container.pids()[0] != old and container.lives())
            assert eventually(lambda old=guardian: container.pids()[1] != old and alive(container.pids()[1]))


def test_a_guardian_that_is_stopped_after_its_limiter_died_is_none(container: Container) -> None:
    fault = {"VNPU_FAULT": "guardian-alone:stop:1"}
    started = subprocess.run([native.limiter_with_faults(), "start"], env=container.env | fault, check=False)
    assert started.returncode == 0
    limiter, guardian = container.pids()
    try:
        kill(limiter)
        assert eventually(lambda: stopped(guardian))
        assert not container.lives()

        assert container.limiter("start").returncode == 0
        assert container.lives()
        assert container.pids()[0] != limiter
    finally:
        kill(guardian)
        container.limiter("stop")
