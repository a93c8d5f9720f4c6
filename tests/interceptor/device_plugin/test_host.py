from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from interceptor import elf
from interceptor.device_plugin.host import Host
from tests.support import native
from tests.support.kubelet import VERSION, HostTree, elf_head
from vnpu import names

CORE = f"{names.CORE_DIR}/{VERSION}"


def host_of(tree: HostTree, machine: str = "x86_64") -> Host:
    return Host(tree.root, VERSION, machine)


@pytest.fixture
def tree(tmp_path: Path) -> HostTree:
    return HostTree(tmp_path / "host").make()


def test_mounts_are_named_as_the_host_names_them(tree: HostTree) -> None:
    paths = host_of(tree).paths("u", "c")
    assert paths.driver == (
        "/usr/local/Ascend/driver/lib64/driver",
        "/usr/local/Ascend/driver/version.info",
        "/etc/ascend_install.info",
        "/usr/local/sbin/npu-smi",
    )
    assert paths.core_dir == CORE
    assert paths.quota_file == "/usr/local/hami-vnpu-core/quotas/u_c.json"


def test_a_driver_that_was_installed_elsewhere_is_found_there(tmp_path: Path) -> None:
    tree = HostTree(tmp_path / "host", driver_root="/opt/ascend", npu_smi="/opt/ascend/driver/tools/npu-smi").make()
    assert host_of(tree).paths("u", "c").driver == (
        "/opt/ascend/driver/lib64/driver",
        "/opt/ascend/driver/version.info",
        "/etc/ascend_install.info",
        "/opt/ascend/driver/tools/npu-smi",
    )


def test_links_are_followed_inside_of_the_host(tree: HostTree) -> None:
    tree.at("/usr/local/sbin/npu-smi").unlink()
    tree.at("/usr/local/sbin/npu-smi").symlink_to("/usr/local/Ascend/driver/version.info")
    assert host_of(tree).npu_smi() == ("chroot", str(tree.root), "/usr/local/sbin/npu-smi")
    tree.at("/usr/local/sbin/npu-smi").unlink()
    tree.at("/usr/local/sbin/npu-smi").symlink_to("../../../../../../bin/sh")
    assert host_of(tree).npu_smi() == ()


def test_links_that_lead_in_a_circle_lead_nowhere(tree: HostTree) -> None:
    tree.at("/usr/local/sbin/npu-smi").unlink()
    tree.at("/usr/local/sbin/npu-smi").symlink_to("npu-smi")
    assert host_of(tree).npu_smi() == ()


def test_the_library_of_the_right_machine_is_sound(tree: HostTree) -> None:
    assert host_of(tree).library_fault() == ""


def test_the_library_of_another_machine_is_refused(tree: HostTree) -> None:
    fault = host_of(tree, "aarch64").library_fault()
    assert fault == f"{CORE}/libvnpu.so: it is made for x86_64, and this machine is aarch64"


@pytest.mark.parametrize("name", ["libvnpu.so", "limiter", "ld.so.preload"])
def test_a_file_that_is_missing_is_named(tree: HostTree, name: str) -> None:
    tree.at(f"{CORE}/{name}").unlink()
    assert "installer" in host_of(tree).library_fault()


@pytest.mark.parametrize("content", [b"", b"text", b"\x7fELF"])
def test_a_file_that_is_no_library_is_refused(tree: HostTree, content: bytes) -> None:
    tree.at(f"{CORE}/libvnpu.so").write_bytes(content)
    assert "no ELF file" in host_of(tree).library_fault()


def test_machines_are_told_by_the_head_of_a_file() -> None:
    for arch in native.ARCHES:
        for program in (native.library(arch), native.limiter(arch)):
            assert elf.fault(program.read_bytes()[: elf.HEAD], arch) == ""
    head = elf_head("aarch64")
    assert elf.fault(head, "aarch64") == ""
    assert "made for aarch64" in elf.fault(head, "x86_64")
    other = head[:18] + (243).to_bytes(2, "little")
    assert "machine number 243" in elf.fault(other, "x86_64")
    big = head[:5] + b"\x02" + head[6:]
    assert "big-endian" in elf.fault(big, "x86_64")


def test_what_pods_left_behind_is_removed_and_nothing_else(tree: HostTree) -> None:
    host = host_of(tree)
    for uid in ("gone", "here"):
        host.prepare(uid, "app", "{}")
    tree.write(f"{names.CONTAINERS_HOST}/gone_app/vnpu_local_shmem", "mirror")
    tree.at(f"{names.CONTAINERS_HOST}/gone_link").symlink_to(tree.at(f"{names.CONTAINERS_HOST}/here_app"))
    tree.write(f"{names.CONTAINERS_HOST}/README", "an administrator's")
    assert host.pod_uids() == {"gone", "here"}
    host.forget({"gone"})
    assert host.pod_uids() == {"here"}
    assert tree.at(f"{names.CONTAINERS_HOST}/here_app").is_dir()
    assert tree.at(f"{names.CONTAINERS_HOST}/README").exists()
    assert [path.name for path in tree.at(names.QUOTAS_HOST).iterdir()] == ["here_app.json"]


def test_a_tree_that_is_deeper_than_python_follows_is_removed_too(tree: HostTree) -> None:
    host = host_of(tree)
    for uid in ("gone", "next"):
        host.prepare(uid, "app", "{}")
    deep = "import os\nfor _ in range(1200): os.mkdir('a' * 200); os.chdir('a' * 200)"
    subprocess.run([sys.executable, "-c", deep], check=True, cwd=tree.at(f"{names.CONTAINERS_HOST}/gone_app"))
    host.forget({"gone", "next"})
    assert host.pod_uids() == set()


def test_what_cannot_be_removed_is_named_and_keeps_nothing_else(
    tree: HostTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = host_of(tree)
    for uid in ("kept", "gone"):
        host.prepare(uid, "app", "{}")
    rm = tree.root / "rm"
    rm.write_text('#!/bin/sh\ncase "$*" in *kept*) echo "$*: busy" >&2; exit 1;; esac\nexec /bin/rm "$@"\n')
    rm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tree.root}:{os.environ['PATH']}")
    with pytest.raises(OSError, match=r"kept_app: busy.*kept_app\.json: busy"):
        host.forget({"kept", "gone"})
    assert host.pod_uids() == {"kept"}


def test_a_full_disk_is_told_by_path(tree: HostTree) -> None:
    program = (
        "import sys; from pathlib import Path; from interceptor.device_plugin.host import Host\n"
        "Host(Path(sys.argv[1]), '1', 'x86_64').prepare('u', 'c', 'x' * 200_000)"
    )
    quotas = tree.at(names.QUOTAS_HOST)
    quotas.mkdir(parents=True)
    mount = 'mount -t tmpfs -o size=64k tmpfs "$1" && shift && exec "$@"'
    command = [
        "unshare",
        "--mount",
        "sh",
        "-c",
        mount,
        "sh",
        str(quotas),
        sys.executable,
        "-c",
        program,
        str(tree.root),
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=native.TOP)
    if "unshare" in result.stderr:
        pytest.skip("no mounts here")
    assert result.stderr.splitlines()[-1] == f"OSError: [Errno 28] No space left on device: '{quotas}/u_c.new'"


def test_a_host_without_containers_has_no_pods(tree: HostTree) -> None:
    assert host_of(tree).pod_uids() == set()


def test_the_host_itself_is_taken_as_it_is() -> None:
    host = Host(Path("/"), VERSION, "x86_64")
    assert host.dcmi() == names.DCMI_HOST
