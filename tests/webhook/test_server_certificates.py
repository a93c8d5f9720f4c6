"""The pair that is served changes while the server runs, and nobody notices."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from certs.authority import make_serving
from tests.support.mounts import NAME, Mount
from tests.support.reviews import body_of
from tests.support.server import TIMEOUT_S, Server, running
from tests.support.traffic import Client, post, traffic, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MESSAGE = post(body_of("mutate-create-pods-soft-910b3.json"))
LOADED = "loaded"
REFUSED = "not loaded, the old goes on"


@pytest.fixture
def server(mount: Mount, tmp_path: Path) -> Iterator[Server]:
    with running(*mount.options, "--workers", "2", temporary=tmp_path, ca=mount.bundle) as started:
        yield started


def served(server: Server) -> bytes:
    """The certificate that a new connection gets, whatever it is."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with Client(server.address, context) as client:
        return client.tls.getpeercert(binary_form=True) or b""


def wait_for(server: Server, leaf: bytes) -> None:
    """Until all workers serve this certificate; which one answers is the kernel's choice."""
    wait_until(lambda: all(served(server) == leaf for _ in range(20)), "the new certificate")


def test_a_pair_and_its_ca_are_replaced_under_load(mount: Mount, server: Server) -> None:
    with traffic(server.address, mount.trust, MESSAGE, kept=2, new=2, pause_s=0.002, name=NAME) as calls:
        for number, change in enumerate((mount.swap, mount.rename, mount.write, mount.swap)):
            change(mount.next(new_ca=number % 2 == 0))
            wait_for(server, mount.leaf())
    assert calls.failures == []
    assert set(calls.statuses) == {200}
    assert calls.number > 100


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_sessions_are_resumed_until_the_pair_changes(version: ssl.TLSVersion, mount: Mount, tmp_path: Path) -> None:
    with running(*mount.options, temporary=tmp_path, ca=mount.bundle) as server:
        context = mount.trust()
        context.minimum_version = context.maximum_version = version

        def call(session: ssl.SSLSession | None) -> tuple[ssl.SSLSession | None, bool | None]:
            with Client(server.address, context, NAME, session) as client:
                assert client.call(MESSAGE)[0] == 200
                return client.tls.session, client.tls.session_reused

        session, reused = call(None)
        assert not reused
        session, reused = call(session)
        assert reused
        mount.swap(mount.next())
        wait_for(server, mount.leaf())
        assert not call(session)[1], "the new certificate is looked at"


class TestTornPairs:
    @pytest.mark.parametrize("torn", ["certificate", "key"])
    def test_one_without_the_other_is_never_served(self, torn: str, mount: Mount, server: Server) -> None:
        before, new = mount.leaf(), mount.next()
        path, content = (mount.certificate, new.certificate) if torn == "certificate" else (mount.key, new.key)
        mount._replace(path.resolve(), content)
        wait_until(lambda: bool(server.said(REFUSED)), "a line about it")
        assert served(server) == before
        assert server.metric('vnpu_webhook_reload_failed{what="certificate"}') == 1
        assert server.metric('vnpu_webhook_reload_failures_total{what="certificate"}') >= 1
        assert server.metric('vnpu_webhook_reload_failed{what="settings"}') == 0
        with server.session() as session:
            assert session.get(f"{server.url}/readyz", timeout=TIMEOUT_S).text == "ok\n"
        mount.rename(new)
        wait_for(server, mount.leaf())
        wait_until(lambda: server.metric('vnpu_webhook_reload_failed{what="certificate"}') == 0, "the end of it")
        assert len(server.said(REFUSED)) == 1
        assert len(server.said(LOADED)) >= 1

    @pytest.mark.parametrize("content", [b"", b"no PEM", None], ids=repr)
    def test_what_is_none(self, content: bytes | None, mount: Mount, server: Server) -> None:
        if content is None:
            mount.key.resolve().unlink()
        else:
            mount.key.resolve().write_bytes(content)
        wait_until(lambda: bool(server.said(REFUSED)), "a line about it")
        assert served(server) == mount.leaf()
        mount.swap(mount.pair)
        wait_until(lambda: server.metric('vnpu_webhook_reload_failed{what="certificate"}') == 0, "the end of it")

    def test_an_expired_one_does_not_replace_a_valid_one(self, mount: Mount, server: Server) -> None:
        past = datetime.now(UTC) - timedelta(days=2)
        expired = make_serving(mount.ca, dns_names=[NAME], now=past, lifetime=timedelta(days=1))
        mount.swap(expired)
        wait_until(lambda: bool(server.said(REFUSED)), "a line about it")
        assert "expired" in server.said(REFUSED)[0]["message"]
        assert served(server) == mount.leaf()


def test_a_worker_that_is_started_later_serves_the_new_pair(mount: Mount, server: Server) -> None:
    mount.swap(mount.next())
    wait_for(server, mount.leaf())
    before = server.workers()
    for worker in before:
        server.kill(worker)
    wait_until(lambda: len(set(server.workers()) - set(before)) == len(before), "new workers")
    for _ in range(10):
        assert served(server) == mount.leaf()


class TestWhatAnAdministratorShouldKnow:
    def test_a_key_for_everyone(self, mount: Mount, tmp_path: Path) -> None:
        mount.key.resolve().chmod(0o644)
        with running(*mount.options, temporary=tmp_path, ca=mount.bundle) as server:
            (line,) = server.said("everyone may read this key")
            assert line["level"] == "warning"

    def test_a_certificate_that_has_expired_is_not_ready(self, mount: Mount, tmp_path: Path) -> None:
        past = datetime.now(UTC) - timedelta(days=2)
        mount.swap(make_serving(mount.ca, dns_names=[NAME], now=past, lifetime=timedelta(days=1)))
        with running(*mount.options, temporary=tmp_path, ca=mount.bundle) as server:
            assert "expired" in server.said("the certificate")[0]["message"]
            with server.session() as session:
                session.verify = False
                with pytest.warns(Warning, match="Unverified"):
                    response = session.get(f"{server.url}/readyz", timeout=TIMEOUT_S)
            assert response.status_code == 503
            assert "not valid" in response.text
            mount.swap(mount.next())
            wait_for(server, mount.leaf())
            with server.session() as session:
                assert session.get(f"{server.url}/readyz", timeout=TIMEOUT_S).text == "ok\n"

    def test_when_it_expires(self, mount: Mount, server: Server) -> None:
        expires = server.metric("vnpu_webhook_certificate_expiry_timestamp_seconds")
        left = timedelta(seconds=expires - datetime.now(UTC).timestamp())
        assert timedelta(days=89) < left <= timedelta(days=90)
        with Client(server.address, mount.trust(), NAME) as client:
            assert expires == ssl.cert_time_to_seconds(str(client.tls.getpeercert()["notAfter"]))  # type: ignore[index]
