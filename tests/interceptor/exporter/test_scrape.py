"""What a scrape tells, on files and a driver that the test fills."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interceptor import region
from interceptor.devices import Usage
from interceptor.exporter.families import COUNTERS, GAUGES
from tests.support.containers import PATIENCE_S, eventually
from tests.support.examples import examples
from tests.support.exporter import RUNTIME_ID, Exporter
from tests.support.mirrors import MIB, write_mirror
from tests.support.objects import CHIP, container, pod

if TYPE_CHECKING:
    from collections.abc import Callable

    from interceptor.devices import Machine

GOLDEN = Path(__file__).with_name("metrics.txt")
UID = "11111111-2222-3333-4444-555555555555"
APP = ("team", "app", "app")


def tenant(uid: str = UID, name: str = "app", card: str = "U0", *, running: bool = True) -> dict[str, Any]:
    """A pod with one container that holds 8192 MiB and 20 percent of a card."""
    made = pod(name=name, text=f"{card},{CHIP},8192,20:;")
    made["metadata"]["uid"] = uid
    if running:
        made["status"]["containerStatuses"] = [{"name": "app", "containerID": f"containerd://{RUNTIME_ID}"}]
    return made


def test_everything_that_is_told_is_as_recorded(exporter: Exporter) -> None:
    exporter.put(tenant())
    exporter.process(4711, UID)
    exporter.process(4712, UID, library=False)
    exporter.library.usages[0] = Usage(65536 * MIB, 3072 * MIB, 37, {4711: 2048 * MIB, 4712: 512 * MIB, 9: 512 * MIB})
    card = {
        "id": 0,
        "quota": 8192 * MIB,
        "used": 1024 * MIB,
        "overhead": 64 * MIB,
        "denials": 3,
        "waits": 5,
        "wait_us": 2_500_000,
        "longest_us": 80_000,
        "weight": 20,
        "weight_sum": 60,
    }
    for ago_s, held_us in ((4.0, 1_000_000), (0.0, 2_000_000)):
        write_mirror(exporter.mirror(UID), card | {"held_us": held_us}, ago_s=ago_s, process_count=2)
        text = exporter.text()
    shares = ("vnpu_core_received_ratio", "hami_container_device_utilization_ratio")
    told = [line for line in text.splitlines() if not line.startswith(shares)]
    assert told == GOLDEN.read_text().splitlines()
    assert exporter.values(shares[0]) == {(*APP, "0", "U0"): pytest.approx(0.25, abs=0.02)}
    assert exporter.values(shares[1]) == {(*APP, "0", "U0"): pytest.approx(25, abs=2)}


def test_plugin_b13_host_values_are_the_drivers_whatever_containers_use(exporter: Exporter) -> None:
    exporter.put(tenant())
    exporter.library.usages[0] = Usage(65536 * MIB, 3072 * MIB, 37, {})
    write_mirror(exporter.mirror(UID), {"id": 0, "used": 1024 * MIB})
    assert exporter.values("hami_host_gpu_memory_used_bytes")[("0", "U0", "Ascend-910B3")] == 3072 * MIB
    assert exporter.values("hami_host_gpu_utilization_ratio")[("0", "U0", "Ascend-910B3")] == 37


def test_8192_mib_are_8589934592_bytes(exporter: Exporter) -> None:
    exporter.put(tenant())
    labels = 'container="app",device_uuid="U0",namespace="team",pod="app",vdevice_index="0"'
    assert f"hami_vgpu_memory_limit_bytes{{{labels}}} 8.589934592e+09\n" in exporter.text()


def test_every_metric_has_a_help_text_and_no_name_twice(exporter: Exporter) -> None:
    names = [*GAUGES, *COUNTERS]
    helps = [line.split()[2] for line in exporter.text().splitlines() if line.startswith("# HELP")]
    assert [name.removesuffix("_total") for name in helps] == [str(name) for name in names]
    assert len(set(names)) == len(names)


def test_without_a_limiter_the_limit_is_told_and_no_use_is_made_up(exporter: Exporter) -> None:
    exporter.put(tenant())
    assert exporter.values("vnpu_limiter_up") == {APP: 0}
    assert exporter.values("hami_vgpu_memory_limit_bytes") == {(*APP, "0", "U0"): 8192 * MIB}
    assert exporter.values("hami_vgpu_memory_used_bytes") == {}


@pytest.mark.parametrize("ago_s", [60.0, -60.0])
def test_figures_of_another_time_are_not_told(exporter: Exporter, ago_s: float) -> None:
    exporter.put(tenant())
    write_mirror(exporter.mirror(UID), {"id": 0, "used": MIB}, ago_s=ago_s)
    assert exporter.values("vnpu_limiter_up") == {APP: 0}
    assert exporter.values("hami_vgpu_memory_used_bytes") == {}


def test_the_limit_is_what_was_granted_whatever_the_container_says(exporter: Exporter) -> None:
    exporter.put(tenant())
    write_mirror(exporter.mirror(UID), {"id": 0, "quota": 1 << 40})
    assert exporter.values("hami_vgpu_memory_limit_bytes") == {(*APP, "0", "U0"): 8192 * MIB}
    assert exporter.values("vnpu_memory_enforced_bytes") == {(*APP, "0", "U0"): 1 << 40}


def test_a_card_that_is_not_the_containers_is_not_told(exporter: Exporter) -> None:
    exporter.put(tenant())
    write_mirror(exporter.mirror(UID), {"id": 1, "used": MIB})
    assert exporter.values("hami_vgpu_memory_used_bytes") == {}


def test_several_cards_are_matched_by_their_numbers(exporter: Exporter) -> None:
    wide = pod(container("app", count=2, memory=8192, core=20), text=f"U1,{CHIP},8192,20:U0,{CHIP},8192,20:;")
    wide["metadata"]["uid"] = UID
    exporter.put(wide)
    write_mirror(exporter.mirror(UID), {"id": 0, "used": 10}, {"id": 1, "used": 20})
    assert exporter.values("hami_vgpu_memory_used_bytes") == {(*APP, "0", "U1"): 20, (*APP, "1", "U0"): 10}


def test_the_file_of_upstreams_library_tells_the_use(exporter: Exporter) -> None:
    exporter.put(tenant())
    path = exporter.mirror(UID)
    write_mirror(path, processes=[(1, 3 * MIB), (2, 4 * MIB)])
    size = region.ffi().offsetof("struct vnpu_mirror", "magic")
    path.write_bytes(path.read_bytes()[:size])
    assert exporter.values("hami_vgpu_memory_used_bytes") == {(*APP, "0", "U0"): 7 * MIB}


def test_plugin_b12_the_driver_counts_each_container_apart(exporter: Exporter) -> None:
    other = "aaaaaaaa-2222-3333-4444-555555555555"
    second = tenant(other, "second")
    second["status"]["containerStatuses"][0]["containerID"] = "cri-o://" + "ab" * 32
    exporter.put(tenant(), second)
    exporter.process(1, UID)
    exporter.process(2, other, "ab" * 32)
    exporter.library.usages[0] = Usage(65536 * MIB, 9 * MIB, 0, {1: 4 * MIB, 2: 5 * MIB, 3: MIB})
    assert exporter.values("vnpu_memory_driver_bytes") == {
        (*APP, "0", "U0"): 4 * MIB,
        ("team", "second", "app", "0", "U0"): 5 * MIB,
    }


def test_a_process_without_the_library_is_counted_though_the_container_denies_it(exporter: Exporter) -> None:
    exporter.put(tenant())
    exporter.process(1, UID, library=False)
    exporter.library.usages[0] = Usage(65536 * MIB, 9 * MIB, 0, {1: 4 * MIB})
    write_mirror(exporter.mirror(UID), {"id": 0}, unmanaged_count=0)
    assert exporter.values("vnpu_processes_unmanaged") == {APP: 1}


def test_a_chip_that_does_not_answer_leaves_the_others(exporter: Exporter) -> None:
    del exporter.library.usages[0]
    assert exporter.values("hami_host_gpu_memory_used_bytes") == {("1", "U1", "Ascend-910B3"): 0}
    assert exporter.values("vnpu_exporter_unreadable")[("cards",)] == 1


def test_without_a_driver_the_containers_are_told_all_the_same(exporter: Exporter) -> None:
    exporter.library.away = "libdcmi.so: it is not there"
    exporter.put(tenant())
    write_mirror(exporter.mirror(UID), {"id": 0, "used": MIB})
    assert exporter.values("vnpu_exporter_source_up") == {("pods",): 1, ("driver",): 0}
    assert exporter.values("hami_vgpu_memory_used_bytes") == {(*APP, "0", "U0"): MIB}


def test_a_pod_that_cannot_be_read_is_counted_and_hides_no_other(exporter: Exporter) -> None:
    exporter.put(pod(name="bad", text="nonsense"), tenant())
    assert exporter.values("vnpu_exporter_unreadable")[("pods",)] == 1
    assert list(exporter.values("hami_vgpu_memory_limit_bytes")) == [(*APP, "0", "U0")]


def test_a_pod_that_is_gone_is_told_no_more_and_its_files_stay(exporter: Exporter) -> None:
    exporter.put(tenant())
    write_mirror(exporter.mirror(UID), {"id": 0})
    assert exporter.values("vnpu_limiter_up") == {APP: 1}
    exporter.put()
    assert exporter.values("vnpu_limiter_up") == {}
    assert exporter.mirror(UID).exists()


def test_what_was_said_of_a_pod_that_is_gone_is_forgotten(exporter: Exporter, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        exporter.put(tenant())
        exporter.mirror(UID).mkdir(parents=True, exist_ok=True)
        assert exporter.values("vnpu_exporter_unreadable")[("mirrors",)] == 1
        exporter.put()
        assert exporter.values("vnpu_exporter_unreadable")[("mirrors",)] == 0
    assert caplog.text.count("a regular file is allowed") == 2


def test_no_file_of_a_tenant_is_kept_open(exporter: Exporter) -> None:
    exporter.put(tenant())
    exporter.mirror(UID).mkdir(parents=True)
    exporter.values("vnpu_limiter_up")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        exporter.values("vnpu_limiter_up")
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_device_is_never_opened(exporter: Exporter, monkeypatch: pytest.MonkeyPatch) -> None:
    """To open a watchdog is to start it, and a container may be allowed to make such a file."""
    exporter.put(tenant())
    exporter.mirror(UID).parent.mkdir(parents=True)
    try:
        os.mknod(exporter.mirror(UID), stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("no devices may be made here")
    opened = []
    whole = os.open

    def watched(path: object, flags: int, *rest: object) -> int:
        if not flags & os.O_PATH:
            opened.append(path)
        return whole(path, flags, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr("interceptor.region.os.open", watched)
    assert exporter.values("vnpu_exporter_unreadable")[("mirrors",)] == 1
    assert opened == []


def test_a_driver_that_hangs_is_away_and_holds_up_nobody(exporter: Exporter) -> None:
    go_on = threading.Event()
    machine = exporter.library.machine
    exporter.driver._asked._patience_s = 0.05

    def hang() -> Machine:
        go_on.wait(PATIENCE_S)
        return machine()

    exporter.library.machine = hang  # type: ignore[method-assign]
    assert exporter.values("vnpu_exporter_source_up")[("driver",)] == 0
    go_on.set()
    assert eventually(lambda: exporter.values("vnpu_exporter_source_up")[("driver",)] == 1)


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _link(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def _link_to_a_neighbour(path: Path) -> None:
    neighbour = path.parents[1] / "neighbour" / path.name
    write_mirror(neighbour, {"id": 0, "used": 7})
    path.symlink_to(f"/{neighbour.relative_to(path.parents[5])}")


def _cut(path: Path) -> None:
    write_mirror(path, {"id": 0})
    path.write_bytes(path.read_bytes()[:100])


def _huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


def _of_another_version(path: Path) -> None:
    write_mirror(path, {"id": 0}, version=99)


def _being_written(path: Path) -> None:
    write_mirror(path, {"id": 0}, sequence=1)


@pytest.mark.parametrize(
    "put",
    [_fifo, _link, _link_to_a_neighbour, _cut, _huge, _of_another_version, _being_written, Path.mkdir, Path.touch],
)
def test_no_file_of_a_tenant_stops_a_scrape_or_hides_another_tenant(
    exporter: Exporter, put: Callable[[Path], None]
) -> None:
    other = "aaaaaaaa-2222-3333-4444-555555555555"
    exporter.put(tenant(), tenant(other, "second"))
    exporter.mirror(UID).parent.mkdir(parents=True)
    put(exporter.mirror(UID))
    write_mirror(exporter.mirror(other), {"id": 0, "used": 5})
    assert exporter.values("vnpu_limiter_up") == {APP: 0, ("team", "second", "app"): 1}
    like_upstreams = put in (_of_another_version, _being_written)
    assert exporter.values("vnpu_exporter_unreadable")[("mirrors",)] == (not like_upstreams)


@given(noise=st.binary(max_size=2000), at=st.integers(0, 8000))
@examples(60)
def test_noise_in_a_mirror_never_fails_a_scrape(
    noise: bytes, at: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    exporter = Exporter(tmp_path_factory.mktemp("noise") / "host")
    exporter.put(tenant())
    path = exporter.mirror(UID)
    write_mirror(path, {"id": 0, "used": 5, "weight": 20})
    content = bytearray(path.read_bytes())
    content[at : at + len(noise)] = noise
    path.write_bytes(content)
    for ratio in exporter.values("vnpu_core_entitled_ratio").values():
        assert 0 <= ratio <= 1
    assert exporter.values("hami_vgpu_memory_limit_bytes") == {(*APP, "0", "U0"): 8192 * MIB}


def test_plugin_b11_a_scrape_changes_no_file(exporter: Exporter) -> None:
    exporter.put(tenant())
    for uid in (UID, "unknown", "gone"):
        write_mirror(exporter.mirror(uid), {"id": 0})
    before = {path: path.stat() for path in exporter.root.rglob("*")}
    exporter.text()
    after = {path: path.stat() for path in exporter.root.rglob("*")}
    assert {p: (s.st_ino, s.st_mtime_ns, s.st_mode) for p, s in before.items()} == {
        p: (s.st_ino, s.st_mtime_ns, s.st_mode) for p, s in after.items()
    }
