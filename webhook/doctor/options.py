"""The options of the command ``doctor``: apart from it, for reading a command line is not to load what it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add = parser.add_argument
    add("--kubeconfig", metavar="FILE", help="default: $KUBECONFIG, ~/.kube/config or the pod's service account")
    add("--context", metavar="NAME", help="one of the kubeconfig")
    add("--namespace", "-n", metavar="NAME", help="of the installation (default: the one that is found)")
    add(
        "--dry-run-namespace",
        default="default",
        metavar="NAME",
        help="where pods are asked for, without creating any (default %(default)s)",
    )
    add("--no-dry-run", action="store_true", help="do not ask for pods")
    add("--json", action="store_true", help="findings as JSON")
