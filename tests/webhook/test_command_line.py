"""What is wrong with the command line is told in one line, before anything is served."""

from __future__ import annotations

import signal
import tempfile
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from vnpu.errors import InputError
from webhook import folder, server
from webhook.__main__ import main

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--host", ""), 'argument --host: "": an address or the name of this machine is expected; 0.0.0.0 or ::'),
        (("--host", "*"), 'argument --host: "*": an address'),
        (("--host", "a b"), 'argument --host: "a b": an address'),
        (("--host", "[::1"), 'argument --host: "[::1": an address'),
        (("--host", "300.1.1.1:80"), "an address"),
        (("--cert", "tls.crt"), "--cert and --key belong together"),
        (("--key", "tls.key"), "--cert and --key belong together"),
        (("--port", "65536"), 'argument --port: "65536": a whole number from 0 to 65535'),
        (("--port", "x"), 'argument --port: "x": a whole number from 0 to 65535'),
        (("--workers", "0"), "1 to 9999"),
        (("--threads=-1",), "1 to 9999"),
        (("--threads", "1" * 5000), "1 to 9999"),
        (("--unknown",), "unrecognized arguments: --unknown"),
        (("serve",), "invalid choice"),
        (("preview",), "FILE"),
    ],
)
def test_one_line_tells_it(
    arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[server.Options] = []
    monkeypatch.setattr(server, "run", served.append)
    code = main(arguments)
    captured = capsys.readouterr()
    assert (code, captured.out, served) == (2, "", [])
    assert captured.err.startswith("webhook: ")
    assert words in captured.err
    assert captured.err.count("\n") == 1
    assert len(captured.err) < 400


@pytest.mark.parametrize(
    ("host", "listened"),
    [
        ("0.0.0.0", "0.0.0.0"),
        ("::", "::"),
        ("[::1]", "::1"),
        ("localhost", "localhost"),
        ("Node-1.example", "Node-1.example"),
    ],
)
def test_hosts(host: str, listened: str, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[server.Options] = []
    monkeypatch.setattr(server, "run", served.append)
    assert main(["--host", host]) == 0
    assert [options.host for options in served] == [listened]


@pytest.fixture
def _signals() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("_signals")
def test_a_machine_without_a_temporary_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_options: Any) -> NoReturn:
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    with pytest.raises(InputError, match=r"No usable temporary directory.*TMPDIR"), folder.private_folder():
        pytest.fail("there is no folder")
