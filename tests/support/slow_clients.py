"""Clients that say nothing, or a byte at a time."""

from __future__ import annotations

import itertools
import socket
import ssl
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from tests.support.background import repeating
from tests.support.reviews import body_of
from tests.support.traffic import TIMEOUT_S, Client, post

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.server import Server

BODY = body_of("mutate-create-pods-soft-910b3.json")
HEAD = post(BODY)[: -len(BODY)]


@contextmanager
def silent(server: Server, number: int) -> Iterator[None]:
    """Connections over which nothing comes, not even a handshake."""
    with ExitStack() as stack:
        for _ in range(number):
            stack.enter_context(socket.create_connection(server.address, TIMEOUT_S))
        yield


@contextmanager
def dripping(server: Server, hellos: int, heads: int, bodies: int, every_s: float) -> Iterator[None]:
    """Clients that send a byte now and then: of a TLS hello, of a head, of a body."""
    context = server.trust()
    with ExitStack() as stack:
        drops: list[tuple[socket.socket, bytes]] = []
        for _ in range(hellos):
            plain = stack.enter_context(socket.create_connection(server.address, TIMEOUT_S))
            drops.append((plain, hello(context)))
        for number in range(heads + bodies):
            client = stack.enter_context(Client(server.address, context))
            if number >= heads:
                client.tls.sendall(HEAD)
            drops.append((client.tls, BODY if number >= heads else HEAD))

        places = itertools.count()

        def drip() -> None:
            place = next(places)
            for connection, data in drops:
                with suppress(OSError):  # closed, as it deserves
                    connection.send(data[place : place + 1])

        with repeating(drip, every_s):
            yield


def hello(context: ssl.SSLContext) -> bytes:
    """The first bytes of a handshake."""
    outgoing = ssl.MemoryBIO()
    half = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    try:
        half.do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()
    raise AssertionError("nobody answered, and yet the handshake is done")
