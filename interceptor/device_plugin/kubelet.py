"""kubelet's own sockets: where a plugin registers, and where kubelet tells who got what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import grpc

from interceptor.device_plugin.lookup import Shown
from interceptor.device_plugin.wire import deviceplugin_pb2 as api
from interceptor.device_plugin.wire import podresources_pb2 as podresources
from vnpu.errors import VnpuError

if TYPE_CHECKING:
    from pathlib import Path

VERSION: Final = "v1beta1"
REGISTER: Final = "/v1beta1.Registration/Register"
LIST: Final = "/v1.PodResourcesLister/List"
_TIMEOUT_S: Final = 5.0
_LARGEST: Final = 16 * 2**20
"""Bytes of an answer: kubelet lists every pod of the node."""


class KubeletError(VnpuError):
    """kubelet does not answer, or refuses."""


def register(socket: Path, endpoint: str, resource: str) -> None:
    """Tell kubelet that a resource is served at ``endpoint``, a socket beside its own.

    Raises:
        KubeletError: it does not answer, or does not take it.
    """
    options = api.DevicePluginOptions(get_preferred_allocation_available=True)
    request = api.RegisterRequest(version=VERSION, endpoint=endpoint, resource_name=resource, options=options)
    _call(socket, REGISTER, request, api.Empty)


def served(socket: Path) -> frozenset[Shown]:
    """The containers to which kubelet gave devices.

    Raises:
        KubeletError: it does not answer.
    """
    answer = _call(socket, LIST, podresources.ListPodResourcesRequest(), podresources.ListPodResourcesResponse)
    return frozenset(
        Shown(pod.namespace, pod.name, container.name, devices.resource_name)
        for pod in answer.pod_resources
        for container in pod.containers
        for devices in container.devices
        if devices.device_ids
    )


def identity(socket: Path) -> tuple[int, int] | None:
    """What tells one socket file from its successor of the same name, None where there is none."""
    try:
        told = socket.stat()
    except OSError:
        return None
    return told.st_ino, told.st_ctime_ns


def _call(socket: Path, method: str, request: Any, answer: Any) -> Any:
    options = (("grpc.max_receive_message_length", _LARGEST), ("grpc.use_local_subchannel_pool", 1))
    with grpc.insecure_channel(f"unix:{socket}", options=options) as channel:
        call = channel.unary_unary(
            method, request_serializer=type(request).SerializeToString, response_deserializer=answer.FromString
        )
        try:
            return call(request, timeout=_TIMEOUT_S)
        except grpc.RpcError as error:
            raise KubeletError(f"{socket}: {_reason(error)}") from error


def _reason(error: Any) -> str:
    # What a call raises is the call itself.
    return f"{error.code().name}: {error.details()}"
