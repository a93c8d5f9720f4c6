"""Parts of the command lines of the webhook and of the extender."""

from __future__ import annotations

import argparse
import ipaddress
from pathlib import Path

from vnpu.errors import shown
from vnpu.fields import Form


def add_address(parser: argparse.ArgumentParser, *, port: int) -> None:
    """``--host`` and ``--port``."""
    parser.add_argument(
        "--host", default="127.0.0.1", type=_host, help="address or name to listen on (default %(default)s)"
    )
    parser.add_argument("--port", default=port, type=_port, help="0 takes a free one (default %(default)s)")


def add_configuration(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    """``--config`` and ``--device-config``."""
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


def seconds(text: str) -> int:
    """A number of seconds, an hour at most."""
    return _whole(text, 0, 3600)


def positive(text: str) -> int:
    """A number from 1."""
    return _whole(text, 1, 9999)


def _whole(text: str, low: int, high: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(high)) and low <= int(text) <= high):
        raise argparse.ArgumentTypeError(f"{shown(text)}: a whole number from {low} to {high} is allowed")
    return int(text)
