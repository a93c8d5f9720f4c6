"""gunicorn as every server here has it: one listening socket, JSON lines in its log, no settings but ours."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

from gunicorn.app.base import BaseApplication
from gunicorn.glogging import Logger

from vnpu.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping


class Server(BaseApplication):  # type: ignore[misc]
    """A server with these settings; whoever derives from it says what it serves, in :meth:`load`."""

    def __init__(self, listener: socket.socket, name: str, settings: Mapping[str, Any]) -> None:
        """Prepare.

        Args:
            listener: of :func:`listen`; it is gunicorn's from now on.
            name: of its processes.
            settings: of gunicorn, beside those that all servers have.
        """
        self._settings = {
            "bind": f"fd://{listener.detach()}",
            "control_socket_disable": True,
            "logger_class": _Log,
            "errorlog": None,
            "loglevel": "warning",
            "proc_name": name,
            **settings,
        }
        super().__init__()

    def load_config(self) -> None:
        """No file, no environment and no command line of gunicorn's own."""
        for name, value in self._settings.items():
            self.cfg.set(name, value)


class _Log(Logger):  # type: ignore[misc]
    """gunicorn's own log lines, as JSON among ours."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        self.error_log.propagate = True


def listen(host: str, port: int) -> socket.socket:
    """A socket that has its address. Nobody can connect before gunicorn listens on it.

    Args:
        host: address or name.
        port: TCP port, 0 for a free one.

    Raises:
        InputError: the address cannot be had.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, not socket.has_dualstack_ipv6())
        listener.bind(address)
    except OSError as error:
        text = error.strerror or str(error)
        raise InputError(f"{host}:{port}", text, "a free port on an address of this machine is expected") from error
    return listener


def url(scheme: str, listener: socket.socket) -> str:
    """Where a socket of :func:`listen` is reached."""
    host, port = listener.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if listener.family == socket.AF_INET6 else f"{scheme}://{host}:{port}"
