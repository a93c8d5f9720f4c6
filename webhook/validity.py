"""When a certificate is valid, read from its DER.

Workers do without ``cryptography``, which costs them 10 MiB each, and Python's own :mod:`ssl` tells the dates of
certificates of peers only. See RFC 5280, section 4.1, for the fields and X.690 for their form.
"""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from typing import Final, NamedTuple

_SEQUENCE: Final = 0x30
_VERSION: Final = 0xA0
_UTC_TIME: Final = 0x17
_GENERALIZED_TIME: Final = 0x18
_BEFORE_VALIDITY: Final = 3
"""Fields between version and validity: serial number, signature algorithm, issuer."""


class Validity(NamedTuple):
    """The first and the last moment, in seconds since 1970."""

    not_before: float
    not_after: float

    def holds(self, now: float) -> bool:
        """Whether the certificate may be used at a time, in seconds since 1970."""
        return self.not_before <= now <= self.not_after


def first_certificate(chain: bytes) -> bytes:
    """The DER of the first certificate in a PEM file: that of the server itself.

    Raises:
        ValueError: there is none.
    """
    _, begin, rest = chain.partition(ssl.PEM_HEADER.encode())
    body, end, _ = rest.partition(ssl.PEM_FOOTER.encode())
    if not begin or not end:
        raise ValueError("no certificate in PEM")
    return ssl.PEM_cert_to_DER_cert(f"{ssl.PEM_HEADER}{body.decode('ascii')}{ssl.PEM_FOOTER}")


def validity(certificate: bytes) -> Validity:
    """The validity of a certificate in DER.

    Raises:
        ValueError: it is no certificate.
    """
    try:
        dates = _dates(certificate)
        kind, first, rest = _element(dates)
        other, last, _ = _element(rest)
        return Validity(_moment(kind, first), _moment(other, last))
    except (IndexError, ValueError) as error:
        raise ValueError("no X.509 certificate") from error


def _dates(certificate: bytes) -> bytes:
    _, fields, _ = _element(certificate)
    _, fields, _ = _element(fields)
    tag, _, rest = _element(fields)
    if tag == _VERSION:
        _, _, rest = _element(rest)
    for _ in range(_BEFORE_VALIDITY - 1):
        _, _, rest = _element(rest)
    tag, dates, _ = _element(rest)
    if tag != _SEQUENCE:
        raise ValueError("no validity")
    return dates


def _element(data: bytes) -> tuple[int, bytes, bytes]:
    """The tag and content of the first element, and what stands behind it."""
    tag, length, start = data[0], data[1], 2
    if length & 0x80:
        start += length & 0x7F
        length = int.from_bytes(data[2:start], "big")
    if len(data) < start + length:
        raise ValueError("an element ends early")
    return tag, data[start : start + length], data[start + length :]


def _moment(tag: int, text: bytes) -> float:
    if tag == _UTC_TIME:  # RFC 5280, 4.1.2.5.1: years 50 to 99 are of the century before
        text = (b"19" if text[:2] >= b"50" else b"20") + text
    elif tag != _GENERALIZED_TIME:
        raise ValueError("no time")
    return datetime.strptime(text.decode("ascii"), "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()
