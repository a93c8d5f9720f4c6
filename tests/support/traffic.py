"""Steady calls to a server, as API servers make them: some over kept connections, some over a new one each."""

from __future__ import annotations

import socket
import threading
import time
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator

TIMEOUT_S = 30
_RECENT = 64


def post(body: bytes, path: str = "/mutate") -> bytes:
    """The bytes of a request."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: webhook\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        "\r\n"
    )
    return head.encode() + body


class Client:
    """One connection, and one request at a time over it."""

    def __init__(
        self,
        address: tuple[str, int],
        context: ssl.SSLContext,
        name: str | None = None,
        session: ssl.SSLSession | None = None,
    ) -> None:
        plain = socket.create_connection(address, TIMEOUT_S)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self.tls = context.wrap_socket(plain, server_hostname=name or address[0], session=session)
        except OSError:
            plain.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.tls.close()

    def call(self, message: bytes) -> tuple[int, bool]:
        """The status of the answer, and whether another call may follow."""
        self.tls.sendall(message)
        status, fields, _ = self.answer()
        return status, fields[b"connection"] != b"close"

    def get(self, path: str) -> bytes:
        """The body of what stands there."""
        self.tls.sendall(f"GET {path} HTTP/1.1\r\nHost: webhook\r\n\r\n".encode())
        return self.answer()[2]

    def answer(self) -> tuple[int, dict[bytes, bytes], bytes]:
        """The answer to what was sent: status, fields and body."""
        received = b""
        while b"\r\n\r\n" not in received:
            received += self._more()
        head, _, body = received.partition(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        fields = dict(line.split(b": ", 1) for line in lines[1:])
        while len(body) < int(fields[b"content-length"]):
            body += self._more()
        return int(lines[0].split()[1]), fields, body

    def _more(self) -> bytes:
        data = self.tls.recv(65536)
        if not data:
            raise EOFError("the server closed the connection")
        return data


@dataclass
class Calls:
    """What came of the calls.

    Attributes:
        seconds: how long each took that was answered.
        statuses: how often each status came.
        failures: what broke, in words.
        certificates: those that were seen, in DER.
        recent: those of the last connections.
    """

    seconds: list[float] = field(default_factory=list)
    statuses: dict[int, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    certificates: set[bytes] = field(default_factory=set)
    recent: deque[bytes] = field(default_factory=lambda: deque(maxlen=_RECENT))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def number(self) -> int:
        return len(self.seconds) + len(self.failures)

    def answered(self, status: int, seconds: float) -> None:
        with self._lock:
            self.statuses[status] = self.statuses.get(status, 0) + 1
            self.seconds.append(seconds)

    def connected(self, certificate: bytes) -> None:
        self.certificates.add(certificate)
        self.recent.append(certificate)

    def meet_only(self, certificate: bytes) -> bool:
        """Whether no process of the server serves another one any more, as far as many connections tell."""
        return self.recent.count(certificate) == _RECENT

    def percentile(self, share: float) -> float:
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@contextmanager
def traffic(
    address: tuple[str, int],
    trust: Callable[[], ssl.SSLContext],
    message: bytes,
    *,
    kept: int = 2,
    new: int = 2,
    pause_s: float = 0.0,
    name: str | None = None,
) -> Iterator[Calls]:
    """Call until the block ends.

    Args:
        address: of the server.
        trust: the context to verify the server with; asked for each new connection.
        message: the request.
        kept: threads that call over a connection for as long as the server keeps it.
        new: threads that open a connection for each call.
        pause_s: between two calls of a thread.
        name: to verify, where it is not the address.
    """
    calls = Calls()
    stop = threading.Event()

    def keep_calling(*, keep: bool) -> None:
        while not stop.is_set():
            try:
                with Client(address, trust(), name) as client:
                    calls.connected(client.tls.getpeercert(binary_form=True) or b"")
                    again = True
                    while again and not stop.is_set():
                        start = time.perf_counter()
                        status, again = client.call(message)
                        calls.answered(status, time.perf_counter() - start)
                        again = again and keep
                        stop.wait(pause_s)
            except (OSError, EOFError) as error:
                calls.failures.append(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=keep_calling, kwargs={"keep": number < kept}) for number in range(kept + new)]
    for thread in threads:
        thread.start()
    try:
        yield calls
    finally:
        stop.set()
        for thread in threads:
            thread.join(TIMEOUT_S)


def wait_until(true: Callable[[], bool], what: str, seconds: float = TIMEOUT_S) -> None:
    """Look until it is so; generous, for machines that are busy."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"{what} did not come within {seconds} s"
        time.sleep(0.02)
