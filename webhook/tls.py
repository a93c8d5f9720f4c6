"""The TLS that is served."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Final

from vnpu.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

_CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""For TLS 1.2: forward secrecy and authenticated encryption only. All suites of TLS 1.3 have both."""


def server_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """A context that serves this pair over TLS 1.2 or newer. Making one reads both files, so it is kept and shared.

    Raises:
        InputError: a file cannot be read, is no PEM, or the key is not that of the certificate.
    """
    for path in (certificate, key):
        try:
            path.read_bytes()
        except OSError as error:
            raise InputError(str(path), error.strerror or str(error), "a readable PEM file is expected") from error
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    context.set_alpn_protocols(["http/1.1"])
    try:
        # An encrypted key would ask for its password on a terminal that nobody looks at.
        context.load_cert_chain(certificate, key, password=lambda: "")
    except (ssl.SSLError, ValueError) as error:
        what = getattr(error, "reason", None) or str(error)
        allowed = "a certificate chain and its own key are expected, both PEM, the key not encrypted"
        raise InputError(f"{certificate}, {key}", what, allowed) from error
    return context
