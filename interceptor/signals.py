"""The end of a program by a signal, whatever its main thread is doing at that moment."""

from __future__ import annotations

import queue
import signal
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def on_end(stop: Callable[[], None]) -> None:
    """Call ``stop`` once SIGTERM or SIGINT arrives, in a thread of its own.

    A handler runs in the main thread between any two instructions, where that may hold the very lock which setting an
    Event needs. Of all ways to tell another thread, putting into a ``SimpleQueue`` alone is safe there.
    """
    arrived: queue.SimpleQueue[int] = queue.SimpleQueue()

    def wait() -> None:
        arrived.get()
        stop()

    threading.Thread(target=wait, name="signals", daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _frame: arrived.put(received))
