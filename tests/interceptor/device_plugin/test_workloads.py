"""Containers that run while the device plugin is killed and comes back as another version."""

from __future__ import annotations

import platform
import shutil
import signal
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from tests.support import node, pods
from tests.support.namespaces import BareContainer, execute, isolated, start
from tests.support.npu_client import MIB, OUT_OF_MEMORY, Client, Machine
from vnpu import names

if TYPE_CHECKING:
    from tests.support.namespaces import Running
    from tests.support.node import Allocated

QUOTA_MIB = 1024

pytestmark = [
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the clients are built for x86_64"),
    pytest.mark.timeout(240),
]


def running(stack: ExitStack, spec: Allocated, folder: Path) -> Running:
    """A container, with a root of its own where this machine allows it."""
    container = stack.enter_context(isolated(spec, folder / f"root-{spec.pod}"))
    return container or stack.enter_context(BareContainer(spec, folder / f"own-{spec.pod}").running())


def library_of(spec: Allocated) -> str:
    """The directory of the host that a container sees its library in."""
    return next(mount.host_path for mount in spec.mounts if mount.container_path == names.CORE_DIR)


def test_a_plugin_that_is_killed_and_upgraded_disturbs_no_running_container() -> None:
    first, second = (
        pods.pod(pods.container(limits=pods.asking(memory=QUOTA_MIB, core=20))) | {"metadata": {"name": name}}
        for name in ("first", "second")
    )
    with TemporaryDirectory(prefix="vnpu.") as directory, ExitStack() as stack:
        folder = Path(directory)
        there = stack.enter_context(node.running(folder / "node", Machine(folder / "npu")))
        old = there.run(first)
        container = running(stack, old, folder)
        assert execute(container, *old.hook).returncode == 0
        client = Client(start(container, f"{node.TOOLS}/client"))
        stack.callback(client.end)
        assert client.call("aclrtSetDevice", 0) == 0
        assert client.call("aclrtMalloc", "&a", 300 * MIB, 0) == 0

        assert there.plugin.end(signal.SIGKILL) == -signal.SIGKILL
        assert client.call("aclrtMalloc", "&b", 300 * MIB, 0) == 0

        installed = there.host.at(f"{names.CORE_DIR}/{there.host.version}")
        there.host.version = "9.9.10"
        shutil.copytree(installed, there.host.at(f"{names.CORE_DIR}/{there.host.version}"))
        there.plugin.start()
        there = replace(there, endpoint=there.kubelet.channel(there.kubelet.registration()))
        assert client.call("aclrtMalloc", "&c", 300 * MIB, 0) == 0
        assert client.call("aclrtMalloc", "&d", 300 * MIB, 0) == OUT_OF_MEMORY

        new = there.run(second)
        assert (Path(library_of(old)).name, Path(library_of(new)).name) == ("9.9.9", "9.9.10")
        beside = running(stack, new, folder)
        assert execute(beside, *new.hook).returncode == 0
        assert execute(container, names.LIMITER, "status").returncode == 0
        assert client.call("aclrtFree", "$a") == 0
        assert client.call("aclrtMalloc", "&d", 300 * MIB, 0) == 0
