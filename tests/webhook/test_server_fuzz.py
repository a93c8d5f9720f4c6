"""Any bytes to a running server: a well-formed answer or the end of the connection, and nobody else notices.

What may be read in two ways ends the connection: behind it no request is answered, so none can be smuggled in.
"""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.reviews import body_of
from tests.support.server import TIMEOUT_S, Server, running
from tests.support.traffic import Client, post

if TYPE_CHECKING:
    from collections.abc import Iterator

REVIEW = json.loads(body_of("mutate-create-pods-soft-910b3.json"))
MESSAGE = post(json.dumps(REVIEW).encode())
STATUSES = {100, 200, 400, 404, 405, 411, 413, 415}
HEAD = b"POST /mutate HTTP/1.1\r\nHost: webhook\r\nContent-Type: application/json\r\n"
LAST = b"GET /healthz HTTP/1.1\r\nHost: webhook\r\nConnection: close\r\n\r\n"


class Part(NamedTuple):
    """Some of what a client sends: whether it is a review that is to be answered, or ends the connection."""

    sent: bytes
    answered: bool = False
    ends: bool = False

    def __repr__(self) -> str:
        return repr(self.sent[:120])


def review(number: int) -> bytes:
    request = {**REVIEW["request"], "uid": f"uid-{number}"}
    return post(json.dumps({**REVIEW, "request": request}).encode())


def heads(*lines: bytes) -> list[Part]:
    """Heads that may be read in two ways, each with something behind it that looks like a body."""
    return [Part(HEAD + line + b"\r\n\r\n0\r\n\r\n", ends=True) for line in lines]


