from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from certs.authority import AUTHORITY_LIFETIME, SERVING_LIFETIME, Pair, make_authority, make_serving
from certs.rotation import Entry, Step, View, carry_out, plan, serving_fault, to_serve
from certs.trust import Trust, read_authorities, read_pair, read_trust, write_trust
from tests.support.replicas import ENTRIES, NAMES, PROPAGATION, START, Cluster, Replica, failing, rounds

if TYPE_CHECKING:
    from collections.abc import Mapping

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
SETTLE = 20
"""Rounds of 10 s in which everything comes to rest, waiting included."""


def founded(count: int = 3) -> tuple[Cluster, list[Replica]]:
    cluster = Cluster()
    replicas = [Replica(cluster) for _ in range(count)]
    rounds(cluster, replicas, SETTLE)
    return cluster, replicas


def settled(cluster: Cluster, replicas: list[Replica]) -> Trust:
    """All is well and everybody agrees; returns what the Secret holds."""
    assert cluster.secret is not None
    trust = read_trust(cluster.secret, cluster.now)
    assert trust.signer is not None
    assert trust.serving is not None
    assert not serving_fault(trust, NAMES, cluster.now)
    assert trust.cleared
    assert set(cluster.bundles.values()) == {trust.bundle}
    for replica in replicas:
        assert replica.served is not None
        assert replica.served.pair == trust.serving.pair
        replica.look()
        assert replica.act() is Step.SETTLED
    return trust


class TestFirstStart:
    def test_three_at_once_agree_on_one_ca(self) -> None:
        cluster = Cluster()
        replicas = [Replica(cluster) for _ in range(3)]
        for replica in replicas:
            replica.look()
        assert [replica.act() for replica in replicas] == [Step.FOUND, None, None]
        assert rounds(cluster, replicas, 2) == []
        assert len(cluster.signers) == 1
        assert all(replica.served is not None for replica in replicas), "nobody waits for anything at a first start"
        rounds(cluster, replicas, SETTLE)
        settled(cluster, replicas)

    def test_nothing_is_served_before_it_is_published(self) -> None:
        """Else a Secret that is deleted in the first second leaves a replica with a pair that nobody will trust."""
        cluster = Cluster()
        replica = Replica(cluster)
        replica.look()
        assert replica.act() is Step.FOUND
        replica.look()
        cluster.put_secret(None)
        assert replica.act(fail="before") is None
        assert replica.served is None
        assert rounds(cluster, [replica, Replica(cluster)], SETTLE) == []
        assert replica.served is not None

    def test_a_replica_that_joins_later_serves_at_once(self) -> None:
        cluster, replicas = founded()
        replicas.append(Replica(cluster))
        rounds(cluster, replicas, 1)
        settled(cluster, replicas)


class TestRenewal:
    def test_a_pair_is_renewed_at_two_thirds_of_its_life_and_the_ca_stays(self) -> None:
        cluster, replicas = founded()
        before = settled(cluster, replicas)
        cluster.now = START + SERVING_LIFETIME * 2 / 3 - DAY
        assert rounds(cluster, replicas, 2) == []
        assert settled(cluster, replicas) == before
        cluster.now += 2 * DAY
        assert rounds(cluster, replicas, 2) == []
        after = settled(cluster, replicas)
        assert after.signer == before.signer
        assert after.serving != before.serving

    def test_a_ca_is_replaced_at_two_thirds_of_its_life_without_a_failed_call(self) -> None:
        cluster, replicas = founded()
        before = settled(cluster, replicas)
        assert before.signer is not None
        cluster.now = START + AUTHORITY_LIFETIME * 2 / 3 + DAY
        for replica in replicas:  # years have passed in which it was renewed
            replica.look()
            replica.act()
        cluster.past.clear()
        rounds(cluster, replicas, 1)
        assert rounds(cluster, replicas, SETTLE) == []
        after = settled(cluster, replicas)
        assert after.signer != before.signer
        assert after.authorities[1:] == (before.signer.certificate,)
        cluster.now += SERVING_LIFETIME - DAY
        assert rounds(cluster, replicas, SETTLE) == []
        assert before.signer.certificate in settled(cluster, replicas).authorities, "something it signed may be served"
        cluster.now += 2 * DAY
        assert rounds(cluster, replicas, 3) == []
        assert settled(cluster, replicas).authorities == after.authorities[:1]

    def test_the_bundle_comes_before_the_signer_by_the_whole_time(self) -> None:
        cluster, replicas = founded(1)
        replicas[0].renew = True
        taken = []
        while (not taken or taken[-1][0] is not Step.SETTLED) and len(taken) < 100:
            replicas[0].look()
            taken.append((replicas[0].act(), cluster.now))
            cluster.now += timedelta(seconds=1)
        steps = [step for step, _ in taken]
        assert [step for step in dict.fromkeys(steps) if step is not None] == [
            Step.ANNOUNCE,
            Step.PUBLISH,
            Step.WAIT,
            Step.SWITCH,
            Step.SETTLED,
        ]
        when = dict(reversed(taken))
        assert when[Step.SWITCH] - when[Step.PUBLISH] >= PROPAGATION

    def test_a_change_while_it_waits_starts_the_time_again(self) -> None:
        cluster, replicas = founded(1)
        replicas[0].renew = True
        rounds(cluster, replicas, 4)
        assert cluster.secret is not None
        assert read_trust(cluster.secret, cluster.now).next is not None
        cluster.change_bundle("mutate", b"")
        rounds(cluster, replicas, 5)
        assert read_trust(cluster.secret, cluster.now).next is not None, "40 s after the change"
        rounds(cluster, replicas, 4)
        assert settled(cluster, replicas).next is None


