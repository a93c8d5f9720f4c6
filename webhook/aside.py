"""A thread for work that holds the interpreter for long: reading megabytes of JSON lets nobody else run meanwhile."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Aside:
    """One job at a time, and after each a rest as long as its work.

    Without the rest the loop would get the interpreter between two jobs only for as long as it takes to the next system
    call, and needs several of those for each answer.
    """

    def __init__(
        self, worked_s: Callable[[], float] = time.thread_time, rest: Callable[[float], None] = time.sleep
    ) -> None:
        """Begin without a job; ``worked_s`` tells for how long the calling thread has worked so far."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="aside")
        self._worked_s = worked_s
        self._rest = rest

    def submit(self, job: Callable[[], None]) -> None:
        """Do this after what was submitted before."""
        self._thread.submit(self._run, job)

    def end(self) -> None:
        """Do nothing more; the job that is being done is finished."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _run(self, job: Callable[[], None]) -> None:
        start = self._worked_s()
        job()
        self._rest(self._worked_s() - start)
