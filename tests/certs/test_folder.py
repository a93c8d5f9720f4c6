from __future__ import annotations

import stat
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from certs.authority import make_authority, make_serving
from certs.folder import store, stored
from certs.trust import KeyPair, read_pair

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime.now(UTC)


@pytest.fixture(scope="module")
def pairs() -> list[KeyPair]:
    authority = make_authority("test", now=NOW)
    made = [make_serving(authority, dns_names=["localhost"], now=NOW) for _ in range(8)]
    return [pair for pair in (read_pair(one.certificate, one.key) for one in made) if pair is not None]


def test_a_pair_is_read_back(tmp_path: Path, pairs: list[KeyPair]) -> None:
    assert stored(tmp_path) == (None, b"")
    store(tmp_path / "new", pairs[0], b"CA")
    assert stored(tmp_path / "new") == (pairs[0], b"CA")
    assert (tmp_path / "new" / "tls.crt").read_bytes() == pairs[0].pair.certificate
    assert (tmp_path / "new" / "tls.key").read_bytes() == pairs[0].pair.key
    assert (tmp_path / "new" / "ca.crt").read_bytes() == b"CA"


def test_nobody_else_can_read_the_key(tmp_path: Path, pairs: list[KeyPair]) -> None:
    store(tmp_path / "new", pairs[0], b"")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    for path in (tmp_path / "new").rglob("tls.key"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_reader_never_sees_halves(tmp_path: Path, pairs: list[KeyPair]) -> None:
    """Whoever goes through one version of ``..data`` reads files that belong together, while it is replaced."""
    store(tmp_path, pairs[0], b"0")
    ended = threading.Event()
    read = 0
    torn = []

    def look() -> None:
        nonlocal read
        while not ended.is_set():
            version = tmp_path / (tmp_path / "..data").readlink()
            try:
                certificate, key = (version / "tls.crt").read_bytes(), (version / "tls.key").read_bytes()
            except FileNotFoundError:
                continue  # replaced twice in between
            read += 1
            if read_pair(certificate, key) is None:
                torn.append(version)

    reader = threading.Thread(target=look)
    reader.start()
    for number in range(200):
        store(tmp_path, pairs[number % len(pairs)], b"%d" % number)
    ended.set()
    reader.join()
    assert read
    assert not torn
    versions = [path for path in tmp_path.iterdir() if path.name.startswith("..version-")]
    assert len(versions) == 2, "the current one, and the one before for readers between two files"


@pytest.mark.parametrize("missing", ["tls.crt", "tls.key", "ca.crt"])
def test_half_a_version_is_none(tmp_path: Path, pairs: list[KeyPair], missing: str) -> None:
    store(tmp_path, pairs[0], b"CA")
    (tmp_path / missing).resolve().unlink()
    assert stored(tmp_path)[0] is None
    store(tmp_path, pairs[1], b"CA")
    assert stored(tmp_path) == (pairs[1], b"CA")


def test_a_version_whose_halves_differ_is_none(tmp_path: Path, pairs: list[KeyPair]) -> None:
    store(tmp_path, pairs[0], b"CA")
    (tmp_path / "tls.key").resolve().write_bytes(pairs[1].pair.key)
    assert stored(tmp_path)[0] is None
