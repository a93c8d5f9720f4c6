"""A folder for what must be a file, private and gone afterwards."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from vnpu.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

_PREFIX: Final = "vnpu-webhook-"


@contextmanager
def private_folder() -> Iterator[Path]:
    """A folder that only this user may enter; it is removed by the process that made it, not by its workers.

    A server that was killed could not do that. What such ones left behind is removed first: their folders are locked by
    nobody.

    Raises:
        InputError: there is no place for it.
    """
    try:
        _remove_abandoned(Path(tempfile.gettempdir()))
        folder, lock = _locked_folder()
    except OSError as error:  # a read-only root without a volume at /tmp
        allowed = "a temporary folder that can be written to is expected; TMPDIR names another"
        raise InputError("", error.strerror or str(error), allowed) from error
    owner = os.getpid()
    try:
        yield folder
    finally:
        if os.getpid() == owner:
            shutil.rmtree(folder)
            os.close(lock)


def _locked_folder() -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.exists():
            return folder, lock
        os.close(lock)  # a server that starts at the same time took it for an abandoned one


def _remove_abandoned(parent: Path) -> None:
    for folder in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            # Following no links, and never what another user made.
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                if os.fstat(lock).st_uid == os.geteuid():
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder)
            finally:
                os.close(lock)
