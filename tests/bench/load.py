"""A load generator that costs little: one thread, several connections over TLS.

``python load.py URL CA BODY CONNECTIONS SECONDS PID`` posts the file BODY over connections that are kept, and over a
new one each time where CONNECTIONS is 0. It prints answers per second of the clock, answers per second that the
server's worker PID had a processor, and the median and the 99th percentile of the time to an answer in milliseconds.
"""

from __future__ import annotations

import socket
import ssl
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

_HEAD_END = b"\r\n\r\n"
_LENGTH = b"content-length:"


def main() -> None:
    url, ca, body_file, connections, seconds, worker = sys.argv[1:]
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or 443
    body = Path(body_file).read_bytes()
    head = (
        f"POST {parts.path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    message = head.encode() + body
    context = ssl.create_default_context(cafile=ca)

    def connect() -> ssl.SSLSocket:
        connection = context.wrap_socket(socket.create_connection((host, port)), server_hostname=host)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    processor = processor_seconds(worker)
    start = time.perf_counter()
    if int(connections):
        took = over_kept([connect() for _ in range(int(connections))], message, start + float(seconds))
    else:
        took = over_new(connect, message, start + float(seconds))
    elapsed = time.perf_counter() - start
    processor = processor_seconds(worker) - processor
    took.sort()
    percentiles = f"{took[len(took) // 2] * 1000} {took[len(took) * 99 // 100] * 1000}"
    sys.stdout.write(f"{len(took) / elapsed} {len(took) / processor} {percentiles}\n")


def over_kept(connections: list[ssl.SSLSocket], message: bytes, end: float) -> list[float]:
    """All of them always have a question under way."""
    took = []
    asked = []
    for each in connections:
        asked.append(time.perf_counter())
        each.sendall(message)
    while time.perf_counter() < end:
        for place, each in enumerate(connections):
            read_answer(each)
            now = time.perf_counter()
            took.append(now - asked[place])
            asked[place] = now
            each.sendall(message)
    for each in connections:
        read_answer(each)
        each.close()
    return took


def over_new(connect: Callable[[], ssl.SSLSocket], message: bytes, end: float) -> list[float]:
    took = []
    while (start := time.perf_counter()) < end:
        with connect() as connection:
            connection.sendall(message)
            read_answer(connection)
        took.append(time.perf_counter() - start)
    return took


def processor_seconds(pid: str) -> float:
    """Time that all threads of a process spent on a processor, to the nanosecond."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def read_answer(connection: ssl.SSLSocket) -> None:
    received = b""
    while _HEAD_END not in received:
        received += more(connection)
    head, _, body = received.partition(_HEAD_END)
    if not head.startswith(b"HTTP/1.1 200"):
        sys.exit(f"unexpected answer: {head.decode()}")
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(_LENGTH))
    left = int(length[len(_LENGTH) :]) - len(body)
    while left > 0:
        left -= len(more(connection))


def more(connection: ssl.SSLSocket) -> bytes:
    data = connection.recv(65536)
    if not data:
        sys.exit("the server closed the connection")
    return data


if __name__ == "__main__":
    main()
