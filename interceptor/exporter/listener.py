"""The port of the exporter: whoever is silent or slow there takes little, and not for long."""

from __future__ import annotations

import socket
import socketserver
import threading
from contextlib import suppress
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

_IDLE_S: Final = 5.0
_WHOLE_S: Final = 10.0
"""Of one connection: who sends a byte now and then is not silent, and would else keep his place for ever."""
_MOST_REQUESTS: Final = 16


class Handler(WSGIRequestHandler):
    """Answers one request."""

    timeout = _IDLE_S

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's own name
        """Say nothing: scrapes come all day."""


class Listener(socketserver.ThreadingMixIn, WSGIServer):
    """Answers a few requests at a time, and closes what comes beyond."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int]) -> None:
        """Listen there.

        Raises:
            OSError: the address cannot be had.
        """
        self._room = threading.BoundedSemaphore(_MOST_REQUESTS)
        super().__init__(address, Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer it in a thread of its own, if there is room."""
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer it, as long as that does not take too long."""
        deadline = threading.Timer(_WHOLE_S, _hang_up, (request,))
        deadline.daemon = True
        deadline.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            deadline.cancel()
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Pass over what clients break off."""


def _hang_up(connection: socket.socket) -> None:
    with suppress(OSError):  # it is closed already
        connection.shutdown(socket.SHUT_RDWR)
