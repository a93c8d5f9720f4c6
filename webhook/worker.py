"""The gunicorn worker: what stock gthread does otherwise than an API server should see it."""

from __future__ import annotations

import ssl
import time
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from gunicorn.http.errors import ParseException
from gunicorn.workers.gthread import ThreadWorker

from webhook import logs, wire

if TYPE_CHECKING:
    from concurrent.futures import Future

_DROP_BYTES: Final = 64 * 2**20
_DROP_S: Final = 5.0
"""Of a refused body: what more, or longer, may as well break."""


class Worker(ThreadWorker):  # type: ignore[misc]
    """gthread that answers and logs in its own way, closes what it will not read, and counts connections right."""

    def init_process(self) -> None:
        """Serve, until a signal ends it; log lines are written by the thread that waits for connections."""
        logs.defer()
        try:
            super().init_process()
        finally:
            logs.write_out()

    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        """One turn of the loop. It wakes up after each request, so that no line waits long."""
        super().wait_for_and_dispatch_events(timeout)
        logs.write_out()

    def handle_request(self, req: Any, conn: Any) -> bool:
        """Let the application answer.

        A body that it refuses by its head is not asked for. Most clients send it all the same before they look for the
        answer, and would find a broken connection: it is dropped piece by piece, once the answer is on its way.
        """
        headers = dict(req.headers)
        try:
            wire.body_length(headers.get("CONTENT-LENGTH", "0"), headers.get("TRANSFER-ENCODING"))
        except wire.UnreadableError:
            req.force_close()
            req._expected_100_continue = False  # noqa: SLF001 - gunicorn's version is pinned
            super().handle_request(req, conn)
            with suppress(OSError, ParseException):
                conn.parser.finish_body(deadline=time.monotonic() + _DROP_S, max_bytes=_DROP_BYTES)
            return False
        return bool(super().handle_request(req, conn))

    def handle_error(self, req: Any, client: Any, addr: Any, exc: Exception) -> None:
        """Answer what is no HTTP request, or failed, with a line of text where gunicorn has a page."""
        if isinstance(exc, ssl.SSLError):
            self.log.debug("TLS failed: %s", exc)
            return
        if isinstance(exc, ParseException):
            status, text = HTTPStatus.BAD_REQUEST, "not an HTTP request that is served here"
        else:
            status, text = HTTPStatus.INTERNAL_SERVER_ERROR, "internal error; the log tells the cause"
            self.log.error("request from %s failed: %s", addr, getattr(req, "uri", "not read"), exc_info=exc)
        head = f"HTTP/1.1 {status.value} {status.phrase}\r\nConnection: close\r\nContent-Type: text/plain\r\n"
        with suppress(OSError):
            client.sendall(f"{head}Content-Length: {len(text) + 1}\r\n\r\n{text}\n".encode())

    def finish_request(self, conn: Any, fs: Future[Any]) -> None:
        """Take the connection back from its thread.

        One whose handshake failed is closed already. gunicorn would close it again, fail, and count it out twice; with
        the count below zero it would end at SIGTERM without waiting for requests that are being answered.
        """
        if conn.sock.fileno() < 0:
            self.nr_conns -= 1
            return
        super().finish_request(conn, fs)
