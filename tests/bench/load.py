"""A load generator that costs little: one thread, several kept-alive connections over TLS.

``python load.py URL CA BODY CONNECTIONS SECONDS PID`` posts the file BODY and prints answers per second of the clock,
and answers per second that the server's worker PID had a processor.
"""

from __future__ import annotations

import socket
import ssl
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

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
    sockets = [
        context.wrap_socket(socket.create_connection((host, port)), server_hostname=host)
        for _ in range(int(connections))
    ]
    for each in sockets:
        each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        each.sendall(message)
    answered = 0
    processor = processor_seconds(worker)
    start = time.perf_counter()
    end = start + float(seconds)
    while time.perf_counter() < end:
        for each in sockets:
            read_answer(each)
            each.sendall(message)
        answered += len(sockets)
    elapsed = time.perf_counter() - start
    processor = processor_seconds(worker) - processor
    for each in sockets:
        read_answer(each)
        each.close()
    sys.stdout.write(f"{answered / elapsed} {answered / processor}\n")


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
