"""The command line of ``kubectl vnpu``."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from vnpu.command_line import Parser, UsageError
from vnpu.errors import shown
from webhook.arguments import add_configuration

if TYPE_CHECKING:
    from collections.abc import Sequence

PASSED_ON: Final = ("fit", "preview", "doctor")
"""Commands whose options are read by the programs that they run."""

_HELP: Final = ("-h", "--help")
_PODS: Final = ("", "pod", "pods", "po")
_DESCRIPTION: Final = (
    "Soft slices of Ascend NPUs: what would fit, what admission would do, what is wrong, who holds what."
)
_EPILOG: Final = """\
examples:
  kubectl vnpu top                      nodes and cards, and what is held of them
  kubectl vnpu top pods -n team         who holds what
  kubectl vnpu explain app-0 -n team    why a pod is pending, card by card
  kubectl vnpu fit app.yaml             whether these would fit beside what runs now
  kubectl vnpu preview app.yaml         what admission would make of them
  kubectl vnpu doctor                   what is wrong with the installation

exit status: 0 done, or all is well; 1 something does not fit, is refused, pending or wrong; 2 bad usage, or a cluster
that cannot be reached. Options stand behind the command: kubectl takes those before "vnpu" for its own.
"""


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The options of a command line; ``--help`` prints itself and exits. What is passed on stands in ``rest``.

    Raises:
        UsageError: an argument that is unknown, malformed or missing.
    """
    if arguments and arguments[0] in PASSED_ON:
        return argparse.Namespace(command=arguments[0], rest=list(arguments[1:]))
    if arguments and arguments[0].startswith("-") and arguments[0] not in _HELP:
        raise UsageError(f"{arguments[0]}: options stand behind the command: kubectl vnpu COMMAND {arguments[0]} ...")
    return _parser().parse_args(arguments)


def _pod(text: str) -> str:
    """The name of a pod; kubectl's ``pod/NAME`` is one as well."""
    kind, _, name = text.rpartition("/")
    if kind not in _PODS or not name:
        raise argparse.ArgumentTypeError(f"{shown(text)}: the name of a pod is expected (kubectl get pods)")
    return name


def cluster_of(arguments: Sequence[str]) -> argparse.Namespace:
    """The options among others that say which cluster."""
    parser = Parser(add_help=False, allow_abbrev=False)
    _add_cluster(parser)
    return parser.parse_known_args(arguments)[0]


def _add_cluster(parser: argparse.ArgumentParser) -> None:
    """``--kubeconfig`` and ``--context``."""
    parser.add_argument("--kubeconfig", metavar="FILE", help="default: $KUBECONFIG or ~/.kube/config")
    parser.add_argument("--context", metavar="NAME", help="one of the kubeconfig")


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="kubectl vnpu",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)
    for name, text in (
        ("fit", "plan manifests onto the cluster; options as for python -m vnpu.fit"),
        ("preview", "what admission would make of manifests; options as for python -m webhook preview"),
        ("doctor", "what is wrong with the installation; options as for python -m webhook doctor"),
    ):
        commands.add_parser(name, help=text)
    top = commands.add_parser("top", help="nodes, cards and slices, or pods, and what they hold", allow_abbrev=False)
    top.add_argument("what", nargs="?", choices=("nodes", "pods"), default="nodes", help="default: %(default)s")
    top.add_argument("-n", "--namespace", metavar="NAME", help="pods of this namespace alone (default: of all)")
    top.add_argument("-o", "--output", choices=("table", "json"), default="table", help="default: %(default)s")
    explain = commands.add_parser("explain", help="why a pod is pending, card by card", allow_abbrev=False)
    explain.add_argument("pod", metavar="POD", type=_pod, help="its name")
    explain.add_argument("-n", "--namespace", metavar="NAME", help="of the pod (default: that of the context)")
    for command in (top, explain):
        _add_cluster(command)
        add_configuration(command)
    return parser
