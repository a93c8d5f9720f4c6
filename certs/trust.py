"""What a Secret holds: who signs, who may be trusted, what is served; read from any bytes and written as ours.

=====================  =================================================================================================
key                    what stands there
=====================  =================================================================================================
``tls.crt, tls.key``   the pair that every replica serves
``ca.crt``             the bundle: every CA that is to be trusted, the one that signs first
``ca.key``             the key of the one that signs
``next.key``           while a rotation runs: the key of the one that is to sign next; ``ca.crt`` has it already
``state.json``         ``cleared``: whether API servers have surely seen the one that signs; ``retired``: the SHA-256 of
                       each CA that signs no more, and until when something that it signed may still be served
=====================  =================================================================================================

What cannot be read is left out, never guessed at: a Secret full of rubbish is one that holds nothing.
"""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from certs.authority import BACKDATED, SERVING_LIFETIME, Pair

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SERVING_CERTIFICATE: Final = "tls.crt"
SERVING_KEY: Final = "tls.key"
BUNDLE: Final = "ca.crt"
SIGNING_KEY: Final = "ca.key"
_NEXT_KEY: Final = "next.key"
_STATE: Final = "state.json"

_PEM: Final = re.compile(rb"-----BEGIN CERTIFICATE-----[^-]{1,20000}-----END CERTIFICATE-----")
_MOST_CERTIFICATES: Final = 32
"""Of a bundle that are looked at: more is not ours, and each costs the API server time."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate that was read.

    Attributes:
        pem: PEM, with its final line end.
        parsed: the same, for its fields.
    """

    pem: bytes
    parsed: x509.Certificate = field(compare=False, repr=False)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the certificate, in hexadecimal."""
        return self.parsed.fingerprint(hashes.SHA256()).hex()

    @property
    def serial(self) -> str:
        """As ``openssl x509 -serial`` shows it."""
        number = self.parsed.serial_number
        return number.to_bytes((number.bit_length() + 7) // 8).hex().upper()

    @property
    def ends(self) -> datetime:
        """The last moment at which it is valid."""
        return self.parsed.not_valid_after_utc

    @property
    def renewal(self) -> datetime:
        """When two thirds of its life are over."""
        return self.ends - (self.ends - self.parsed.not_valid_before_utc) / 3

    def usable(self, now: datetime) -> bool:
        """Whether it has not expired, and begins within the time by which certificates are backdated."""
        return self.parsed.not_valid_before_utc <= now + BACKDATED and now < self.ends

    def signed(self, other: Certificate) -> bool:
        """Whether this CA signed the other certificate."""
        return _signed(self, other)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its own key; ``pair`` is the same in PEM."""

    certificate: Certificate
    pair: Pair = field(repr=False)


@dataclass(frozen=True, slots=True)
class Trust:
    """What a Secret holds.

    Attributes:
        signer: the CA that signs; None where there is none that could.
        next: the CA that is to sign once API servers have surely seen it.
        serving: the pair to serve.
        cleared: whether API servers have surely seen the signer.
        retired: CAs that sign no more but are still trusted.
        until: the fingerprint of a CA that signs no more, and when the last that it signed has expired. Those that left
            the bundle stay here, so that they are not taken for unknown ones where they still stand.
    """

    signer: KeyPair | None = None
    next: KeyPair | None = None
    serving: KeyPair | None = None
    cleared: bool = False
    retired: tuple[Certificate, ...] = ()
    until: Mapping[str, datetime] = field(default_factory=dict)

    @property
    def authorities(self) -> tuple[Certificate, ...]:
        """Every CA that is to be trusted, the one that signs first."""
        return (*(pair.certificate for pair in (self.signer, self.next) if pair is not None), *self.retired)

    @property
    def bundle(self) -> bytes:
        """The same as PEM: the caBundle."""
        return b"".join(authority.pem for authority in self.authorities)


# What is looked at every few seconds stays the same for months: the caches hold it, and nothing secret.
@functools.lru_cache(maxsize=128)
def read_certificates(content: bytes) -> tuple[Certificate, ...]:
    """The certificates in a PEM text, each once; what is none is left out."""
    found: dict[str, Certificate] = {}
    for block in _PEM.findall(content)[:_MOST_CERTIFICATES]:
        try:
            parsed = x509.load_pem_x509_certificate(block)
            _ = parsed.extensions, parsed.not_valid_after_utc  # read when asked for, and may be rubbish
        except (ValueError, x509.DuplicateExtension):
            continue
        certificate = Certificate(parsed.public_bytes(serialization.Encoding.PEM), parsed)
        found.setdefault(certificate.fingerprint, certificate)
    return tuple(found.values())


