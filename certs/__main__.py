"""``python -m certs ensure|publish|check|keep``: the certificates of the webhook on a cluster.

Exit codes: 0 done, or all is well; 1 not done in time, or something is wrong, with the reason; 2 bad usage or input.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from certs.publish import Place
from certs.rotation import PROPAGATION, Step
from vnpu import terminal
from vnpu.command_line import Parser, UsageError
from vnpu.errors import VnpuError
from vnpu.kube import connect
from vnpu.names import CERTIFICATES_OWNER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from certs.keep import Replica
    from vnpu.kube import Cluster

WRONG: Final = 1
UNUSABLE: Final = 2
_WITHIN_S: Final = 300.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns its exit code."""
    try:
        options = _parser().parse_args(arguments)
        if options.command == "publish" and options.within_seconds < options.propagation_seconds:
            raise UsageError(
                f"--within-seconds {options.within_seconds:g}: a new caBundle alone takes "
                f"{options.propagation_seconds:g} s to be seen (--propagation-seconds); give it more than that"
            )
        cluster = connect(kubeconfig=options.kubeconfig, context=options.context, agent=CERTIFICATES_OWNER)
        place = Place(options.namespace, options.service, options.secret, tuple(options.webhook_configurations))
        if options.command == "check":
            return _check(cluster, place, options.connect)
        return _keep(cluster, place, options)
    except VnpuError as error:
        sys.stderr.write(f"certs: {error}\n")
        return UNUSABLE


def _check(cluster: Cluster, place: Place, address: tuple[str, int] | None) -> int:
    from certs.check import check  # noqa: PLC0415 - each command loads what it needs

    faults = check(cluster, place, address, datetime.now(UTC))
    sys.stdout.write("\n".join([*faults, ""]) if faults else "all is well\n")
    return WRONG if faults else 0


def _keep(cluster: Cluster, place: Place, options: argparse.Namespace) -> int:
    from certs.keep import Log, Replica  # noqa: PLC0415 - the same

    replica = Replica(
        cluster,
        place,
        options.folder,
        Log(),
        propagation=timedelta(seconds=options.propagation_seconds),
        secret_only=options.command == "ensure",
        renew=options.renew_ca,
    )
    replica.start()
    if options.command == "keep":
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _end)
        _for_ever(replica)
        return 0
    return _until_done(replica, options.within_seconds)


def _for_ever(replica: Replica) -> None:
    """Keep on, until a signal comes or the server that started this process is gone."""
    parent = os.getppid()
    while os.getppid() == parent:
        _, pause_s = replica.turn()
        time.sleep(pause_s)


def _until_done(replica: Replica, within_s: float) -> int:
    done = {Step.SETTLED, *((Step.PUBLISH, Step.WAIT, Step.STUCK) if replica.secret_only else ())}
    deadline = time.monotonic() + within_s
    while True:
        step, pause_s = replica.turn()
        if step in done and not replica.renew:
            return 0
        if time.monotonic() + pause_s > deadline:
            last = "the log says why" if step is None else step.value
            terminal.complain(f"certs: gave up, not done within {within_s:g} s (--within-seconds): {last}")
            return WRONG
        time.sleep(pause_s)


def _end(_signal: int, _frame: Any) -> None:
    """End at once: every write is whole or not there, on the cluster as in the folder."""
    sys.exit(0)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="python -m certs", description="The certificates of the webhook on a cluster.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)
    ensure = _command(commands, "ensure", "make or renew what the Secret holds, and leave the caBundles alone")
    publish = _command(commands, "publish", "the same, publish it, and go on until nothing is left to do")
    check = _command(
        commands, "check", "tell whether what is served, the Secret and the caBundles agree; exit 1 if not"
    )
    keep = _command(commands, "keep", "publish for ever, and put the pair to serve into a folder")
    check.add_argument("--connect", type=_address, metavar="HOST:PORT", help="of a server to call")
    keep.add_argument("--folder", type=Path, required=True, help="that gets tls.crt, tls.key and ca.crt")
    publish.add_argument("--renew-ca", action="store_true", help="change the CA now, old and new trusted together")
    for command in (ensure, publish):
        command.add_argument(
            "--within-seconds", type=float, default=_WITHIN_S, metavar="N", help="give up then (default %(default)g)"
        )
        command.set_defaults(folder=None)
    for command in (ensure, keep):
        command.set_defaults(renew_ca=False)
    for command in (ensure, publish, keep):
        command.add_argument(
            "--propagation-seconds",
            type=float,
            default=PROPAGATION.total_seconds(),
            metavar="N",
            help="in which every API server has surely seen a new caBundle (default %(default)g)",
        )
    return parser


def _command(commands: Any, name: str, text: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    command.add_argument("--namespace", required=True, metavar="NAME", help="of Service and Secret")
    command.add_argument("--service", required=True, metavar="NAME", help="under which API servers call the webhook")
    command.add_argument("--secret", required=True, metavar="NAME", help="that holds the certificates")
    command.add_argument(
        "--webhook-configurations", required=True, nargs="+", metavar="NAME", help="mutating and validating ones"
    )
    command.add_argument("--kubeconfig", metavar="FILE", help="instead of the pod's service account")
    command.add_argument("--context", metavar="NAME", help="one of the kubeconfig")
    return command


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not (host and port.isascii() and port.isdigit() and 0 < int(port[:6]) < 2**16):
        raise argparse.ArgumentTypeError(f"{text}: HOST:PORT is expected")
    return host.strip("[]"), int(port)


if __name__ == "__main__":
    sys.exit(main())
