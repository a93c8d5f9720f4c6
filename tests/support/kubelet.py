"""A kubelet as a device plugin meets it: real gRPC over unix sockets, and the plugin as a process of its own."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from concurrent import futures
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import grpc
import pytest

from interceptor.device_plugin.host import Host
from interceptor.device_plugin.kubelet import LIST, REGISTER
from interceptor.device_plugin.plugin import Plugin, Setup
from interceptor.device_plugin.service import SERVICE
from interceptor.device_plugin.settings import NodeSettings
from interceptor.device_plugin.wire import deviceplugin_pb2 as api
from interceptor.device_plugin.wire import podresources_pb2 as podresources
from interceptor.devices import DevicesError
from tests.support import native
from tests.support.containers import PATIENCE_S
from vnpu import names
from vnpu.chips import DEFAULT_CHIPS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from interceptor.devices import Machine
    from tests.support.api_stand_in import ApiStandIn
    from vnpu.kube import Cluster

VERSION = "9.9.9"
"""Of the libraries on the host of these tests."""


def _handler(method: str, call: Any, request: Any) -> Any:
    _, service, name = method.split("/")
    handler = grpc.unary_unary_rpc_method_handler(
        lambda message, _: call(message),
        request_deserializer=request.FromString,
        response_serializer=lambda answer: answer.SerializeToString(),
    )
    return grpc.method_handlers_generic_handler(service, {name: handler})


def _serve(socket: Path, handler: Any) -> grpc.Server:
    server = grpc.server(futures.ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((handler,))
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    return server


@dataclass(frozen=True)
class Slices:
    """What a stream told: ids and their health."""

    health: dict[str, str]

    def healthy(self) -> set[str]:
        return {slot for slot, health in self.health.items() if health == "Healthy"}

    def sick_cards(self) -> set[str]:
        return {slot.rpartition("-")[0] for slot, health in self.health.items() if health != "Healthy"}


class Stream:
    """A ListAndWatch stream as kubelet holds it open."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._answers: queue.Queue[Slices | None] = queue.Queue()
        call = channel.unary_stream(
            f"/{SERVICE}/ListAndWatch",
            request_serializer=api.Empty.SerializeToString,
            response_deserializer=api.ListAndWatchResponse.FromString,
        )
        self._call = call(api.Empty(), wait_for_ready=True)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with suppress(grpc.RpcError):
            for answer in self._call:
                self._answers.put(Slices({device.ID: device.health for device in answer.devices}))
        self._answers.put(None)

    def next(self) -> Slices:
        answer = self._answers.get(timeout=PATIENCE_S)
        assert answer is not None, "the stream ended"
        return answer

    def until_sick(self, cards: set[str]) -> Slices:
        """The first list in which exactly these cards are unhealthy."""
        while (slices := self.next()).sick_cards() != cards:
            pass
        return slices

    def ended(self) -> None:
        while self._answers.get(timeout=PATIENCE_S) is not None:
            pass

    def close(self) -> None:
        self._call.cancel()
        self._thread.join(PATIENCE_S)


