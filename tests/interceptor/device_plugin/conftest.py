from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from interceptor.devices import machine_of
from tests.support import native
from tests.support.api_stand_in import ApiStandIn
from tests.support.clusters import any_cluster, real_kubeconfig  # noqa: F401 - fixtures for tests in this folder
from tests.support.device_plugin import Bench, device
from tests.support.kubelet import HostTree, Kubelet, PluginProcess, PluginThread
from tests.support.simulated_npu import Machine
from vnpu import kube

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A directory with a short name: a socket's path has at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="vnpu.") as folder:
        yield Path(folder)


@pytest.fixture
def api() -> Iterator[ApiStandIn]:
    """An API server with the node n1, as kubelet registers it."""
    with ApiStandIn() as api:
        api.put(kube.NODES, {"metadata": {"name": "n1"}, "status": {"capacity": {"cpu": "8"}}})
        yield api


@pytest.fixture
def kubelet(short_path: Path) -> Iterator[Kubelet]:
    with Kubelet(short_path) as kubelet:
        yield kubelet


@pytest.fixture
def npu() -> Iterator[Machine]:
    """A machine of two cards."""
    native.simulator("nested")
    with tempfile.TemporaryDirectory(prefix="npu_sim.", dir="/dev/shm") as folder:
        machine = Machine(Path(folder) / "machine")
        machine.tool("create", "cards=2")
        yield machine


@pytest.fixture
def plugin(short_path: Path, kubelet: Kubelet, api: ApiStandIn, npu: Machine) -> PluginProcess:
    """A plugin for a soft node on that machine, not started yet."""
    host = HostTree(short_path / "host").make()
    smi = str(native.simulator("nested") / "npu-smi")
    return PluginProcess(short_path, kubelet, api, host, npu.state, arguments=["--mode", "soft", "--npu-smi", smi])


@pytest.fixture
def thread(short_path: Path, kubelet: Kubelet, api: ApiStandIn) -> PluginThread:
    """A plugin for a soft node of two 910B3, not started yet."""
    host = HostTree(short_path / "host").make()
    machine = machine_of("test", "25.5.0", [device(0), device(1)])
    return PluginThread(kubelet, host, api.cluster(short_path, timeout_s=0.5), machine)


@pytest.fixture
def bench(api: ApiStandIn, tmp_path: Path) -> Bench:
    """An allocator of a soft node with two 910B3."""
    return Bench(api, HostTree(tmp_path / "host").make(), tmp_path)
