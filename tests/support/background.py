"""Work beside a test, until its block ends."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def repeating(work: Callable[[], object], every_s: float) -> Iterator[None]:
    """``work`` again and again in a thread of its own, with a pause before each time."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(every_s):
            work()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
