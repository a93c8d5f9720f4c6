"""Replicas that keep certificates, on a cluster of values: no process, no socket, no clock but this one.

Every replica reads, then acts on what it read, perhaps much later; others act in between. API servers go by a
configuration that is up to ``LAG`` old. What is checked at every moment: whichever pair a replica serves, whichever
caBundle an API server may still go by, a call succeeds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from certs.authority import service_names
from certs.rotation import WRITES, Entry, Step, View, carry_out, plan, to_serve
from certs.trust import KeyPair, Trust, read_authorities, read_trust, write_trust

NAMES = service_names("webhook", "vnpu")
PROPAGATION = timedelta(seconds=60)
LAG = timedelta(seconds=50)
START = datetime(2026, 1, 1, tzinfo=UTC)
ENTRIES = ("mutate", "validate")


class StaleError(Exception):
    """The write was guarded, and somebody else was faster."""


@dataclass
class Cluster:
    """The Secret and the caBundles, each with the version that guards it."""

    now: datetime = START
    secret: dict[str, bytes] | None = None
    secret_version: int = 0
    bundles: dict[str, bytes] = field(default_factory=lambda: dict.fromkeys(ENTRIES, b""))
    bundles_version: int = 0
    past: list[tuple[datetime, bytes]] = field(default_factory=list)
    """Every caBundle that was replaced, and when."""
    signers: list[str] = field(default_factory=list)

    def write_secret(self, data: dict[str, bytes] | None, version: int) -> None:
        """Replace or delete it as it was at a version; version 0 creates it, whatever was there before."""
        if self.secret is not None if version == 0 else version != self.secret_version:
            raise StaleError
        self.secret = data
        self.secret_version += 1

    def put_secret(self, data: dict[str, bytes] | None) -> None:
        """What an administrator does, who guards nothing."""
        self.secret = data
        self.secret_version += 1

    def write_bundles(self, bundle: bytes, version: int) -> None:
        if version != self.bundles_version:
            raise StaleError
        for name in self.bundles:
            self.change_bundle(name, bundle)

    def change_bundle(self, name: str, bundle: bytes) -> None:
        if bundle != self.bundles[name]:
            self.past.append((self.now, self.bundles[name]))
            self.bundles[name] = bundle
            self.bundles_version += 1

    def visible(self) -> set[bytes]:
        """Every caBundle that some API server may go by; those that trust nobody yet are left out."""
        recent = {bundle for until, bundle in self.past if self.now - until <= LAG}
        return {bundle for bundle in recent | set(self.bundles.values()) if read_authorities(bundle)}


@dataclass(frozen=True)
class Seen:
    """What a replica read, and with which versions."""

    trust: Trust | None
    tidy: bool
    entries: tuple[Entry, ...]
    secret_version: int
    bundles_version: int


@dataclass
class Replica:
    """One process. ``off`` is how wrong its clock is."""

    cluster: Cluster
    off: timedelta = timedelta(0)
    served: KeyPair | None = None
    remembered: bytes = b""
    renew: bool = False
    seen: Seen | None = None
    steady_key: tuple[int, int] | None = None
    steady_since: datetime = START

    @property
    def clock(self) -> datetime:
        return self.cluster.now + self.off

    def look(self) -> None:
        cluster = self.cluster
        trust = read_trust(cluster.secret, self.clock) if cluster.secret is not None else None
        whole = trust is not None and trust.signer is not None and trust.serving is not None
        tidy = not whole or (trust is not None and write_trust(trust) == cluster.secret)
        entries = tuple(Entry(name, bundle) for name, bundle in cluster.bundles.items())
        version = cluster.secret_version if cluster.secret is not None else 0
        self.seen = Seen(trust, tidy, entries, version, cluster.bundles_version)

    def act(self, fail: str = "") -> Step | None:
        """Serve and take a step, on what was read before.

        Args:
            fail: ``"before"`` or ``"after"`` the write: the process ends there.
        """
        if self.seen is None:
            return None
        seen, self.seen = self.seen, None
        view = self._view(seen)
        if (pair := to_serve(self.served, view)) is not None:
            self.served = pair
        step, _ = plan(view)
        if fail == "before":
            return None
        try:
            if step in WRITES:
                trust = carry_out(step, view)
                self.cluster.write_secret(write_trust(trust), seen.secret_version)
                if step in (Step.FOUND, Step.SWITCH):
                    assert trust.signer is not None
                    self.cluster.signers.append(trust.signer.certificate.fingerprint)
            elif step is Step.PUBLISH:
                assert seen.trust is not None
                self.cluster.write_bundles(seen.trust.bundle, seen.bundles_version)
        except StaleError:
            return None
        if fail != "after" and step is Step.ANNOUNCE:
            self.renew = False
        return step

    def restart(self, *, keeps_folder: bool) -> None:
        """A new process, in the same pod or in a fresh one."""
        self.seen = self.steady_key = None
        self.remembered = b""
        if not keeps_folder:
            self.served = None

    def _view(self, seen: Seen) -> View:
        bundle = seen.trust.bundle if seen.trust is not None else b""
        right = all(entry.bundle == bundle for entry in seen.entries)
        key = (seen.secret_version, seen.bundles_version) if right else None
        if key is None or key != self.steady_key:
            self.steady_key, self.steady_since = key, self.cluster.now
        view = View(
            now=self.clock,
            names=NAMES,
            trust=seen.trust,
            tidy=seen.tidy,
            entries=seen.entries,
            steady=self.cluster.now - self.steady_since,
            remembered=self.remembered,
            renew=self.renew,
            propagation=PROPAGATION,
        )
        if seen.trust is not None and seen.trust.signer is not None:
            self.remembered = seen.trust.bundle
        return view


def failing(cluster: Cluster, replicas: list[Replica]) -> list[str]:
    """The calls that would fail at this moment."""
    faults = []
    for bundle in cluster.visible():
        authorities = read_authorities(bundle)
        for number, replica in enumerate(replicas):
            if replica.served is None:
                continue
            certificate = replica.served.certificate
            if not any(authority.signed(certificate) and cluster.now < authority.ends for authority in authorities):
                faults.append(f"replica {number} serves {certificate.serial}: not trusted")
            if not certificate.parsed.not_valid_before_utc <= cluster.now < certificate.ends:
                faults.append(f"replica {number} serves {certificate.serial}: not valid")
    return faults


def rounds(
    cluster: Cluster, replicas: list[Replica], count: int, between: timedelta = timedelta(seconds=10)
) -> list[str]:
    """Let all replicas look and act in turn, with the time going on; returns the calls that failed."""
    faults = []
    for _ in range(count):
        for replica in replicas:
            replica.look()
            replica.act()
            faults += failing(cluster, replicas)
        cluster.now += between
    return faults
