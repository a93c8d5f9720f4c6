"""One TLS connection that never waits: each call does what can be done now and says what is missing."""

from __future__ import annotations

import select
import socket
import ssl
from contextlib import suppress
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

from webhook import exchange

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.exchange import Exchange

_RECORD: Final = 2**14
"""Bytes that a TLS record carries at most (RFC 8446, 5.1). Who takes as many leaves none decrypted in OpenSSL's hands,
where a poll of the socket would not see them."""
_RECORDS_AT_ONCE: Final = 16
_MOST_DROPPED: Final = 64 * 2**20
"""Bytes of a refused body: whoever sends more may as well find a broken connection."""

_LATER: Final = object()


class Phase(Enum):
    """What a connection is about."""

    HANDSHAKE = auto()
    FRESH = auto()
    """Nothing came since the handshake: clients open connections ahead."""
    IDLE = auto()
    """Kept alive between two requests."""
    HEAD = auto()
    BODY = auto()
    ANSWERING = auto()
    SENDING = auto()
    LINGERING = auto()
    """Everything is said. What the client is still sending is dropped: closing at once would reset the connection, and
    the answer might be lost with it."""


class Connection:
    """A connection and the request that is coming over it.

    Attributes:
        phase: what it is about; with its deadline it is the worker's.
        since: when that began, monotonic seconds.
        deadline: when that is given up, monotonic seconds.
        wants: the epoll mask that brings it on.
        peer: the client's address.
        received: bytes that came and were not used.
        exchange: the request, while there is one.
        keep: whether another request may follow the answer that is being sent.
    """

    __slots__ = (
        *("_dropped", "_number", "_scanned", "_sending", "_tls"),
        *("deadline", "exchange", "keep", "peer", "phase", "received", "since", "wants"),
    )

    def __init__(self, plain: socket.socket, peer: tuple[Any, ...], context: ssl.SSLContext) -> None:
        """Take over a connection that was accepted; nothing is read yet.

        Raises:
            OSError: it is gone already.
        """
        plain.settimeout(0)
        self._tls = context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
        self.peer = peer
        self.phase = Phase.HANDSHAKE
        self.since = self.deadline = 0.0
        self.wants = select.EPOLLIN
        self.received = bytearray()
        self.exchange: Exchange | None = None
        self.keep = False
        self._number = 0
        self._scanned = 0
        self._sending = b""
        self._dropped = 0

    def fileno(self) -> int:
        """The descriptor to poll."""
        return self._tls.fileno()

    @property
    def whole(self) -> bool:
        """Whether the body of the request is there."""
        return self.exchange is not None and len(self.received) >= self.exchange.length

    def shake_hands(self) -> bool:
        """Go on with the handshake; whether it is done.

        Raises:
            OSError: it failed.
        """
        return self._now(self._tls.do_handshake) is not _LATER

    def receive(self) -> bool:
        """Read one record; False where nothing is there.

        Raises:
            EOFError: the client has ended the connection.
            OSError: it is broken.
        """
        data = self._now(self._tls.recv, _RECORD)
        if data is _LATER:
            return False
        if not data:
            raise EOFError
        self.received += data
        return True

    def read_head(self, settings: Any) -> bool:
        """Read the head of a request from what came; whether there is one, in :attr:`exchange`.

        Raises:
            Malformed: what came is no HTTP request.
        """
        end = self.received.find(exchange.HEAD_END, self._scanned)
        if max(end, len(self.received) if end < 0 else 0) > exchange.LARGEST_HEAD:
            raise exchange.Malformed
        if end < 0:
            self._scanned = max(0, len(self.received) - len(exchange.HEAD_END) + 1)
            return False
        end += len(exchange.HEAD_END)
        head = bytes(self.received[:end])
        del self.received[:end]
        self._scanned = 0
        self._number += 1
        self.exchange = exchange.Exchange(head, settings, self.peer, self._number)
        return True

    def take_body(self) -> bytes:
        """The whole body; what came behind it belongs to the next request."""
        assert self.exchange is not None
        body = bytes(self.received[: self.exchange.length])
        del self.received[: self.exchange.length]
        return body

    def say_continue(self) -> None:
        """Ask for the body. It is a hint: where it cannot be sent at once, the client's patience decides.

        Raises:
            OSError: the connection is broken.
        """
        self._now(self._tls.send, exchange.CONTINUE)

    def send(self, data: bytes) -> bool:
        """Send an answer; whether all of it is on its way. Call :meth:`flush` where it is not.

        Raises:
            OSError: the connection is broken.
        """
        self._sending = data
        return self.flush()

    def flush(self) -> bool:
        """Go on sending; whether all of it is on its way.

        Raises:
            OSError: the connection is broken.
        """
        while self._sending:
            sent = self._now(self._tls.send, self._sending)
            if sent is _LATER:
                return False
            self._sending = self._sending[sent:]
        return True

    def _now(self, operation: Callable[..., Any], *arguments: Any) -> Any:
        """What comes of an operation, or that it has to wait; TLS may have to write before it can read, and so on."""
        try:
            result = operation(*arguments)
        except ssl.SSLWantReadError:
            self.wants = select.EPOLLIN
        except ssl.SSLWantWriteError:
            self.wants = select.EPOLLOUT
        else:
            self.wants = select.EPOLLIN
            return result
        return _LATER

    def say_goodbye(self) -> None:
        """End this side of the connection: first that of TLS, then that of TCP."""
        self.received.clear()
        with suppress(OSError, ValueError):
            self._tls.unwrap()
        with suppress(OSError):
            self._tls.shutdown(socket.SHUT_WR)  # what is read from now on is no longer decrypted
        self.wants = select.EPOLLIN

    def drop_rest(self) -> bool:
        """Read and forget; whether the client has ended its side, or sends without end.

        Raises:
            OSError: the connection is broken.
        """
        for _ in range(_RECORDS_AT_ONCE):
            try:
                data = self._tls.recv(_RECORD)
            except BlockingIOError:
                return False
            self._dropped += len(data)
            if not data or self._dropped > _MOST_DROPPED:
                return True
        return False

    def close(self) -> None:
        """Give up the connection."""
        with suppress(OSError):
            self._tls.close()
