from __future__ import annotations

import ipaddress
import ssl
import stat
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from certs.authority import BACKDATED, Pair, make_authority, make_serving, service_names, write_pair
from vnpu.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

# The real time: a TLS handshake looks at the clock as well.
NOW = datetime.now(UTC).replace(microsecond=0)
SERVICE = service_names("vnpu-webhook", "vnpu-system")


@pytest.fixture(scope="module")
def authority() -> Pair:
    return make_authority("vnpu test CA", now=NOW)


@pytest.fixture(scope="module")
def serving(authority: Pair) -> Pair:
    return make_serving(authority, dns_names=SERVICE, ip_addresses=("127.0.0.1", "::1"), now=NOW)


def parsed(pair: Pair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.certificate)


def shake_hands(authority: Pair, serving: Pair, hostname: str, folder: Path) -> str:
    """A handshake in memory: the client trusts the CA alone and checks the name. Returns the TLS version."""
    write_pair(serving, folder / "tls.crt", folder / "tls.key")
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    client_context = ssl.create_default_context(cadata=authority.certificate.decode())
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(to_client, to_server, server_hostname=hostname)
    server = server_context.wrap_bio(to_server, to_client, server_side=True)
    finished: set[ssl.SSLObject] = set()
    while len(finished) < 2:
        for side in (client, server):
            try:
                side.do_handshake()
                finished.add(side)
            except ssl.SSLWantReadError:
                continue
    return client.version() or ""


class TestServing:
    def test_r73_the_names_of_the_service_are_alternative_names(self, serving: Pair) -> None:
        names = parsed(serving).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert set(names.get_values_for_type(x509.DNSName)) == {
            "vnpu-webhook",
            "vnpu-webhook.vnpu-system",
            "vnpu-webhook.vnpu-system.svc",
            "vnpu-webhook.vnpu-system.svc.cluster.local",
        }
        addresses = names.get_values_for_type(x509.IPAddress)
        assert addresses == [ipaddress.ip_address("127.0.0.1"), ipaddress.ip_address("::1")]

    @pytest.mark.parametrize("name", [*SERVICE, "127.0.0.1", "::1"])
    def test_r73_a_client_that_checks_the_name_trusts_it(
        self, name: str, authority: Pair, serving: Pair, tmp_path: Path
    ) -> None:
        assert shake_hands(authority, serving, name, tmp_path) == "TLSv1.3"

    def test_r73_another_name_is_not_trusted(self, authority: Pair, serving: Pair, tmp_path: Path) -> None:
        with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
            shake_hands(authority, serving, "other.vnpu-system.svc", tmp_path)

    def test_another_ca_of_the_same_name_does_not_vouch_for_it(self, serving: Pair, tmp_path: Path) -> None:
        with pytest.raises(ssl.SSLCertVerificationError):
            shake_hands(make_authority("vnpu test CA", now=NOW), serving, SERVICE[2], tmp_path)

    def test_the_path_is_valid_by_the_rules_of_the_web(self, authority: Pair, serving: Pair) -> None:
        builder = PolicyBuilder().store(Store([parsed(authority)])).time(NOW)
        chain = builder.build_server_verifier(x509.DNSName(SERVICE[2])).verify(parsed(serving), [])
        assert chain == [parsed(serving), parsed(authority)]

    def test_r73_what_the_certificates_may_do(self, authority: Pair, serving: Pair) -> None:
        leaf = parsed(serving).extensions
        assert list(leaf.get_extension_for_class(x509.ExtendedKeyUsage).value) == [ExtendedKeyUsageOID.SERVER_AUTH]
        assert not leaf.get_extension_for_class(x509.BasicConstraints).value.ca
        assert leaf.get_extension_for_class(x509.KeyUsage).value.digital_signature
        assert not leaf.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
        root = parsed(authority).extensions
        constraints = root.get_extension_for_class(x509.BasicConstraints)
        assert (constraints.critical, constraints.value.ca, constraints.value.path_length) == (True, True, 0)
        assert root.get_extension_for_class(x509.KeyUsage).value.key_cert_sign

    def test_the_identifiers_link_leaf_and_ca(self, authority: Pair, serving: Pair) -> None:
        subject = parsed(authority).extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        issuer = parsed(serving).extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
        assert issuer.key_identifier == subject.digest

    def test_keys_are_p256_and_belong_to_their_certificates(self, authority: Pair, serving: Pair) -> None:
        for pair in (authority, serving):
            key = serialization.load_pem_private_key(pair.key, password=None)
            assert isinstance(key, ec.EllipticCurvePrivateKey)
            assert isinstance(key.curve, ec.SECP256R1)
            assert key.public_key() == parsed(pair).public_key()

    def test_a_service_name_longer_than_a_common_name_may_be(self, authority: Pair) -> None:
        names = service_names("s" * 60, "n" * 60)
        pair = make_serving(authority, dns_names=names[1:], now=NOW)
        found = parsed(pair).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert found.get_values_for_type(x509.DNSName) == list(names[1:])


