"""When a certificate is valid, beside what ``cryptography`` says."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given
from hypothesis import strategies as st

from webhook.validity import Validity, first_certificate, validity

KEY = ec.generate_private_key(ec.SECP256R1())
MOMENTS = st.datetimes(datetime(1950, 1, 1), datetime(2120, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - hypothesis adds the zone


def certificate(first: datetime, last: datetime, name: str = "x") -> bytes:
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(KEY.public_key())
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(first).not_valid_after(last)
    return builder.sign(KEY, hashes.SHA256()).public_bytes(Encoding.PEM)


@given(MOMENTS, st.timedeltas(timedelta(seconds=1), timedelta(days=30_000)), st.text("abc", min_size=1, max_size=64))
def test_any_certificate(first: datetime, lifetime: timedelta, name: str) -> None:
    pem = certificate(first, first + lifetime, name)
    parsed = x509.load_pem_x509_certificate(pem)
    expected = Validity(parsed.not_valid_before_utc.timestamp(), parsed.not_valid_after_utc.timestamp())
    assert validity(first_certificate(pem)) == expected


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"no X\.509 certificate"):
        validity(data)


@given(st.integers(0, 250))
def test_one_that_is_cut(length: int) -> None:
    der = first_certificate(certificate(datetime.now(UTC), datetime.now(UTC) + timedelta(days=1)))
    with pytest.raises(ValueError, match=r"no X\.509 certificate"):
        validity(der[:length])


def test_the_first_of_a_chain() -> None:
    now = datetime.now(UTC)
    chain = [certificate(now, now + timedelta(days=days)) for days in (1, 2)]
    assert first_certificate(b"text before\n" + b"".join(chain)) == ssl.PEM_cert_to_DER_cert(chain[0].decode())
    for broken in (b"", b"no PEM", chain[0][:-30]):
        with pytest.raises(ValueError, match="no certificate in PEM"):
            first_certificate(broken)


def test_when_it_holds() -> None:
    assert [Validity(10, 20).holds(now) for now in (9, 10, 20, 21)] == [False, True, True, False]
