"""The process that keeps the certificates of ``--certs self`` on a cluster: ``python -m certs keep``.

It alone talks to the API server and makes keys, so that workers need neither the libraries nor the rights for it. What
it hands over is a folder with a pair in it, which is watched like a mounted one.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from typing import IO, TYPE_CHECKING, Final

from webhook import logs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 30.0
_HEALTHY_S: Final = 60.0
"""A process that ran as long is started again at once, should it end."""
_END_S: Final = 2.0


class Keeper:
    """Starts the process, and starts it again when it ends, after pauses that grow while it keeps ending early."""

    def __init__(self, arguments: Sequence[str], folder: Path) -> None:
        """Start nothing yet.

        Args:
            arguments: of ``python -m certs keep``, without the folder.
            folder: where it leaves ``tls.crt`` and ``tls.key``.
        """
        self._command = (sys.executable, "-m", "certs", "keep", "--folder", str(folder), *arguments)
        self._process: subprocess.Popen[bytes] | None = None
        self._started = 0.0
        self._pause = _FIRST_PAUSE_S
        self._start_at = 0.0

    def supervise(self) -> None:
        """Start the process where it should run and does not; never waits."""
        now = time.monotonic()
        if self._process is not None:
            code = self._process.poll()
            if code is None:
                return
            self._process = None
            if now - self._started > _HEALTHY_S:
                self._pause = _FIRST_PAUSE_S
            self._start_at = now + self._pause
            fields = {"code": code, "againInSeconds": self._pause}
            logs.LOGGER.error("the process that keeps the certificates has ended", extra={"fields": fields})
            self._pause = min(2 * self._pause, _LONGEST_PAUSE_S)
        if now >= self._start_at:
            self._started = now
            self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE)  # noqa: S603 - our own program
            threading.Thread(target=_pass_on, args=(self._process.stdout,), name="keeper", daemon=True).start()

    def stop(self) -> None:
        """End the process."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _pass_on(lines: IO[bytes]) -> None:
    """Its log goes the way of ours: a reader that stalls must not stop the renewal of certificates."""
    with lines:
        for line in lines:
            logs.pass_on(line)