def read_authorities(content: bytes) -> tuple[Certificate, ...]:
    """Those of a PEM text that are CAs."""
    return tuple(certificate for certificate in read_certificates(content) if _is_authority(certificate.parsed))


def read_pair(certificate: bytes, key: bytes) -> KeyPair | None:
    """A serving pair; None where the first certificate or the key cannot be read, or they do not belong together."""
    return _paired(read_certificates(certificate)[:1], key)


def read_trust(data: Mapping[str, bytes], now: datetime) -> Trust:
    """What a Secret holds, as far as it can be read, without the CAs that have had their time.

    Args:
        data: the Secret's, decoded.
        now: for CAs that nobody noted: what they signed may be served for as long as anything signed now.
    """
    authorities = read_authorities(data.get(BUNDLE, b""))
    signer = _paired(authorities, data.get(SIGNING_KEY, b""))
    others = tuple(one for one in authorities if signer is None or one != signer.certificate)
    coming = _paired(others, data.get(_NEXT_KEY, b"")) if signer is not None else None
    cleared, until = _read_state(data.get(_STATE, b""))
    trust = Trust(
        signer=signer,
        next=coming,
        serving=read_pair(data.get(SERVING_CERTIFICATE, b""), data.get(SERVING_KEY, b"")),
        cleared=cleared and signer is not None,
        until=until,
    )
    if coming is not None and not coming.certificate.usable(now):
        trust = replace(trust, next=None)  # it has signed nothing
    return retire(trust, (one for one in others if coming is None or one != coming.certificate), now)


def write_trust(trust: Trust) -> dict[str, bytes]:
    """The data of a Secret that holds it; a signer and a serving pair are needed."""
    assert trust.signer is not None
    assert trust.serving is not None
    state = {
        "cleared": trust.cleared,
        "retired": {one: moment.isoformat() for one, moment in sorted(trust.until.items())},
    }
    data = {
        SERVING_CERTIFICATE: trust.serving.pair.certificate,
        SERVING_KEY: trust.serving.pair.key,
        BUNDLE: trust.bundle,
        SIGNING_KEY: trust.signer.pair.key,
        _STATE: json.dumps(state, indent=1).encode(),
    }
    return data | ({_NEXT_KEY: trust.next.pair.key} if trust.next is not None else {})


def retire(trust: Trust, authorities: Iterable[Certificate], now: datetime) -> Trust:
    """Trust these CAs too, until the last that they may have signed has expired; those that are known stay as they are.

    Args:
        trust: what there is.
        authorities: CAs that sign no more.
        now: the time.
    """
    known = {one.fingerprint for one in trust.authorities}
    retired, until = list(trust.retired), dict(trust.until)
    for authority in authorities:
        moment = until.setdefault(authority.fingerprint, last_use(authority, now))
        if authority.fingerprint not in known and now < min(moment, authority.ends):
            known.add(authority.fingerprint)
            retired.append(authority)
    return replace(trust, retired=tuple(retired), until=until)


def last_use(authority: Certificate, now: datetime) -> datetime:
    """When nothing that this CA signed until now can be served any more, on clocks that differ."""
    return min(authority.ends, (now + SERVING_LIFETIME + BACKDATED).replace(microsecond=0) + timedelta(seconds=1))


def _paired(certificates: Iterable[Certificate], key: bytes) -> KeyPair | None:
    try:
        private = serialization.load_pem_private_key(key, password=None)
        public = private.public_key()
    except (ValueError, TypeError, AttributeError):
        return None
    if not isinstance(private, ec.EllipticCurvePrivateKey):
        return None
    for certificate in certificates:
        try:
            matches = certificate.parsed.public_key() == public
        except ValueError:
            continue
        if matches:
            return KeyPair(certificate, Pair(certificate.pem, key))
    return None


@functools.lru_cache(maxsize=128)
def _signed(authority: Certificate, other: Certificate) -> bool:
    try:
        other.parsed.verify_directly_issued_by(authority.parsed)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _is_authority(parsed: x509.Certificate) -> bool:
    try:
        return bool(parsed.extensions.get_extension_for_class(x509.BasicConstraints).value.ca)
    except (x509.ExtensionNotFound, ValueError):
        return False


def _read_state(content: bytes) -> tuple[bool, dict[str, datetime]]:
    try:
        state: Any = json.loads(content)
        until = {str(one): datetime.fromisoformat(moment).astimezone(UTC) for one, moment in state["retired"].items()}
        return state["cleared"] is True, until
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return False, {}