class Kubelet:
    """kubelet's side of the device plugin API, in a directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "kubelet"
        self.folder.mkdir()
        self.pod_resources = self.folder / "pods.sock"
        self.registered: queue.Queue[api.RegisterRequest] = queue.Queue()
        self.shown: list[podresources.PodResources] = []
        self.refusals = 0
        """How many registrations are refused first."""
        self._servers: list[grpc.Server] = []
        self._channels: list[grpc.Channel] = []

    @property
    def plugins(self) -> Path:
        return self.folder

    def start(self, *, pod_resources: bool = True) -> None:
        """As kubelet starts: it clears its directory, then listens."""
        for socket in self.folder.glob("*.sock"):
            socket.unlink()
        register = _handler(REGISTER, self._register, api.RegisterRequest)
        self._servers.append(_serve(self.folder / names.KUBELET_SOCKET, register))
        if pod_resources:
            answer = _handler(LIST, self._list, podresources.ListPodResourcesRequest)
            self._servers.append(_serve(self.pod_resources, answer))

    def stop(self) -> None:
        for channel in self._channels:
            channel.close()
        for server in self._servers:
            server.stop(0).wait()
        self._channels.clear()
        self._servers.clear()

    def restart(self) -> None:
        self.stop()
        self.start()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _register(self, request: api.RegisterRequest) -> api.Empty:
        if self.refusals:
            self.refusals -= 1
            raise RuntimeError("not now")
        self.registered.put(request)
        return api.Empty()

    def _list(self, _: podresources.ListPodResourcesRequest) -> podresources.ListPodResourcesResponse:
        return podresources.ListPodResourcesResponse(pod_resources=self.shown)

    def registration(self) -> api.RegisterRequest:
        return self.registered.get(timeout=PATIENCE_S)

    def channel(self, request: api.RegisterRequest) -> Endpoint:
        channel = grpc.insecure_channel(
            f"unix:{self.folder / request.endpoint}", options=[("grpc.use_local_subchannel_pool", 1)]
        )
        self._channels.append(channel)
        return Endpoint(channel)

    def served(self, namespace: str, pod: str, container: str, resource: str, *ids: str) -> None:
        """Let kubelet's list of pods show a container with devices."""
        devices = podresources.ContainerDevices(resource_name=resource, device_ids=ids)
        one = podresources.ContainerResources(name=container, devices=[devices])
        self.shown.append(podresources.PodResources(name=pod, namespace=namespace, containers=[one]))


class Endpoint:
    """A plugin's socket."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._channel = channel

    def stream(self) -> Stream:
        return Stream(self._channel)

    def _call(self, name: str, request: Any, answer: Any) -> Any:
        call = self._channel.unary_unary(
            f"/{SERVICE}/{name}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=answer.FromString,
        )
        return call(request, timeout=PATIENCE_S, wait_for_ready=True)

    def options(self) -> api.DevicePluginOptions:
        answer: api.DevicePluginOptions = self._call("GetDevicePluginOptions", api.Empty(), api.DevicePluginOptions)
        return answer

    def allocate(self, *containers: Sequence[str]) -> list[api.ContainerAllocateResponse]:
        """Ask for the slots of one container or several."""
        requests = [api.ContainerAllocateRequest(devicesIDs=ids) for ids in containers]
        answer = self._call("Allocate", api.AllocateRequest(container_requests=requests), api.AllocateResponse)
        return list(answer.container_responses)

    def refused(self, *containers: Sequence[str]) -> str:
        """Ask for what must not be given; the reason."""
        with pytest.raises(grpc.RpcError) as raised:
            self.allocate(*containers)
        call: Any = raised.value  # what a call raises is the call itself
        assert call.code() is grpc.StatusCode.FAILED_PRECONDITION, call
        return str(call.details())

    def preferred(self, available: Sequence[str], size: int, needed: Sequence[str] = ()) -> list[str]:
        one = api.ContainerPreferredAllocationRequest(
            available_deviceIDs=available, must_include_deviceIDs=needed, allocation_size=size
        )
        request = api.PreferredAllocationRequest(container_requests=[one])
        answer = self._call("GetPreferredAllocation", request, api.PreferredAllocationResponse)
        return list(answer.container_responses[0].deviceIDs)


def elf_head(machine: str) -> bytes:
    """How a program for a machine begins."""
    number = {"x86_64": 62, "aarch64": 183}[machine]
    return b"\x7fELF\2\1\1".ljust(16, b"\0") + (3).to_bytes(2, "little") + number.to_bytes(2, "little")


@dataclass
class HostTree:
    """A host's file system below a directory, as the driver's installer and ours leave it.

    Library and limiter are their first bytes alone.
    """

    root: Path
    machine: str = "x86_64"
    driver_root: str = "/usr/local/Ascend"
    npu_smi: str = "/usr/local/sbin/npu-smi"
    version: str = VERSION

    def at(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def make(self) -> HostTree:
        for path in (f"{self.driver_root}/driver/lib64/driver", names.SHARED_REGION_HOST):
            self.at(path).mkdir(parents=True)
        self.at(names.SHARED_REGION_HOST).chmod(0o1777)
        self.write(f"{self.driver_root}/driver/version.info", "Version=25.5.0\n")
        self.write("/etc/ascend_install.info", f"Driver_Install_Path_Param={self.driver_root}\n")
        if self.npu_smi:
            self.write(self.npu_smi, "")
        core = self.at(f"{names.CORE_DIR}/{self.version}")
        core.mkdir(parents=True)
        for name in ("libvnpu.so", "limiter"):
            (core / name).write_bytes(elf_head(self.machine))
        (core / names.PRELOAD_FILE_NAME).write_text(f"{names.CORE_DIR}/libvnpu.so\n")
        return self

    def write(self, path: str, text: str) -> None:
        self.at(path).parent.mkdir(parents=True, exist_ok=True)
        self.at(path).write_text(text)


@dataclass
class PluginThread:
    """A plugin for a soft node in a thread of this process: what it does at its sockets, without a start of Python."""

    kubelet: Kubelet
    host: HostTree
    cluster: Cluster
    machine: Machine
    npu_smi: tuple[str, ...] | None = None
    settings: NodeSettings = field(default_factory=NodeSettings)
    soft: bool = True
    health_s: float = 0.1
    report_s: float = 0.1

    def ask(self) -> Machine:
        """The driver's answer, which a test may change at any time."""
        if not self.machine.driver:
            raise DevicesError("the driver is silent")
        return self.machine

    @contextmanager
    def running(self) -> Iterator[PluginThread]:
        command = self.npu_smi
        setup = Setup(
            "n1",
            self.settings,
            DEFAULT_CHIPS,
            self.soft,
            (self.ask,),
            None if command is None else lambda: command,
            self.kubelet.plugins,
            self.kubelet.pod_resources,
            self.health_s,
            self.report_s,
        )
        host = Host(self.host.root, self.host.version, self.host.machine)
        plugin = Plugin(setup, host, self.cluster)
        thread = threading.Thread(target=plugin.run)
        thread.start()
        try:
            yield self
        finally:
            plugin.stop()
            thread.join(PATIENCE_S)
            assert not thread.is_alive()


