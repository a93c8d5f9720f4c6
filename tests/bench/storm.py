"""A client that overloads a server: every connection that it gets asks again as soon as it is answered.

``python storm.py URL CA BODY CONNECTIONS SECONDS`` holds so many connections, knocks with new ones all the time, and
prints one JSON object: answers by status, new connections that were answered and that were closed, and the longest time
in milliseconds until a question was answered (``asked``) and until a knock was answered or closed (``knocked``).
"""

from __future__ import annotations

import json
import selectors
import ssl
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.support.traffic import Client, post


def main() -> None:
    url, ca, body_file, connections, seconds = sys.argv[1:]
    parts = urlsplit(url)
    address = (parts.hostname or "", parts.port or 443)
    message = post(Path(body_file).read_bytes())
    context = ssl.create_default_context(cafile=ca)
    clients = [Client(address, context) for _ in range(int(connections))]
    stop = threading.Event()
    knocks: Counter[str] = Counter()
    knocked = [0.0]

    def knock() -> None:
        while not stop.is_set():
            start = time.perf_counter()
            try:
                with Client(address, context) as client:
                    client.call(message)
                knocks["answered"] += 1
            except (OSError, EOFError):
                knocks["closed"] += 1
            knocked[0] = max(knocked[0], time.perf_counter() - start)

    threads = [threading.Thread(target=knock) for _ in range(2)]
    for thread in threads:
        thread.start()
    statuses, asked = ask(clients, message, float(seconds))
    stop.set()
    for thread in threads:
        thread.join()
    found = {"statuses": statuses, "asked": asked * 1000, "knocked": knocked[0] * 1000, **knocks}
    sys.stdout.write(json.dumps(found) + "\n")


def ask(clients: list[Client], message: bytes, seconds: float) -> tuple[Counter[int], float]:
    """Answers by status, and the longest time to one."""
    statuses: Counter[int] = Counter()
    longest = 0.0
    with selectors.DefaultSelector() as selector:
        for client in clients:
            selector.register(client.tls, selectors.EVENT_READ, [client, time.perf_counter()])
            client.tls.sendall(message)
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            for key, _ in selector.select(1):
                client, start = key.data
                status, _, _ = client.answer()
                now = time.perf_counter()
                statuses[status] += 1
                longest = max(longest, now - start)
                key.data[1] = now
                client.tls.sendall(message)
    return statuses, longest


if __name__ == "__main__":
    main()