class TestTime:
    def test_valid_from_an_hour_back(self, authority: Pair, serving: Pair) -> None:
        for pair in (authority, serving):
            assert parsed(pair).not_valid_before_utc == NOW - BACKDATED

    def test_the_lifetime_counts_from_now(self, authority: Pair) -> None:
        pair = make_serving(authority, dns_names=SERVICE, now=NOW, lifetime=timedelta(minutes=5))
        assert parsed(pair).not_valid_after_utc == NOW + timedelta(minutes=5)

    def test_a_leaf_does_not_outlive_its_ca(self) -> None:
        authority = make_authority("short", now=NOW, lifetime=timedelta(days=1))
        pair = make_serving(authority, dns_names=SERVICE, now=NOW, lifetime=timedelta(days=90))
        assert parsed(pair).not_valid_after_utc == NOW + timedelta(days=1)

    def test_an_expired_ca_signs_nothing(self) -> None:
        authority = make_authority("old", now=NOW - timedelta(days=2), lifetime=timedelta(days=1))
        with pytest.raises(InputError, match="not expired"):
            make_serving(authority, dns_names=SERVICE, now=NOW)

    def test_an_expired_leaf_is_not_trusted(self, authority: Pair) -> None:
        pair = make_serving(authority, dns_names=SERVICE, now=NOW, lifetime=timedelta(minutes=5))
        builder = PolicyBuilder().store(Store([parsed(authority)])).time(NOW + timedelta(minutes=6))
        with pytest.raises(VerificationError):
            builder.build_server_verifier(x509.DNSName(SERVICE[2])).verify(parsed(pair), [])

    @pytest.mark.parametrize("lifetime", [timedelta(0), timedelta(days=-1)])
    def test_a_lifetime_above_zero(self, lifetime: timedelta) -> None:
        with pytest.raises(InputError, match="above zero"):
            make_authority("CA", now=NOW, lifetime=lifetime)

    def test_a_time_without_its_zone(self) -> None:
        with pytest.raises(InputError, match="zone"):
            make_authority("CA", now=NOW.replace(tzinfo=None))


class TestFaults:
    @pytest.mark.parametrize(
        "name", ["", "-a", "a-", "a..b", "A.svc", "a_b", "*.svc", "a" * 64, ".".join(["abc"] * 64)]
    )
    def test_what_is_no_dns_name(self, name: str, authority: Pair) -> None:
        with pytest.raises(InputError) as raised:
            make_serving(authority, dns_names=("fine", name), now=NOW)
        assert raised.value.path == "dns_names[1]"

    @pytest.mark.parametrize("address", ["", "localhost", "127.0.0.256", "10.0.0.0/8"])
    def test_what_is_no_address(self, address: str, authority: Pair) -> None:
        with pytest.raises(InputError) as raised:
            make_serving(authority, dns_names=(), ip_addresses=(address,), now=NOW)
        assert raised.value.path == "ip_addresses[0]"

    def test_no_name_at_all(self, authority: Pair) -> None:
        with pytest.raises(InputError, match="at least one"):
            make_serving(authority, dns_names=(), now=NOW)

    @pytest.mark.parametrize("name", ["", "x" * 65])
    def test_the_name_of_a_ca(self, name: str) -> None:
        with pytest.raises(InputError, match="1 to 64"):
            make_authority(name, now=NOW)

    def test_a_ca_that_cannot_be_read(self, authority: Pair) -> None:
        for broken in (Pair(b"", authority.key), Pair(authority.certificate, b"key")):
            with pytest.raises(InputError, match="PEM"):
                make_serving(broken, dns_names=SERVICE, now=NOW)

    def test_a_key_of_another_ca(self, authority: Pair) -> None:
        mixed = Pair(authority.certificate, make_authority("other", now=NOW).key)
        with pytest.raises(InputError, match="EC key of this certificate"):
            make_serving(mixed, dns_names=SERVICE, now=NOW)

    def test_a_key_is_not_shown(self, serving: Pair) -> None:
        assert "PRIVATE" not in repr(serving)


class TestFiles:
    def test_nobody_else_may_read_them(self, serving: Pair, tmp_path: Path) -> None:
        write_pair(serving, tmp_path / "tls.crt", tmp_path / "tls.key")
        assert (tmp_path / "tls.crt").read_bytes() == serving.certificate
        assert (tmp_path / "tls.key").read_bytes() == serving.key
        for name in ("tls.crt", "tls.key"):
            assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600

    def test_an_existing_file_or_link_is_not_followed(self, serving: Pair, tmp_path: Path) -> None:
        target = tmp_path / "elsewhere"
        (tmp_path / "tls.key").symlink_to(target)
        with pytest.raises(FileExistsError):
            write_pair(serving, tmp_path / "tls.crt", tmp_path / "tls.key")
        assert not target.exists()