@dataclass
class PluginProcess:
    """``python -m interceptor.device_plugin`` for one node."""

    folder: Path
    kubelet: Kubelet
    api: ApiStandIn
    host: HostTree
    npu_sim: Path | None = None
    """The state of a simulated machine, whose libdcmi and npu-smi are then used."""
    node: str = "n1"
    arguments: list[str] = field(default_factory=list)
    process: subprocess.Popen[str] | None = None

    @property
    def log_path(self) -> Path:
        return self.folder / "plugin.log"

    def log(self) -> str:
        return self.log_path.read_text()

    def command(self) -> list[str]:
        fixed = {
            "--kubelet-dir": self.kubelet.plugins,
            "--pod-resources": self.kubelet.pod_resources,
            "--host-root": self.host.root,
            "--kubeconfig": self.api.kubeconfig(self.folder),
            "--core-version": self.host.version,
        }
        options = [str(part) for pair in fixed.items() for part in pair]
        return [sys.executable, "-X", "faulthandler", "-m", "interceptor.device_plugin", *options, *self.arguments]

    def start(self) -> None:
        simulator = native.simulator("nested")
        env = {**os.environ, "NODE_NAME": self.node, "TZ": "UTC"}
        if self.npu_sim is not None:
            env |= {"LD_LIBRARY_PATH": str(simulator), "NPU_SIM_STATE": str(self.npu_sim)}
        with self.log_path.open("a") as log:
            self.process = subprocess.Popen(self.command(), env=env, cwd=native.TOP, stderr=log, text=True)

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(number)
        process, self.process = self.process, None
        try:
            return process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGABRT)  # the log then has what each thread was doing
            process.wait(PATIENCE_S)
            raise AssertionError(self.log()) from None

    @contextmanager
    def running(self) -> Iterator[PluginProcess]:
        self.start()
        try:
            yield self
        finally:
            if self.process is not None:
                code = self.end()
                assert code == 0, self.log()