class TestLoss:
    def test_a_deleted_secret_costs_no_call(self) -> None:
        cluster, replicas = founded()
        before = settled(cluster, replicas)
        cluster.put_secret(None)
        replicas.append(Replica(cluster))
        faults = rounds(cluster, replicas, 5)
        assert replicas[-1].served is None, "a new replica must not serve what API servers may not have seen"
        assert faults + rounds(cluster, replicas, SETTLE) == []
        after = settled(cluster, replicas)
        assert after.signer != before.signer
        assert before.authorities[0] in after.authorities

    def test_a_secret_and_bundles_that_are_lost_together_are_remembered(self) -> None:
        cluster, replicas = founded()
        before = settled(cluster, replicas)
        cluster.put_secret(None)
        for name in ENTRIES:
            cluster.change_bundle(name, b"")
        assert rounds(cluster, replicas, SETTLE) == []
        assert before.authorities[0] in settled(cluster, replicas).authorities

    def test_a_ca_that_is_to_be_forgotten_does_not_come_back(self) -> None:
        cluster, replicas = founded()
        before = settled(cluster, replicas)
        cluster.put_secret(None)
        for name in ENTRIES:
            cluster.change_bundle(name, b"")
        for replica in replicas:
            replica.restart(keeps_folder=False)
        rounds(cluster, replicas, SETTLE)
        assert before.authorities[0] not in settled(cluster, replicas).authorities

    def test_an_older_secret_put_back_costs_no_call(self) -> None:
        cluster, replicas = founded()
        old = cluster.secret
        replicas[0].renew = True
        assert rounds(cluster, replicas, SETTLE) == []
        cluster.now += 100 * DAY
        rounds(cluster, replicas, SETTLE)
        settled(cluster, replicas)
        cluster.past.clear()
        cluster.put_secret(old)
        assert rounds(cluster, replicas, SETTLE) == []
        settled(cluster, replicas)

    def test_a_ca_that_stands_in_a_bundle_alone_is_kept_though_its_time_was_noted(self) -> None:
        """``ca.crt`` is lost, ``state.json`` is not, and nobody remembers."""
        cluster, replicas = founded()
        before = settled(cluster, replicas).authorities[0]
        replicas[0].renew = True
        rounds(cluster, replicas, SETTLE)
        assert cluster.secret is not None
        cluster.put_secret(cluster.secret | {"ca.crt": b"rubbish"})
        for replica in replicas:
            replica.restart(keeps_folder=True)
        assert rounds(cluster, replicas, SETTLE) == []
        assert before in settled(cluster, replicas).authorities

    def test_an_emptied_bundle_and_a_new_entry_are_filled_at_the_next_look(self) -> None:
        cluster, replicas = founded()
        trust = settled(cluster, replicas)
        cluster.change_bundle("mutate", b"")
        cluster.bundles["new"] = b""
        cluster.bundles_version += 1
        rounds(cluster, replicas, 1)
        assert set(cluster.bundles.values()) == {trust.bundle}

    def test_another_ca_in_a_bundle_is_trusted_for_a_while_and_leaves(self) -> None:
        cluster, replicas = founded()
        theirs = make_authority("cert-manager", now=cluster.now).certificate
        cluster.change_bundle("mutate", theirs)
        rounds(cluster, replicas, SETTLE)
        assert read_authorities(theirs)[0] in settled(cluster, replicas).authorities
        cluster.now += SERVING_LIFETIME + DAY
        rounds(cluster, replicas, SETTLE)
        assert len(settled(cluster, replicas).authorities) == 1

    def test_a_clock_that_is_wrong_by_ten_minutes_changes_nothing(self) -> None:
        cluster = Cluster()
        replicas = [Replica(cluster, off) for off in (10 * MINUTE, -10 * MINUTE, 0 * MINUTE)]
        assert rounds(cluster, replicas, SETTLE) == []
        settled(cluster, replicas)
        assert len(cluster.signers) == 1
        replicas[1].renew = True
        assert rounds(cluster, replicas, SETTLE) == []
        settled(cluster, replicas)
        assert len(cluster.signers) == 2


