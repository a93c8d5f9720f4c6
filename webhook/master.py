"""The gunicorn master: keeps workers running, looks at changed files, and ends in order."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from gunicorn.arbiter import Arbiter

from webhook import logs
from webhook.reload import POLL_S

if TYPE_CHECKING:
    from webhook.keeper import Keeper
    from webhook.service import Service


def rows(workers: int) -> int:
    """How many processes count at most: the master, and workers that are being replaced beside their successors."""
    return 1 + 4 * workers


class Master(Arbiter):  # type: ignore[misc]
    """An arbiter that drains before it ends, and that refuses what would not do what it says."""

    def __init__(self, app: Any, drain_s: float, keeper: Keeper | None) -> None:
        """Serve ``app.service``.

        Args:
            app: the gunicorn application.
            drain_s: how long new connections are served after SIGTERM.
            keeper: the process that keeps the certificates, where there is one.
        """
        self._service: Service = app.service
        self._drain_s = drain_s
        self._drained_at: float | None = None
        self._keeper = keeper
        super().__init__(app)

    def handle_term(self) -> None:
        """SIGTERM: say that the server is not ready, serve on until nobody should call it any more, then end."""
        if self._drained_at is not None or not self._drain_s:
            raise StopIteration
        self._service.draining.raise_()
        self._drained_at = time.monotonic() + self._drain_s
        logs.LOGGER.info("draining", extra={"fields": {"seconds": self._drain_s}})

    def handle_usr2(self) -> None:
        """SIGUSR2 would start this program anew beside itself, with other certificates and numbers of its own."""
        logs.LOGGER.warning("SIGUSR2 is not served: start a second server and end this one with SIGTERM")

    def handle_ttin(self) -> None:
        """SIGTTIN, SIGTTOU: the number of workers is what the command line says."""
        logs.LOGGER.warning("the number of workers is changed by --workers only")

    handle_ttou = handle_ttin

    def wait_for_signals(self, timeout: float = 1.0) -> list[int]:
        """Signals that came; wait no longer than until files are looked at again, or the server is drained."""
        timeout = min(timeout, POLL_S)
        if self._drained_at is not None:
            timeout = max(0.01, min(timeout, self._drained_at - time.monotonic()))
        found: list[int] = super().wait_for_signals(timeout)
        return found

    def manage_workers(self) -> None:
        """Now and then: see to workers, files, the process that keeps certificates, and the end of the drain."""
        if self._drained_at is not None and time.monotonic() >= self._drained_at:
            raise StopIteration
        self._service.reloader.poll()
        if self._keeper is not None:
            self._keeper.supervise()
        super().manage_workers()

    def reap_workers(self) -> None:
        """Take notice of processes that have ended."""
        if self._keeper is not None:
            self._keeper.supervise()  # before its exit code is taken for that of a worker
        super().reap_workers()

    def row_for(self, worker: Any) -> None:
        """Give a new worker a row to count in: where a worker that has ended left off."""
        taken = {other.row for other in self.WORKERS.values()}
        last = rows(self.cfg.workers) - 1
        worker.row = next((row for row in range(1, last) if row not in taken), last)
