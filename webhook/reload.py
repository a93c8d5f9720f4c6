"""Files that are read again while the server runs: the pair that is served, and what reviews are judged by.

Files change by rename, by the swap of a link as the kubelet does it, or by writing into them, one after the other.
Notifications of the kernel miss some of these, so the contents are looked at instead, twice a second. What is new is
taken when it looked the same two times in a row and can be used; until then, and where it cannot, the old goes on.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import threading
import time
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from vnpu.errors import InputError, VnpuError
from webhook import logs, tls
from webhook.metrics import Watched

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from webhook.config import Loaded
    from webhook.metrics import Metrics
    from webhook.review import Context

POLL_S: Final = 0.5
CHANGING_S: Final = 10.0
"""For all workers to serve a new pair; a multiple of what they take."""

_Value = TypeVar("_Value")


class Watch(Generic[_Value]):
    """A value that comes from files.

    Attributes:
        value: the newest that could be used.
        generation: how many there were, counted from 1.
        error: why the files as they are now cannot be used, None where they can.
    """

    def __init__(self, files: Sequence[Path | None], load: Callable[[], _Value]) -> None:
        """Load it for the first time.

        Args:
            files: those that ``load`` reads; None stands for one that is not there and never will be.
            load: makes the value, or raises a VnpuError.

        Raises:
            VnpuError: the files cannot be used.
        """
        self._files = [file for file in files if file is not None]
        self._load = load
        self._used = self._judged = self._seen = self._digest()
        self.value = self._checked()
        self.generation = 1
        self.error: VnpuError | None = None

    def poll(self) -> bool:
        """Look at the files; whether they were judged anew, with :attr:`value` and :attr:`error` as they came out."""
        digest = self._digest()
        settled, self._seen = digest == self._seen, digest
        if digest == self._judged or not settled:
            return False
        if digest == self._used:
            self._judged, self.error = digest, None
            return True
        try:
            value = self._checked()
        except VnpuError as error:
            self._judged, self.error = digest, error
            return True
        if self._digest() != digest:  # it changed while it was loaded, so this may be half of either
            return False
        self._used = self._judged = digest
        self.value, self.error = value, None
        self.generation += 1
        return True

    def _checked(self) -> _Value:
        for file in self._files:
            if file.exists() and not file.is_file() and not file.is_dir():
                raise InputError(str(file), "a pipe or a device", "a regular file is expected")
        return self._load()

    def _digest(self) -> bytes:
        digest = hashlib.blake2b()
        for file in self._files:
            try:
                content = hashlib.blake2b(_content(file)).digest()
            except OSError as error:
                content = f"{error.errno}".encode()
            digest.update(content)
        return digest.digest()


def _content(file: Path) -> bytes:
    """What is in a file.

    Raises:
        OSError: it cannot be read, or is none: a pipe may have no writer, and a device no end.
    """
    with open(file, "rb", opener=_open_without_waiting) as opened:
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        return opened.read()


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


class Reloader:
    """What one process serves and judges by, kept up to date.

    Attributes:
        settings: what reviews are judged by.
        certificate: what is served.
    """

    def __init__(
        self,
        settings: Watch[Loaded],
        certificate: Watch[tls.Identity],
        key: Path | None,
        metrics: Metrics,
    ) -> None:
        """Start with what the watches hold; ``key`` is the file of the key, None where it is in none."""
        self.settings = settings
        self.certificate = certificate
        self._key = key
        self._metrics = metrics
        self._before: tuple[bytes, float] | None = None
        self._valid = True
        self._aloud = True

    def context(self) -> Context:
        """What reviews are judged by now."""
        return self.settings.value.context

    def may_serve(self, leaf: bytes) -> bool:
        """Whether a certificate (DER) is the one to serve: not another one, but for the moment of a change."""
        if leaf == self.certificate.value.leaf:
            return True
        return self._before is not None and leaf == self._before[0] and time.monotonic() < self._before[1]

    def tell(self) -> None:
        """Tell the numbers, and what an administrator should know, of what is held now."""
        self._tell_settings()
        self._tell_certificate()

    def follow(self) -> None:
        """In a worker: tell the numbers, and from now on look at the files in a thread of its own."""
        self._aloud = False  # all processes find the same; the master tells the log
        for _ in range(2):  # what the master has not seen yet is to be served from the first connection on
            self.poll()
        self.tell()
        threading.Thread(target=self._poll_for_ever, name="reload", daemon=True).start()

    def poll(self) -> None:
        """Look at all files once."""
        if self.settings.poll():
            self._judged(Watched.SETTINGS, self.settings.error)
            self._tell_settings()
        before = self.certificate.value.leaf
        if self.certificate.poll():
            if before != self.certificate.value.leaf:
                self._before = before, time.monotonic() + CHANGING_S
            self._judged(Watched.CERTIFICATE, self.certificate.error)
            self._tell_certificate()
        elif self._valid and not self.certificate.value.validity.holds(time.time()):
            self._tell_certificate()  # it has expired just now

    def _poll_for_ever(self) -> None:
        while True:
            time.sleep(POLL_S)
            try:
                self.poll()
            except Exception:  # noqa: BLE001 - it goes on with what is held
                logs.LOGGER.exception("looking at changed files failed")

    def _judged(self, watched: Watched, error: VnpuError | None) -> None:
        self._metrics.reloaded(watched, right=error is None)
        if not self._aloud:
            return
        if error is None:
            logs.LOGGER.info("loaded", extra={"fields": {"what": watched}})
        else:
            logs.LOGGER.error("not loaded, the old goes on: %s", error, extra={"fields": {"what": watched}})

    def _tell_settings(self) -> None:
        self._metrics.configured(self.settings.generation)
        for warning in self.settings.value.warnings:
            self._warn(warning)

    def _tell_certificate(self) -> None:
        served = self.certificate.value
        self._metrics.certified(served.validity.not_after)
        now = time.time()
        self._valid = served.validity.holds(now)
        for warning in tls.warnings(served, self._key, now):
            self._warn(warning)

    def _warn(self, text: str) -> None:
        if self._aloud:
            logs.LOGGER.warning(text)
