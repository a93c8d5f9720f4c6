"""A serving pair as servers find it on disk, and the ways in which it changes there."""

from __future__ import annotations

import os
import ssl
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from certs.authority import Pair, make_authority, make_serving

if TYPE_CHECKING:
    from pathlib import Path

NAME: Final = "vnpu.test"


def authority() -> Pair:
    return make_authority("CA", now=datetime.now(UTC))


def serving(ca: Pair) -> Pair:
    return make_serving(ca, dns_names=[NAME], ip_addresses=["127.0.0.1"], now=datetime.now(UTC))


class Mount:
    """A folder with ``tls.crt`` and ``tls.key`` in it, and a bundle of CAs beside it.

    The files are links into ``..data``, itself a link to a folder, as a kubelet lays out a Secret.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.certificate = folder / "tls.crt"
        self.key = folder / "tls.key"
        self.bundle = folder / "bundle.crt"
        self._number = 0
        self.ca = authority()
        self.bundle.write_bytes(self.ca.certificate)
        self.pair = serving(self.ca)
        for path in (self.certificate, self.key):
            path.symlink_to(f"..data/{path.name}")
        self.swap(self.pair)

    @property
    def options(self) -> tuple[str, ...]:
        return "--cert", str(self.certificate), "--key", str(self.key)

    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.bundle))

    def leaf(self) -> bytes:
        """The certificate as it is on the wire."""
        return ssl.PEM_cert_to_DER_cert(self.pair.certificate.decode())

    def next(self, *, new_ca: bool = False) -> Pair:
        """Another pair; with another CA, the bundle has the old and the new one before anybody serves the pair."""
        if new_ca:
            before, self.ca = self.ca, authority()
            self._replace(self.bundle, before.certificate + self.ca.certificate)
        self.pair = serving(self.ca)
        return self.pair

    def swap(self, pair: Pair) -> None:
        """Both at once, by the swap of a link."""
        self._number += 1
        data = self.folder / f"..{self._number}"
        data.mkdir()
        (data / "tls.crt").write_bytes(pair.certificate)
        (data / "tls.key").write_bytes(pair.key)
        (data / "tls.key").chmod(0o600)
        link = self.folder / "..data_tmp"
        link.symlink_to(data.name)
        link.replace(self.folder / "..data")

    def rename(self, pair: Pair) -> None:
        """One after the other, each by a rename; between the two they do not belong together."""
        self._replace(self.certificate.resolve(), pair.certificate)
        self._replace(self.key.resolve(), pair.key)

    def write(self, pair: Pair) -> None:
        """One after the other, into the files as they are: half of a file is there for a moment."""
        for path, content in ((self.certificate, pair.certificate), (self.key, pair.key)):
            descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC)
            try:
                half = len(content) // 2
                os.write(descriptor, content[:half])
                os.write(descriptor, content[half:])
            finally:
                os.close(descriptor)

    def _replace(self, path: Path, content: bytes) -> None:
        new = path.with_name(f"{path.name}.new")
        new.write_bytes(content)
        new.chmod(0o600)
        new.replace(path)
