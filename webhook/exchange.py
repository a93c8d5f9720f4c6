"""One HTTP request and its answer, both in memory: gunicorn reads and writes HTTP, no socket is touched here."""

from __future__ import annotations

import io
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from gunicorn.http import wsgi
from gunicorn.http.errors import NoMoreData, ParseException
from gunicorn.http.message import Request
from gunicorn.http.unreader import IterUnreader

from webhook import wire

if TYPE_CHECKING:
    from collections.abc import Mapping
    from wsgiref.types import WSGIApplication

HEAD_END: Final = b"\r\n\r\n"
LARGEST_HEAD: Final = 2**15
"""Bytes. Go's client sends some 300."""
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_RETRY_S: Final = 1


class Malformed(Exception):  # noqa: N818 - what it is, said to the client
    """Bytes that are no HTTP request."""


class Exchange:
    """A request whose head is there.

    Attributes:
        length: bytes of the body that is to be read, 0 where it is refused by its head.
        refused: whether the answer goes out without a look at the body, which is dropped.
        expects: whether the client waits for ``100 Continue`` before it sends the body.
        method: in upper case.
    """

    def __init__(self, head: bytes, settings: Any, peer: tuple[Any, ...], number: int) -> None:
        """Read a head, which ends with an empty line.

        Args:
            head: the bytes.
            settings: gunicorn's.
            peer: the client's address.
            number: how many requests came over this connection, with this one.

        Raises:
            Malformed: it is no HTTP request, or one that may be read in two ways.
        """
        try:
            self._request = Request(settings, IterUnreader(iter((head,))), peer, number)
        except (ParseException, NoMoreData, StopIteration) as error:
            raise Malformed from error
        self._request.scheme = "https"
        self._settings = settings
        self._peer = peer
        self.method: str = self._request.method
        fields = dict(self._request.headers)
        try:
            length = fields.get("CONTENT-LENGTH", None if self.method == "POST" else "0")
            self.length = wire.body_length(length, fields.get("TRANSFER-ENCODING"))
            self.refused = False
        except wire.UnreadableError:
            self.length = 0
            self.refused = True
        self.expects: bool = self._request._expected_100_continue and not self.refused  # noqa: SLF001 - version pinned
        self._request._expected_100_continue = False  # noqa: SLF001 - it is answered by whoever reads the body

    def answer(
        self, application: WSGIApplication, body: bytes, server: tuple[Any, ...], *, last: bool
    ) -> tuple[bytes, bool]:
        """The bytes of the answer, and whether another request may come over the same connection.

        Args:
            application: what answers.
            body: all of it.
            server: the address that was called.
            last: whether this is the last answer over this connection.
        """
        self._request.body = io.BytesIO(body)
        sink = _Sink()
        response, environ = wsgi.create(self._request, sink, self._peer, server, self._settings)
        environ["wsgi.multithread"] = True
        if last or self.refused:
            response.force_close()
        parts = application(environ, response.start_response)
        try:
            for part in parts:
                response.write(part)
            response.close()
        finally:
            if hasattr(parts, "close"):
                parts.close()
        return bytes(sink.data), not response.should_close()


class _Sink:
    """What gunicorn takes for a socket; the answer leaves in one piece, and so in one TLS record."""

    def __init__(self) -> None:
        self.data = bytearray()

    def sendall(self, data: bytes) -> None:
        self.data += data


def plain(status: HTTPStatus, text: str, *, close: bool, fields: Mapping[str, str] | None = None) -> bytes:
    """An answer of one line that no application was asked for."""
    lines = [
        f"HTTP/1.1 {status.value} {status.phrase}",
        f"Connection: {'close' if close else 'keep-alive'}",
        "Content-Type: text/plain",
        f"Content-Length: {len(text) + 1}",
        *(f"{name}: {value}" for name, value in (fields or {}).items()),
    ]
    return ("\r\n".join(lines) + f"\r\n\r\n{text}\n").encode("ascii")


MALFORMED: Final = plain(HTTPStatus.BAD_REQUEST, "not an HTTP request that is served here", close=True)
FAULT: Final = plain(HTTPStatus.INTERNAL_SERVER_ERROR, "internal error; the log tells the cause", close=True)


def busy(*, close: bool) -> bytes:
    """The answer that turns a request away."""
    return plain(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "too much to do; ask again",
        close=close,
        fields={"Retry-After": str(_RETRY_S)},
    )
