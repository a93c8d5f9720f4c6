"""What is to be done next about certificates: a function of what is there, what is published, and the time.

Every replica decides by itself and alone, with no leader and no clock but its own. That is safe because:

* The Secret is changed by writes that fail where somebody else was faster: there is never more than one truth.
* A CA signs what is served only after API servers have surely seen it: it stands in every caBundle, and whoever goes
  on has seen it there, without a change, for the time that the news needs at most (``propagation``). Each replica
  measures that time for itself, by a clock that only goes forward: no wrong clock shortens it, nor a restart.
* A CA leaves the caBundle only when the last certificate that it may have signed has expired. So nobody has to know
  who still serves what, and a replica that has been cut off for weeks does no harm.
* A CA that stands in a caBundle and that nobody knows was published by somebody whose Secret was lost, or replaced by
  an older one. It is kept for as long.

With the Secret lost, the new CA signs at once, but nobody who serves something serves that before it is ``cleared``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from certs.authority import make_authority, make_serving
from certs.trust import KeyPair, Trust, read_authorities, read_pair, retire

if TYPE_CHECKING:
    from collections.abc import Sequence

    from certs.authority import Pair

PROPAGATION: Final = timedelta(seconds=60)
"""In which every API server has surely seen a change of a webhook configuration. They watch them, and need well below a
second in good health."""

AUTHORITY_NAME: Final = "vnpu admission CA"


@dataclass(frozen=True, slots=True)
class Entry:
    """One webhook of a configuration, and the caBundle that is published in it (PEM; empty where there is none)."""

    name: str
    bundle: bytes


@dataclass(frozen=True, slots=True)
class View:
    """What a replica knows.

    Attributes:
        now: its time.
        names: the DNS names that are served.
        trust: what the Secret holds; None where there is none.
        tidy: whether the Secret holds exactly this, and nothing that was left out.
        entries: every webhook; None where that may not be read.
        steady: for how long this replica has seen the Secret and every entry unchanged, and each entry with the whole
            bundle. Zero as soon as anything differs.
        remembered: CAs that were trusted when the Secret was seen last, PEM.
        renew: whether a new CA is asked for.
        propagation: see :data:`PROPAGATION`.
    """

    now: datetime
    names: tuple[str, ...]
    trust: Trust | None
    entries: Sequence[Entry] | None
    tidy: bool = True
    steady: timedelta = timedelta(0)
    remembered: bytes = b""
    renew: bool = False
    propagation: timedelta = PROPAGATION


class Step(Enum):
    """What is to be done next. All but the last three change the Secret, :data:`PUBLISH` the caBundles."""

    FOUND = "made a new CA and a serving pair"
    RENEW = "renewed the serving pair"
    ADOPT = "a CA that nobody here knows is published: trusted until what it signed has expired"
    TIDY = "wrote the Secret anew: something in it was rubbish, or has had its time"
    ANNOUNCE = "made the next CA, to be trusted before it signs"
    CLEAR = "API servers have seen the CA: it may be relied on"
    SWITCH = "the next CA signs from now on"
    PUBLISH = "published the caBundle"
    WAIT = "waits until API servers have surely seen the caBundle"
    STUCK = "the caBundles may not be read"
    SETTLED = "nothing to do"


WRITES: Final = frozenset({Step.FOUND, Step.RENEW, Step.ADOPT, Step.TIDY, Step.ANNOUNCE, Step.CLEAR, Step.SWITCH})


def plan(view: View) -> tuple[Step, str]:
    """What is to be done next, and why."""
    if view.trust is None:
        return Step.FOUND, "there is no Secret"
    return _secret_first(view.trust, view) or _then_published(view.trust, view)


def _secret_first(trust: Trust, view: View) -> tuple[Step, str] | None:
    """What the Secret needs, whatever is published."""
    if trust.signer is None:
        return Step.FOUND, "the Secret holds no CA with its key"
    if not trust.signer.certificate.usable(view.now):
        return Step.FOUND, f"the CA has expired or is not valid yet ({trust.signer.certificate.ends.isoformat()})"
    if fault := serving_fault(trust, view.names, view.now):
        return Step.RENEW, fault
    if _adopted(trust, view) != trust:
        return Step.ADOPT, "it stands in a caBundle"
    if not view.tidy:
        return Step.TIDY, "its data is not what it means"
    return None


def _then_published(trust: Trust, view: View) -> tuple[Step, str]:
    assert trust.signer is not None
    if view.entries is None:
        return Step.STUCK, "until they may be, nothing is published and no CA changes"
    if wrong := [entry.name for entry in view.entries if entry.bundle != trust.bundle]:
        return Step.PUBLISH, ", ".join(wrong)
    if not trust.cleared or trust.next is not None:
        if view.steady < view.propagation:
            return Step.WAIT, f"of {view.propagation.total_seconds():g} s"
        return Step.SWITCH if trust.cleared else Step.CLEAR, "it has been published for long enough"
    if view.renew or view.now >= trust.signer.certificate.renewal:
        return Step.ANNOUNCE, "asked for" if view.renew else "two thirds of the CA's life are over"
    return Step.SETTLED, ""


def carry_out(step: Step, view: View) -> Trust:
    """What the Secret is to hold after a step that changes it; keys are made here."""
    now, trust = view.now, view.trust if view.trust is not None else Trust()
    match step:
        case Step.FOUND:
            signer = _new_authority(now)
            known = [*trust.authorities, *read_authorities(view.remembered)]
            fresh = Trust(signer=signer, serving=_new_serving(signer, view), until=trust.until)
            return _adopted(retire(fresh, known, now), view)
        case Step.RENEW:
            assert trust.signer is not None
            return replace(trust, serving=_new_serving(trust.signer, view))
        case Step.ADOPT:
            return _adopted(trust, view)
        case Step.TIDY:
            return trust
        case Step.ANNOUNCE:
            return replace(trust, next=_new_authority(now))
        case Step.CLEAR:
            return replace(trust, cleared=True)
        case Step.SWITCH:
            assert trust.signer is not None
            assert trust.next is not None
            switched = replace(trust, signer=trust.next, next=None, serving=_new_serving(trust.next, view))
            return retire(switched, [trust.signer.certificate], now)
    raise ValueError(step)


def to_serve(served: KeyPair | None, view: View) -> KeyPair | None:
    """The pair that a replica is to serve now; None where it has to wait for one.

    Args:
        served: what it serves.
        view: what it knows.
    """
    trust, now = view.trust, view.now
    if trust is None or trust.signer is None or serving_fault(trust, view.names, now, renewal=False):
        return served
    entries = view.entries or ()
    if trust.cleared:
        return served if any(_distrusts(entry, trust) for entry in entries) else trust.serving
    if served is not None and not served.certificate.usable(now):
        return trust.serving
    if served is not None and any(_trusts(entry, served) for entry in entries):
        return served
    # At a first start this CA alone is published: nobody goes by anything else, there is nothing to wait for.
    return trust.serving if all(_trusts_it_alone(entry, trust) for entry in entries) else served


def serving_fault(trust: Trust, names: Sequence[str], now: datetime, *, renewal: bool = True) -> str:
    """Why the serving pair is not the one to serve; empty where it is.

    Args:
        trust: what the Secret holds, a signer included.
        names: that have to stand in the certificate.
        now: the time.
        renewal: whether it counts that two thirds of its life are over.
    """
    assert trust.signer is not None
    if trust.serving is None:
        return "the Secret holds no certificate with its key"
    certificate = trust.serving.certificate
    if not certificate.usable(now):
        return f"the certificate has expired or is not valid yet ({certificate.ends.isoformat()})"
    if not trust.signer.certificate.signed(certificate):
        return "the certificate is not signed by the CA"
    if missing := set(names) - _names(certificate.parsed):
        return f"the certificate does not name {', '.join(sorted(missing))}"
    # A certificate that ends with its CA gains nothing by being renewed.
    if renewal and now >= certificate.renewal and certificate.ends < trust.signer.certificate.ends:
        return "two thirds of the certificate's life are over"
    return ""


def _distrusts(entry: Entry, trust: Trust) -> bool:
    """Whether whoever goes by this entry trusts something, but not the one that signs."""
    assert trust.signer is not None
    found = read_authorities(entry.bundle)
    return bool(found) and trust.signer.certificate not in found


def _trusts(entry: Entry, pair: KeyPair) -> bool:
    return any(authority.signed(pair.certificate) for authority in read_authorities(entry.bundle))


def _trusts_it_alone(entry: Entry, trust: Trust) -> bool:
    assert trust.signer is not None
    return read_authorities(entry.bundle) == (trust.signer.certificate,)


def _adopted(trust: Trust, view: View) -> Trust:
    """With every CA that is published, but for those that have had their time."""
    entries = view.entries or ()
    known = {one.fingerprint for one in trust.authorities}
    found = [one for entry in entries for one in read_authorities(entry.bundle)]
    unknown = [one for one in found if one.fingerprint not in known and view.now < one.ends]
    cleared = trust.cleared and not any(_distrusts(entry, trust) for entry in entries)
    return replace(retire(trust, unknown, view.now), cleared=cleared)


def _new_authority(now: datetime) -> KeyPair:
    return _read_back(make_authority(AUTHORITY_NAME, now=now))


def _new_serving(signer: KeyPair, view: View) -> KeyPair:
    return _read_back(make_serving(signer.pair, dns_names=view.names, now=view.now))


def _read_back(pair: Pair) -> KeyPair:
    made = read_pair(pair.certificate, pair.key)
    assert made is not None
    return made


def _names(parsed: x509.Certificate) -> set[str]:
    try:
        usage = parsed.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        names = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    return set(names.get_values_for_type(x509.DNSName)) if ExtendedKeyUsageOID.SERVER_AUTH in usage else set()
