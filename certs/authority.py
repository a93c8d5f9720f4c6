"""A certificate authority and the serving certificates that it signs.

Keys are ECDSA P-256. Names stand in the subject alternative names: the API server, like every client in Go, looks at
nothing else. The clock is the caller's, and so is the place where the pairs are kept; :func:`write_pair` writes files.
"""

from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from vnpu.errors import InputError, item

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from pathlib import Path

AUTHORITY_LIFETIME: Final = timedelta(days=3650)
"""A change of the CA has to reach every caBundle, so it is rare."""

SERVING_LIFETIME: Final = timedelta(days=90)

BACKDATED: Final = timedelta(hours=1)
"""Certificates are valid from an hour back: clocks of nodes differ."""

_LABEL: Final = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)")
_LONGEST_NAME: Final = 253
_LONGEST_COMMON_NAME: Final = 64
"""RFC 5280, appendix A.1, ub-common-name."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its private key.

    Attributes:
        certificate: PEM.
        key: PEM, PKCS #8, not encrypted. It stays out of ``repr``, and so out of logs and tracebacks.
    """

    certificate: bytes
    key: bytes = field(repr=False)


def make_authority(name: str, *, now: datetime, lifetime: timedelta = AUTHORITY_LIFETIME) -> Pair:
    """A new self-signed CA that may sign serving certificates, and no further CAs.

    Args:
        name: the common name, for people.
        now: the time, with its zone.
        lifetime: how long it is valid from now on.

    Raises:
        InputError: the name is empty or too long, the time has no zone, or the lifetime is not positive.
    """
    subject = _subject(name)
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        _builder(subject, subject, key.public_key(), now, lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(authority=True), critical=True)
    )
    return _signed(builder, key, key)


def make_serving(
    authority: Pair,
    *,
    dns_names: Sequence[str],
    ip_addresses: Sequence[str] = (),
    now: datetime,
    lifetime: timedelta = SERVING_LIFETIME,
) -> Pair:
    """A new serving pair, signed by the CA.

    Args:
        authority: the CA, as :func:`make_authority` made it.
        dns_names: names that clients may call; at least one of names and addresses.
        ip_addresses: addresses that clients may call, of both families.
        now: the time, with its zone.
        lifetime: how long it is valid from now on, but never longer than its CA.

    Raises:
        InputError: a name or an address that is none, or none at all; the CA cannot be read, its key is another
            one's, or it has expired; the time has no zone, or the lifetime is not positive.
    """
    ca_certificate, ca_key = _read_authority(authority)
    names = _alternative_names(dns_names, ip_addresses)
    key = ec.generate_private_key(ec.SECP256R1())
    common_name = next((name for name in (*dns_names, *ip_addresses) if len(name) <= _LONGEST_COMMON_NAME), "webhook")
    left = ca_certificate.not_valid_after_utc - _checked_time(now)
    if left <= timedelta(0):
        raise InputError("authority", str(ca_certificate.not_valid_after_utc), "a CA that has not expired is expected")
    builder = (
        _builder(_subject(common_name), ca_certificate.subject, key.public_key(), now, min(lifetime, left))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(authority=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
    )
    return _signed(builder, key, ca_key)


def service_names(service: str, namespace: str) -> tuple[str, ...]:
    """The names under which a cluster reaches a Service; the API server calls ``<service>.<namespace>.svc``."""
    qualified = f"{service}.{namespace}"
    return (service, qualified, f"{qualified}.svc", f"{qualified}.svc.cluster.local")


def write_pair(pair: Pair, certificate_path: Path, key_path: Path) -> None:
    """Write both files with mode 0600; the files must not exist.

    Raises:
        OSError: a file exists already or cannot be written.
    """
    for path, content in ((certificate_path, pair.certificate), (key_path, pair.key)):
        # The mode is given when the file is made: a key is at no time readable for others, and no link is followed.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: ec.EllipticCurvePublicKey,
    now: datetime,
    lifetime: timedelta,
) -> x509.CertificateBuilder:
    if lifetime <= timedelta(0):
        raise InputError("lifetime", str(lifetime), "a time above zero is expected")
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(_checked_time(now) - BACKDATED)
        .not_valid_after(now + lifetime)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
    )


def _usage(*, authority: bool) -> x509.KeyUsage:
    """Signing handshakes, and certificates where it is a CA; an ECDSA key encrypts nothing."""
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _signed(
    builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey, issuer_key: ec.EllipticCurvePrivateKey
) -> Pair:
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    certificate = builder.add_extension(identifier, critical=False).sign(issuer_key, hashes.SHA256())
    return Pair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )


def _read_authority(authority: Pair) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    try:
        certificate = x509.load_pem_x509_certificate(authority.certificate)
        key = serialization.load_pem_private_key(authority.key, password=None)
    except (ValueError, TypeError) as error:
        raise InputError("authority", str(error), "a CA certificate and its key in PEM are expected") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        raise InputError(
            "authority", certificate.subject.rfc4514_string(), "the EC key of this certificate is expected"
        )
    return certificate, key


def _subject(common_name: str) -> x509.Name:
    if not 1 <= len(common_name) <= _LONGEST_COMMON_NAME:
        raise InputError("name", common_name, f"1 to {_LONGEST_COMMON_NAME} characters are expected")
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _alternative_names(dns_names: Sequence[str], ip_addresses: Sequence[str]) -> list[x509.GeneralName]:
    if not dns_names and not ip_addresses:
        raise InputError("dns_names", list(dns_names), "at least one name or address is expected")
    names: list[x509.GeneralName] = []
    for index, name in enumerate(dns_names):
        if len(name) > _LONGEST_NAME or not all(_LABEL.fullmatch(label) for label in name.split(".")):
            raise InputError(item("dns_names", index), name, "a DNS name in lower case is expected")
        names.append(x509.DNSName(name))
    for index, address in enumerate(ip_addresses):
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(address)))
        except ValueError as error:
            raise InputError(item("ip_addresses", index), address, "an IPv4 or IPv6 address is expected") from error
    return names


def _checked_time(now: datetime) -> datetime:
    if now.tzinfo is None:
        raise InputError("now", str(now), "a time with its zone is expected")
    return now
