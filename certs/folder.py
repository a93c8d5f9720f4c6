"""The folder that a server reads its pair from: all files change together, as kubelet does it for a mounted Secret.

``tls.crt``, ``tls.key`` and ``ca.crt`` are links into ``..data``, which is itself a link to a folder that is never
changed once it is named there.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from certs.authority import write_pair
from certs.trust import BUNDLE, SERVING_CERTIFICATE, SERVING_KEY, read_pair

if TYPE_CHECKING:
    from certs.trust import KeyPair

_DATA: Final = "..data"
_VERSION_PREFIX: Final = "..version-"
_NEW_LINK: Final = "..data-new"


def store(folder: Path, pair: KeyPair, bundle: bytes) -> None:
    """Put a pair and the CAs to be trusted into the folder, in one step for whoever reads.

    The version before stays, for a reader that is between two files.

    Args:
        folder: made where it is missing, for this user alone.
        pair: what to serve.
        bundle: the CAs, PEM.

    Raises:
        OSError: the folder cannot be written to.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    before = _current(folder)
    version = Path(tempfile.mkdtemp(prefix=_VERSION_PREFIX, dir=folder))
    write_pair(pair.pair, version / SERVING_CERTIFICATE, version / SERVING_KEY)
    (version / BUNDLE).write_bytes(bundle)
    _link(folder / _DATA, version.name)
    for name in (SERVING_CERTIFICATE, SERVING_KEY, BUNDLE):
        if not (folder / name).is_symlink():
            _link(folder / name, f"{_DATA}/{name}")
    for old in folder.glob(f"{_VERSION_PREFIX}*"):
        if old.name not in (version.name, before):
            shutil.rmtree(old)


def stored(folder: Path) -> tuple[KeyPair | None, bytes]:
    """The pair in the folder, None where there is no whole one, and the CAs beside it."""
    version = folder / _current(folder)
    try:
        certificate, key, bundle = (
            (version / name).read_bytes() for name in (SERVING_CERTIFICATE, SERVING_KEY, BUNDLE)
        )
    except OSError:
        return None, b""
    return read_pair(certificate, key), bundle


def _current(folder: Path) -> str:
    try:
        return str((folder / _DATA).readlink())
    except OSError:
        return _DATA


def _link(path: Path, target: str) -> None:
    new = path.with_name(_NEW_LINK)
    new.unlink(missing_ok=True)
    new.symlink_to(target)
    os.replace(new, path)  # noqa: PTH105 - replaces a link, and what it points to stays
