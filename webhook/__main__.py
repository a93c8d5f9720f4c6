"""``python -m webhook``: serve admission reviews; ``preview FILE...``: show what would happen; ``doctor``: look around.

Exit codes: 0 ended by a signal, nothing refused, or no error found; 1 a previewed manifest is refused, or the doctor
found an error; 2 bad usage or input, or a cluster that cannot be reached, with one line on standard error.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from vnpu import terminal
from vnpu.command_line import Parser, UsageError
from vnpu.errors import VnpuError
from webhook import arguments
from webhook.doctor.options import add_options

if TYPE_CHECKING:
    from collections.abc import Sequence

UNUSABLE: Final = 2
"""Exit code for bad usage or input, as argparse has it."""


def main(given: Sequence[str] | None = None) -> int:
    """Run the command line; returns its exit code."""
    try:
        options = _parser().parse_args(given)
        if options.command == "preview":
            from webhook import preview  # noqa: PLC0415 - each command loads what it needs

            return preview.run(options.files, options.config, options.device_config)
        if options.command == "doctor":
            from webhook.doctor import command  # noqa: PLC0415 - the same

            return command.run(options)
        keep = _certificates(options)
        from webhook import server  # noqa: PLC0415 - each command loads what it needs

        server.run(
            server.Options(
                host=options.host,
                port=options.port,
                certificate=options.cert,
                key=options.key,
                keep=keep,
                settings=options.config,
                device_config=options.device_config,
                workers=options.workers,
                threads=options.threads,
                drain_s=options.drain_seconds,
            )
        )
    except VnpuError as error:
        terminal.complain(f"webhook: {error}")
        return UNUSABLE
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="python -m webhook", description="Serve admission reviews over TLS.")
    arguments.add_address(parser, port=8443)
    parser.add_argument(
        "--workers", default=1, type=arguments.positive, metavar="N", help="processes (default %(default)s)"
    )
    parser.add_argument(
        "--threads",
        default=4,
        type=arguments.positive,
        metavar="N",
        help="of each process, for probes and metrics (default %(default)s)",
    )
    parser.add_argument(
        "--drain-seconds",
        default=0,
        type=arguments.seconds,
        metavar="N",
        help="how long new connections are served after SIGTERM, while not ready (default %(default)s)",
    )
    _add_certificates(parser)
    arguments.add_configuration(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    preview = commands.add_parser(
        "preview",
        help="show offline what would happen to manifests",
        description="Show offline what would happen to each manifest: a diff, warnings, refusals. "
        "Exit 1 if one is refused, 2 if one cannot be read, or none makes pods; the others are shown all the same.",
    )
    preview.add_argument("files", nargs="+", type=Path, metavar="FILE", help="YAML or JSON, - for standard input")
    # Left out behind the command, an option keeps what was given before it.
    arguments.add_configuration(preview, default=argparse.SUPPRESS)
    doctor = commands.add_parser(
        "doctor",
        help="look at a live cluster and say what is wrong",
        description="Look at a live cluster, changing nothing, and say what is wrong and what to do about it. "
        "Exit 1 on an error, 2 if the cluster cannot be reached.",
    )
    add_options(doctor)
    return parser


def _add_certificates(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("certificates")
    group.add_argument(
        "--certs",
        choices=("self", "files"),
        help="self: its own (the default without --cert); files: a pair that somebody else keeps",
    )
    group.add_argument("--cert", type=Path, metavar="FILE", help="PEM chain to serve")
    group.add_argument("--key", type=Path, metavar="FILE", help="PEM key of the certificate")
    cluster = parser.add_argument_group(
        "--certs self on a cluster",
        "All four together: certificates are kept in a Secret and published in the webhook configurations. "
        "Without them a pair is made for this machine.",
    )
    cluster.add_argument("--namespace", metavar="NAME", help="of Service and Secret")
    cluster.add_argument("--service", metavar="NAME", help="under which API servers call this server")
    cluster.add_argument("--secret", metavar="NAME", help="that holds the certificates")
    cluster.add_argument("--webhook-configurations", nargs="+", metavar="NAME", help="whose caBundle is kept")


def _certificates(options: argparse.Namespace) -> tuple[str, ...]:
    """The arguments of the process that keeps certificates; empty where there is none."""
    if (options.cert is None) != (options.key is None):
        raise UsageError("--cert and --key belong together")
    if options.cert is None and options.certs == "files":
        raise UsageError("--certs files needs --cert and --key")
    if options.cert is not None and options.certs == "self":
        raise UsageError("--certs self makes its own pair; --cert and --key are of --certs files")
    cluster = {
        "--namespace": options.namespace,
        "--service": options.service,
        "--secret": options.secret,
        "--webhook-configurations": options.webhook_configurations,
    }
    missing = [name for name, value in cluster.items() if value is None]
    if len(missing) == len(cluster):
        return ()
    if options.cert is not None:
        raise UsageError(f"{', '.join(cluster)} are of --certs self; --cert and --key are of --certs files")
    if missing:
        raise UsageError(f"{', '.join(cluster)} belong together; missing: {', '.join(missing)}")
    return (
        *("--namespace", options.namespace, "--service", options.service, "--secret", options.secret),
        *("--webhook-configurations", *options.webhook_configurations),
    )


if __name__ == "__main__":
    sys.exit(main())
