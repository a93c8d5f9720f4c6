"""The TLS that is served: one context for each pair, made once and shared by all connections.

A pair that changes on disk changes at some moment, and it may be looked at in the middle: the new certificate is there
and the old key still, or half of a file. So a pair is judged as it was read, in memory, and what OpenSSL then serves is
what was judged; files are not opened a second time.
"""

from __future__ import annotations

import os
import ssl
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from vnpu.errors import InputError
from webhook.validity import Validity, first_certificate, validity

if TYPE_CHECKING:
    from pathlib import Path

_CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""For TLS 1.2: forward secrecy and authenticated encryption only. All suites of TLS 1.3 have both."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A pair that can be served.

    Attributes:
        context: serves it.
        leaf: the server's own certificate, DER.
        validity: when that is valid.
    """

    context: ssl.SSLContext = field(repr=False)
    leaf: bytes = field(repr=False)
    validity: Validity


def read_identity(certificate: Path, key: Path) -> Identity:
    """The pair in two PEM files, which may be one and the same.

    Raises:
        InputError: a file cannot be read, is no PEM, or the key is not that of the certificate.
    """
    return identity(_content(certificate), _content(key), f"{certificate}, {key}")


def identity(certificate: bytes, key: bytes, source: str) -> Identity:
    """A pair in PEM, served over TLS 1.2 or newer.

    Args:
        certificate: the chain, the server's own certificate first.
        key: not encrypted.
        source: where both come from, for messages.

    Raises:
        InputError: one of them is no PEM, or the key is not that of the certificate.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    context.set_alpn_protocols(["http/1.1"])
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.num_tickets = 1  # each costs a handshake a tenth more, and API servers resume no session
    try:
        _load(context, certificate, key)
        leaf = first_certificate(certificate)
        return Identity(context, leaf, validity(leaf))
    except (ssl.SSLError, ValueError) as error:
        what = getattr(error, "reason", None) or str(error)
        allowed = "a certificate chain and its own key are expected, both PEM, the key not encrypted"
        raise InputError(source, what, allowed) from error


def warnings(served: Identity, key: Path | None, now: float) -> list[str]:
    """What an administrator should know about a pair, one line each.

    Args:
        served: the pair.
        key: the file of its key, None where it is in none.
        now: seconds since 1970.
    """
    found = []
    if not served.validity.holds(now):
        word = "expired" if now > served.validity.not_after else "is not valid yet"
        found.append(f"the certificate {word}: API servers refuse it")
    with suppress(OSError):  # it may be replaced at this moment
        if key is not None and key.stat().st_mode & stat.S_IROTH:
            found.append(f"{key}: everyone may read this key; mount it with mode 0640 or less")
    return found


def _load(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    # OpenSSL takes files only, and the ones on disk may be others by now.
    descriptor = os.memfd_create("pair", os.MFD_CLOEXEC)
    with os.fdopen(descriptor, "wb") as file:
        file.write(b"\n".join((certificate, key)))
        file.flush()
        # An encrypted key would ask for its password on a terminal that nobody looks at.
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password=lambda: "")


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(str(path), error.strerror or str(error), "a readable PEM file is expected") from error