KEYS = ("tls.crt", "tls.key", "ca.crt", "ca.key", "next.key", "state.json")


@pytest.fixture(scope="module")
def pairs() -> tuple[Pair, ...]:
    authorities = [make_authority(f"CA {number}", now=START) for number in range(2)]
    return (*authorities, *(make_serving(one, dns_names=NAMES, now=START) for one in authorities))


@settings(max_examples=settings.default.max_examples * 2 // 5)
@given(st.data())
def test_it_comes_to_rest_from_any_secret_and_any_bundle(pairs: tuple[Pair, ...], data: st.DataObject) -> None:
    parts = [b"", b"rubbish", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
    parts += [part for pair in pairs for part in (pair.certificate, pair.key)]
    content = st.lists(st.sampled_from(parts), max_size=3).map(b"".join)
    state = st.sampled_from(
        [b"{}", b"[]", b'{"cleared": true, "retired": {}}', b'{"cleared": 1, "retired": {"x": "2026-99"}}']
    )
    cluster = Cluster()
    cluster.put_secret(
        data.draw(
            st.none()
            | st.dictionaries(st.sampled_from(KEYS), content | state)
            | st.binary().map(lambda b: {"ca.key": b})
        )
    )
    for name in ENTRIES:
        cluster.bundles[name] = data.draw(content)
    served = data.draw(st.sampled_from([None, pairs[2], pairs[3]]))
    replicas = [Replica(cluster), Replica(cluster)]
    replicas[0].served = read_pair(served.certificate, served.key) if served is not None else None
    rounds(cluster, replicas, SETTLE)
    settled(cluster, replicas)
    assert len(set(cluster.signers)) <= 1, "never does a second CA win"


@settings(max_examples=settings.default.max_examples // 16, stateful_step_count=40)
class Interleaved(RuleBasedStateMachine):
    """Replicas in any order, with failures, restarts, lost Secrets and time: no call fails, and it comes to rest."""

    @initialize(wrong=st.lists(st.integers(-10, 10), min_size=3, max_size=3))
    def begin(self, wrong: list[int]) -> None:
        self.cluster = Cluster()
        self.replicas = [Replica(self.cluster, minutes * MINUTE) for minutes in wrong]
        self.old: list[dict[str, bytes]] = []
        note(f"clocks wrong by {wrong} minutes")

    @rule(who=st.integers(0, 2))
    def look(self, who: int) -> None:
        self.replicas[who].look()

    @rule(who=st.integers(0, 2), fail=st.sampled_from(["", "", "", "before", "after"]))
    def act(self, who: int, fail: str) -> None:
        self.replicas[who].act(fail)

    @rule(who=st.integers(0, 2), keeps_folder=st.booleans())
    def restart(self, who: int, *, keeps_folder: bool) -> None:
        self.replicas[who].restart(keeps_folder=keeps_folder)

    @rule(seconds=st.sampled_from([1, 3, 20, 59, 61]))
    def wait(self, seconds: int) -> None:
        """Whoever read something acts on it within a minute, or never."""
        self.cluster.now += timedelta(seconds=seconds)

    @rule(days=st.sampled_from([1, 20]), times=st.integers(1, 4))
    def run(self, days: int, times: int) -> None:
        """Everybody is at work for some time, with three rounds a day or twenty."""
        for replica in self.replicas:
            replica.seen = None
        for _ in range(times):
            assert rounds(self.cluster, self.replicas, 3) == []
            self.cluster.now += days * DAY
        assert rounds(self.cluster, self.replicas, 3) == []

    @rule(who=st.integers(0, 2))
    def ask_for_a_new_ca(self, who: int) -> None:
        self.replicas[who].renew = True

    @precondition(lambda self: self.cluster.secret is not None)
    @rule()
    def delete_the_secret(self) -> None:
        self.old.append(self.cluster.secret)
        self.cluster.put_secret(None)

    @rule(key=st.sampled_from(KEYS))
    def spoil_the_secret(self, key: str) -> None:
        if self.cluster.secret is not None:
            spoilt = self.cluster.secret | {key: b"rubbish"}
            self.cluster.put_secret(spoilt)

    @precondition(lambda self: self.old)
    @rule(which=st.integers(0, 9))
    def put_an_old_secret_back(self, which: int) -> None:
        self.cluster.put_secret(self.old[which % len(self.old)])

    @invariant()
    def no_call_fails(self) -> None:
        if hasattr(self, "cluster"):
            assert failing(self.cluster, self.replicas) == []

    def teardown(self) -> None:
        if hasattr(self, "cluster"):
            assert rounds(self.cluster, self.replicas, 2 * SETTLE) == []
            settled(self.cluster, self.replicas)


TestInterleaved = Interleaved.TestCase


def view(trust: Trust | None, bundles: Mapping[str, bytes], **more: object) -> View:
    entries = tuple(Entry(name, bundle) for name, bundle in bundles.items())
    return replace(View(now=START, names=NAMES, trust=trust, entries=entries), **more)  # type: ignore[arg-type]


def test_what_cannot_be_read_is_not_published() -> None:
    trust = carry_out(Step.FOUND, view(None, {}))
    step, why = plan(replace(view(trust, {}), entries=None))
    assert step is Step.STUCK
    assert "no CA changes" in why
    assert to_serve(None, replace(view(trust, {}), entries=None)) == trust.serving


def test_what_is_served_goes_on_without_a_secret() -> None:
    trust = carry_out(Step.FOUND, view(None, {}))
    assert to_serve(trust.serving, view(None, {"mutate": trust.bundle})) == trust.serving


def test_what_nobody_trusts_is_not_held_on_to() -> None:
    before, trust = (carry_out(Step.FOUND, view(None, {})) for _ in range(2))
    assert to_serve(before.serving, view(trust, {"mutate": trust.bundle})) == trust.serving
    both = trust.bundle + before.bundle
    assert to_serve(before.serving, view(trust, {"mutate": both, "validate": trust.bundle})) == before.serving
    assert to_serve(before.serving, view(trust, {"mutate": b"", "validate": trust.bundle})) == before.serving


def test_what_has_expired_is_not_held_on_to() -> None:
    before, trust = (carry_out(Step.FOUND, view(None, {})) for _ in range(2))
    both = {"mutate": trust.bundle + before.bundle}
    trust = carry_out(Step.RENEW, view(trust, both, now=START + SERVING_LIFETIME))
    assert to_serve(before.serving, view(trust, both, now=START + SERVING_LIFETIME)) == trust.serving


def test_what_is_written_is_read_back() -> None:
    cluster, replicas = founded(1)
    replicas[0].renew = True
    rounds(cluster, replicas, 5)
    assert cluster.secret is not None
    trust = read_trust(cluster.secret, cluster.now)
    assert trust.next is not None
    assert read_trust(write_trust(trust), cluster.now) == trust
    assert write_trust(trust) == cluster.secret


def test_other_names_are_a_reason_for_another_pair() -> None:
    trust = carry_out(Step.FOUND, view(None, {}))
    renamed = replace(view(trust, {}), names=("other.vnpu.svc",))
    assert plan(renamed) == (Step.RENEW, "the certificate does not name other.vnpu.svc")
    assert not serving_fault(carry_out(Step.RENEW, renamed), ("other.vnpu.svc",), START)
