"""Whether API servers should call this server: asked by the kubelet at ``/readyz``."""

from __future__ import annotations

import ipaddress
import socket
import ssl
import threading
import time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from webhook.board import Flag
    from webhook.reload import Reloader

_CONNECT_S: Final = 0.8
"""A kubelet waits one second, unless it is told otherwise."""
_KEPT_S: Final = 0.5
"""How long what was found is told again: asking often costs no more than asking twice a second."""


class Readiness:
    """Compares, over a new connection to the server itself, what is served with what should be."""

    def __init__(self, address: tuple[Any, ...], reloader: Reloader, draining: Flag) -> None:
        """Ask the server at this address, as a socket tells it."""
        self._address = callable_address(address)
        self._reloader = reloader
        self._draining = draining
        self._lock = threading.Lock()
        self._found = ""
        self._until = 0.0
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._context.check_hostname = False
        self._context.verify_mode = ssl.CERT_NONE  # the certificate is compared instead

    def unready(self) -> str:
        """Why the server is not ready; ``""`` where it is."""
        if self._draining:
            return "draining: the server is about to end"
        with self._lock:
            if time.monotonic() >= self._until:
                self._found = self._look()
                self._until = time.monotonic() + _KEPT_S
            return self._found

    def _look(self) -> str:
        if not self._reloader.certificate.value.validity.holds(time.time()):
            return "the certificate is not valid at this time"
        try:
            with (
                socket.create_connection(self._address, _CONNECT_S) as plain,
                self._context.wrap_socket(plain) as connection,
            ):
                served = connection.getpeercert(binary_form=True)
        except OSError as error:
            return f"a new connection failed: {error}"
        if served is None or not self._reloader.may_serve(served):
            return "another certificate is served than the one that should be"
        return ""


def callable_address(address: tuple[Any, ...]) -> tuple[str, int]:
    """Where a server that listens on an address can be called from the same machine."""
    host, port = address[:2]
    found = ipaddress.ip_address(host)
    if found.is_unspecified:
        return ("::1" if found.version == 6 else "127.0.0.1"), port
    return host, port
