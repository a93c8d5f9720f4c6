"""The gRPC service that kubelet calls: one socket for the resource of one chip."""

from __future__ import annotations

import threading
from concurrent import futures
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import grpc

from interceptor.device_plugin import inventory as offers
from interceptor.device_plugin import kubelet
from interceptor.device_plugin.allocator import AllocateError
from interceptor.device_plugin.wire import deviceplugin_pb2 as api

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from interceptor.device_plugin.allocator import Allocator
    from interceptor.device_plugin.inventory import Inventory, Offered
    from vnpu.chips import Chip

SERVICE: Final = "v1beta1.DevicePlugin"
HEALTHY: Final = "Healthy"
UNHEALTHY: Final = "Unhealthy"
_WORKERS: Final = 8
"""Threads: kubelet holds one stream open, two while it starts again, and allocates one container at a time."""
_GRACE_S: Final = 2.0
_LOOK_S: Final = 5.0
"""How often a stream looks whether kubelet is still there when nothing changes."""


class Board:
    """The inventory of now, on which streams wait for the next one."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._changed = threading.Condition()

    def show(self, inventory: Inventory) -> bool:
        """Put up what is offered now; whether that is something new. Nobody need be looking."""
        with self._changed:
            if inventory == self._inventory:
                return False
            self._inventory = inventory
            self._changed.notify_all()
            return True

    @property
    def inventory(self) -> Inventory:
        """What is offered now."""
        return self._inventory

    def next(self, seen: Inventory | None, closing: threading.Event) -> Inventory:
        """The inventory: at once where it is not the one that was ``seen``, after a while, or when all is closing."""
        with self._changed:
            self._changed.wait_for(lambda: self._inventory is not seen or closing.is_set(), _LOOK_S)
            return self._inventory

    def wake(self) -> None:
        """Let everyone who waits look up."""
        with self._changed:
            self._changed.notify_all()


class Endpoint:
    """A socket at which the slots of one chip are offered."""

    def __init__(self, chip: Chip, directory: Path, board: Board, allocator: Allocator) -> None:
        self.chip = chip
        self.socket = directory / f"{chip.common_word}.sock"
        self._board = board
        self._allocator = allocator
        self._server: grpc.Server | None = None
        self._closing = threading.Event()
        self._made: tuple[int, int] | None = None

    @property
    def serving(self) -> bool:
        """Whether kubelet can reach it: kubelet removes every socket in its directory when it starts."""
        return self._server is not None and kubelet.identity(self.socket) == self._made

    def start(self) -> None:
        """Serve at a fresh socket.

        Raises:
            OSError: the directory refuses.
        """
        self.stop()
        with suppress(FileNotFoundError):
            self.socket.unlink()
        server = grpc.server(futures.ThreadPoolExecutor(_WORKERS, "grpc"))
        server.add_generic_rpc_handlers((self._handlers(),))
        try:
            server.add_insecure_port(f"unix:{self.socket}")
        except RuntimeError as error:
            raise OSError(f"{self.socket}: {error}") from error
        self._closing.clear()
        server.start()
        self._server, self._made = server, kubelet.identity(self.socket)

    def stop(self) -> None:
        """End all streams and calls, and take the socket away."""
        if self._server is not None:
            self._closing.set()
            self._board.wake()
            self._server.stop(_GRACE_S).wait()
            self._server = None
            with suppress(FileNotFoundError):
                self.socket.unlink()

    def _handlers(self) -> Any:
        calls: dict[str, tuple[Any, Any]] = {
            "GetDevicePluginOptions": (self._options, api.Empty),
            "GetPreferredAllocation": (self._prefer, api.PreferredAllocationRequest),
            "Allocate": (self._allocate, api.AllocateRequest),
        }
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(
                call, request_deserializer=request.FromString, response_serializer=_serialized
            )
            for name, (call, request) in calls.items()
        }
        handlers["ListAndWatch"] = grpc.unary_stream_rpc_method_handler(
            self._watch, request_deserializer=api.Empty.FromString, response_serializer=_serialized
        )
        return grpc.method_handlers_generic_handler(SERVICE, handlers)

    def _options(self, _request: api.Empty, _context: grpc.ServicerContext) -> api.DevicePluginOptions:
        return api.DevicePluginOptions(get_preferred_allocation_available=True)

    def _watch(self, _request: api.Empty, context: grpc.ServicerContext) -> Iterator[api.ListAndWatchResponse]:
        seen: Inventory | None = None
        told: tuple[Offered, ...] | None = None
        while context.is_active() and not self._closing.is_set():
            cards = (seen := self._board.next(seen, self._closing)).of(self.chip)
            if cards != told:
                told = cards
                yield api.ListAndWatchResponse(devices=[device for card in cards for device in _devices(card)])

    def _prefer(
        self, request: api.PreferredAllocationRequest, _context: grpc.ServicerContext
    ) -> api.PreferredAllocationResponse:
        answers = []
        for one in request.container_requests:
            ids = offers.preferred(
                one.available_deviceIDs,
                one.must_include_deviceIDs,
                one.allocation_size,
                self._allocator.wanted(self.chip, one.allocation_size),
            )
            answers.append(api.ContainerPreferredAllocationResponse(deviceIDs=ids))
        return api.PreferredAllocationResponse(container_responses=answers)

    def _allocate(self, request: api.AllocateRequest, context: grpc.ServicerContext) -> api.AllocateResponse:
        counts = [len(one.devicesIDs) for one in request.container_requests]
        try:
            responses = self._allocator.allocate(self.chip, counts)
        except AllocateError as error:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
        return api.AllocateResponse(
            container_responses=[
                api.ContainerAllocateResponse(
                    envs=response.env,
                    mounts=[
                        api.Mount(host_path=one.host_path, container_path=one.container_path, read_only=one.read_only)
                        for one in response.mounts
                    ],
                )
                for response in responses
            ]
        )


def _devices(offered: Offered) -> list[api.Device]:
    health = HEALTHY if offered.card.healthy else UNHEALTHY
    return [api.Device(ID=slot, health=health) for slot in offered.slots()]


def _serialized(message: Any) -> bytes:
    return bytes(message.SerializeToString())
