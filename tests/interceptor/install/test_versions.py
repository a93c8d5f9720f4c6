"""Versions that are used stay."""

from __future__ import annotations

import base64
import json
import os
from typing import TYPE_CHECKING

import pytest

from interceptor.install import Place, remove_old
from interceptor.versions import used
from vnpu import names
from vnpu.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

MOUNT = "36 25 259:1 {root} {point} ro,relatime shared:1 - ext4 /dev/root rw"


def process(proc: Path, number: int, *roots: str) -> None:
    folder = proc / str(number)
    (folder / "ns").mkdir(parents=True)
    (folder / "ns" / "mnt").symlink_to(f"mnt:[{number}]")
    lines = (MOUNT.format(root=root, point=f"/m{index}") for index, root in enumerate(("/", *roots)))
    (folder / "mountinfo").write_text("".join(f"{line}\n" for line in lines))


def checkpoint(path: Path, *answers: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    entries = [{"PodUID": "u", "ContainerName": "c", "AllocResp": base64.b64encode(a).decode()} for a in answers]
    path.write_text(json.dumps({"Data": {"PodDeviceEntries": entries}, "Checksum": 1}))
    return path


@pytest.mark.parametrize(
    "root",
    [
        "/usr/local/hami-vnpu-core/0.1.0",
        "/usr/local/hami-vnpu-core/0.1.0/ld.so.preload",
        "/hami-vnpu-core/0.1.0",  # /usr/local is a file system of its own
        "/usr/local/hami-vnpu-core/0.1.0//deleted",
    ],
)
def test_what_a_container_has_mounted_is_used(tmp_path: Path, root: str) -> None:
    process(tmp_path, 1)
    process(tmp_path, 7, root)
    assert used(["0.1.0", "0.1", "0.2.0"], tmp_path, checkpoint(tmp_path / "note")) == {"0.1.0"}


def test_what_kubelet_would_mount_again_is_used(tmp_path: Path) -> None:
    process(tmp_path, 1)
    answer = b"\x12\x35\n\x1b/usr/local/hami-vnpu-core\x12\x1f/usr/local/hami-vnpu-core/0.2.0\x18\x01"
    note = checkpoint(tmp_path / "note", answer, b"")
    assert used(["0.1.0", "0.2.0"], tmp_path, note) == {"0.2.0"}


def test_a_note_that_is_not_there_is_somewhere_else_and_frees_nothing(tmp_path: Path) -> None:
    process(tmp_path, 1)
    with pytest.raises(InputError, match="note"):
        used(["0.1.0"], tmp_path, tmp_path / "note")


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", '{"Data": {"PodDeviceEntries": [{}]}}', '{"Data": {"PodDeviceEntries": 3}}']
)
def test_a_note_that_cannot_be_read_frees_nothing(tmp_path: Path, content: str) -> None:
    process(tmp_path, 1)
    (tmp_path / "note").write_text(content)
    with pytest.raises(InputError, match="note"):
        used(["0.1.0"], tmp_path, tmp_path / "note")


def test_processes_that_cannot_be_seen_free_nothing(tmp_path: Path) -> None:
    note = checkpoint(tmp_path / "note")
    with pytest.raises(InputError, match="processes of the host"):
        used(["0.1.0"], tmp_path / "proc", note)
    process(tmp_path, 42)
    with pytest.raises(InputError, match="processes of the host"):
        used(["0.1.0"], tmp_path, note)


def test_a_process_that_ends_meanwhile_is_passed_over(tmp_path: Path) -> None:
    process(tmp_path, 1)
    (tmp_path / "8").mkdir()
    assert used(["0.1.0"], tmp_path, checkpoint(tmp_path / "note")) == set()


def test_old_versions_go_but_the_newest_of_them_and_the_used_ones_stay(tmp_path: Path) -> None:
    core = tmp_path / names.CORE_DIR.removeprefix("/")
    for age, version in enumerate(("0.5.0", "0.4.0", "0.3.0", "0.2.0", "0.1.0")):
        (core / version).mkdir(parents=True)
        (core / version / "ld.so.preload").write_text("x")
        os.utime(core / version, (1e9 - age, 1e9 - age))
    (core / "containers").mkdir()
    process(tmp_path / "proc", 1)
    process(tmp_path / "proc", 2, f"{names.CORE_DIR}/0.2.0")
    checkpoint(tmp_path / "data/note")
    (core / ".0.0.9.removed").mkdir()  # what an end in the middle of a removal left
    place = Place.of_version(tmp_path, "0.5.0")
    assert "kubelet_internal_checkpoint" in remove_old(place, "0.5.0")[1]
    assert remove_old(place, "0.5.0", "/data/note") == (["0.1.0", "0.3.0"], "")
    assert {entry.name for entry in core.iterdir()} == {"0.5.0", "0.4.0", "0.2.0", "containers"}


def test_nothing_goes_where_it_cannot_be_told_what_is_used(tmp_path: Path) -> None:
    core = tmp_path / names.CORE_DIR.removeprefix("/")
    for version in ("0.1.0", "0.2.0", "0.3.0"):
        (core / version).mkdir(parents=True)
        (core / version / "ld.so.preload").write_text("x")
    removed, why_not = remove_old(Place.of_version(tmp_path, "0.3.0"), "0.3.0")
    assert removed == []
    assert "processes of the host must be readable" in why_not
    assert len(list(core.iterdir())) == 3