AMBIGUOUS = (
    *heads(
        b"Content-Length: 5\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nContent-Length: 5",
        b"Transfer-Encoding: chunked",
        b"Transfer-Encoding: xchunked",
        b"Transfer-Encoding: chunked, identity",
        b"Transfer-Encoding: gzip, chunked",
        b"Transfer-Encoding:\x0bchunked",
        b"Transfer-Encoding : chunked",
        b" Transfer-Encoding: chunked",
        b"X: y\r\n Transfer-Encoding: chunked",
        b"Content-Length: 5\r\nContent-Length: 6",
        b"Content-Length: 5\r\nContent-Length: 5",
        b"Content-Length: 5, 5",
        b"Content-Length: +5",
        b"Content-Length: -5",
        b"Content-Length: 0x5",
        b"Content-Length: 5 5",
        b"Content-Length: \xb2",
        b"Content-Length : 5",
        b"Content_Length: 5",
        b"X: a\x00b",
        b"X: a\rb",
        b"X: a\nContent-Length: 5",
        b"no colon",
        b": no name",
        b"Host: other",
        b"Content-Length: 8388609",
        b"Expect: miracles",
        b"X: " + b"y" * 9000,
        b"\r\n".join(b"X%d: y" % number for number in range(200)),
    ),
    *(
        Part(line + b"\r\nHost: webhook\r\n\r\n", ends=True)
        for line in (
            b"GET /healthz HTTP/0.9",
            b"GET /healthz HTTP/2.0",
            b"GET /healthz HTTP/1.10",
            b"GET /healthz",
            b"GET  /healthz HTTP/1.1",
            b"get /healthz HTTP/1.1",
            b"GET /health\x7fz HTTP/1.1",
            b"GET healthz HTTP/1.1",
            b"PRI * HTTP/2.0",
            b"CONNECT webhook:443 HTTP/1.1",
            b"GET /healthz HTTP/1.1\r\nConnection: close",
            b"GET /healthz HTTP/1.0",
            b"GET /" + b"x" * 9000 + b" HTTP/1.1",
        )
    ),
)
HARMLESS = tuple(
    Part(line + b" HTTP/1.1\r\nHost: webhook\r\n" + rest)
    for line, rest in (
        (b"GET /healthz", b"\r\n"),
        (b"OPTIONS *", b"\r\n"),
        (b"GET /%2e%2e/%00", b"\r\n"),
        (b"GET http://other/mutate", b"\r\n"),
        (b"DELETE /mutate", b"\r\n"),
        (b"POST /mutate", b"Content-Length: 3\r\nContent-Type: application/json\r\n\r\n{}x"),
        (b"POST /mutate", b"Content-Length: 0\r\n\r\n"),
        (b"POST /validate", b"Content-Length: 3\r\n\r\nabc"),
        (b"POST /nowhere", b"Content-Length: 3\r\n\r\nabc"),
        (b"GET /metrics", b"Content-Length: 3\r\n\r\nabc"),
    )
)
PARTS = st.lists(
    st.one_of(
        st.sampled_from(HARMLESS),
        st.sampled_from(AMBIGUOUS),
        st.integers(0, 9).map(lambda number: Part(review(number), answered=True)),
    ),
    max_size=6,
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(temporary=tmp_path_factory.mktemp("server")) as started:
        (worker,) = started.workers()
        yield started
        assert started.workers() == [worker], "no bytes end a worker"
        assert [line for line in started.log if line["level"] == "error"] == []


def talk(server: Server, data: bytes, pieces: int, *, half_closed: bool) -> bytes:
    """Send, piece by piece, and read until the server ends the connection."""
    with server.connect() as client:
        size = max(1, len(data) // pieces)
        with suppress(OSError):
            for start in range(0, len(data), size):
                client.send(data[start : start + size])
            if half_closed:
                socket.socket.shutdown(client._tls, socket.SHUT_WR)
        received = b""
        with suppress(OSError):
            while more := client._tls.recv(65536):
                received += more
        return received


def answers(received: bytes) -> list[tuple[int, bytes]]:
    """The answers, each whole; the last may be cut where the connection broke."""
    found = []
    while b"\r\n\r\n" in received:
        head, _, received = received.partition(b"\r\n\r\n")
        first, *lines = head.split(b"\r\n")
        version, status, _ = first.split(b" ", 2)
        assert version in {b"HTTP/1.1", b"HTTP/1.0"}
        fields = {name.lower(): value for name, value in (line.split(b": ", 1) for line in lines)}
        length = int(fields.get(b"content-length", 0))
        body, received = received[:length], received[length:]
        found.append((int(status), body))
    return found


@settings(examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=PARTS, pieces=st.integers(1, 40), half_closed=st.booleans())
def test_requests_one_after_the_other(server: Server, parts: list[Part], pieces: int, *, half_closed: bool) -> None:
    received = talk(server, b"".join(part.sent for part in parts) + LAST, pieces, half_closed=half_closed)
    found = answers(received.replace(b"HTTP/1.1 100 Continue\r\n\r\n", b""))
    assert {status for status, _ in found} <= STATUSES
    until = next((number for number, part in enumerate(parts) if part.ends), len(parts))
    reviewed = sum(b'"allowed":true' in body for _, body in found)
    assert reviewed == sum(part.answered for part in parts[:until])
    assert len(found) == until + 1


@settings(examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=st.binary(max_size=300), cut=st.integers(0, len(MESSAGE)), after=st.binary(max_size=300))
def test_any_bytes(server: Server, before: bytes, cut: int, after: bytes) -> None:
    received = talk(server, before + MESSAGE[:cut] + after, 3, half_closed=True)
    for status, _ in answers(received):
        assert status in STATUSES


@settings(examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.one_of(st.binary(max_size=600), st.binary(max_size=300).map(lambda rest: b"\x16\x03\x01" + rest)))
def test_any_bytes_instead_of_a_handshake(server: Server, data: bytes) -> None:
    with socket.create_connection(server.address, TIMEOUT_S) as plain, suppress(OSError):
        plain.sendall(data)
        plain.shutdown(socket.SHUT_WR)
        while plain.recv(65536):
            pass
    with Client(server.address, server.trust()) as client:
        assert client.call(MESSAGE)[0] == 200
