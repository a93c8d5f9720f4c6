"""``python -m webhook``: serve admission reviews; ``python -m webhook preview FILE...``: show what would happen.

Exit codes: 0 ended by a signal, or nothing refused; 1 a previewed manifest is refused; 2 bad usage or input, with one
line on standard error.
"""

from __future__ import annotations

import argparse
import ipaddress
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from vnpu import terminal
from vnpu.command_line import Parser, UsageError
from vnpu.errors import VnpuError, shown
from vnpu.fields import Form

if TYPE_CHECKING:
    from collections.abc import Sequence

UNUSABLE: Final = 2
"""Exit code for bad usage or input, as argparse has it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns its exit code."""
    try:
        options = _parser().parse_args(arguments)
        if options.command == "preview":
            from webhook import preview  # noqa: PLC0415 - each command loads what it needs

            return preview.run(options.files, options.config, options.device_config)
        if (options.cert is None) != (options.key is None):
            raise UsageError("--cert and --key belong together; without both a self-signed pair is made")
        from webhook import server  # noqa: PLC0415 - each command loads what it needs

        server.run(
            server.Options(
                host=options.host,
                port=options.port,
                certificate=options.cert,
                key=options.key,
                settings=options.config,
                device_config=options.device_config,
                workers=options.workers,
                threads=options.threads,
            )
        )
    except VnpuError as error:
        terminal.complain(f"webhook: {error}")
        return UNUSABLE
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="python -m webhook", description="Serve admission reviews over TLS.")
    parser.add_argument(
        "--host", default="127.0.0.1", type=_host, help="address or name to listen on (default %(default)s)"
    )
    parser.add_argument("--port", default=8443, type=_port, help="0 takes a free one (default %(default)s)")
    parser.add_argument("--cert", type=Path, metavar="FILE", help="PEM chain to serve (default: self-signed)")
    parser.add_argument("--key", type=Path, metavar="FILE", help="PEM key of the certificate")
    parser.add_argument("--workers", default=1, type=_positive, metavar="N", help="processes (default %(default)s)")
    parser.add_argument("--threads", default=8, type=_positive, metavar="N", help="per process (default %(default)s)")
    _add_configuration(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    preview = commands.add_parser(
        "preview",
        help="show offline what would happen to manifests",
        description="Show offline what would happen to each manifest: a diff, warnings, refusals. "
        "Exit 1 if one is refused, 2 if one cannot be read.",
    )
    preview.add_argument("files", nargs="+", type=Path, metavar="FILE", help="YAML or JSON, - for standard input")
    # Left out behind the command, an option keeps what was given before it.
    _add_configuration(preview, default=argparse.SUPPRESS)
    return parser


def _add_configuration(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    parser.add_argument("--config", type=Path, metavar="FILE", default=default, help="settings of the webhook, YAML")
    parser.add_argument(
        "--device-config", type=Path, metavar="FILE", default=default, help="chip table, in HAMi's format"
    )


def _host(text: str) -> str:
    """An address, also in the brackets that it has in a URL, or a name."""
    host = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        if Form.SUBDOMAIN.fits(text.lower()):
            return text
    allowed = "an address or the name of this machine is expected; 0.0.0.0 or :: listens on all of its addresses"
    raise argparse.ArgumentTypeError(f"{shown(text)}: {allowed}")


def _port(text: str) -> int:
    return _whole(text, 0, 65535)


def _positive(text: str) -> int:
    return _whole(text, 1, 9999)


def _whole(text: str, low: int, high: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(high)) and low <= int(text) <= high):
        raise argparse.ArgumentTypeError(f"{shown(text)}: a whole number from {low} to {high} is allowed")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
