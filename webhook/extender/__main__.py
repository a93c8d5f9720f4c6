"""``python -m webhook.extender``: which nodes hold a pod, and binding, for a stock kube-scheduler beside it.

Exit codes: 0 ended by a signal; 2 bad usage or input, with one line on standard error.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from vnpu import terminal
from vnpu.annotations.policies import CardPolicy, NodePolicy
from vnpu.command_line import Parser
from vnpu.errors import VnpuError
from vnpu.fit.policy import Policy
from webhook import arguments

if TYPE_CHECKING:
    from collections.abc import Sequence

UNUSABLE: Final = 2
"""Exit code for bad usage or input, as argparse has it."""


def main(given: Sequence[str] | None = None) -> int:
    """Run the command line; returns its exit code."""
    try:
        options = _parser().parse_args(given)
        from webhook.extender import server  # noqa: PLC0415 - not for --help

        server.run(
            server.Options(
                host=options.host,
                port=options.port,
                settings=options.config,
                device_config=options.device_config,
                kubeconfig=options.kubeconfig,
                policy=Policy(NodePolicy(options.policy), (CardPolicy(options.card_policy),)),
            )
        )
    except VnpuError as error:
        terminal.complain(f"extender: {error}")
        return UNUSABLE
    return 0


def _parser() -> Parser:
    parser = Parser(
        prog="python -m webhook.extender",
        description="Tell kube-scheduler which nodes hold a pod that asks for NPUs, and bind it to cards.",
    )
    arguments.add_address(parser, port=8888)
    parser.add_argument(
        "--kubeconfig", metavar="FILE", help="of the cluster (default: the pod's service account, else KUBECONFIG)"
    )
    parser.add_argument(
        "--policy",
        choices=(NodePolicy.BINPACK.value, NodePolicy.SPREAD.value),
        default=NodePolicy.BINPACK.value,
        help="of nodes, where a pod's annotations do not say (default %(default)s)",
    )
    parser.add_argument(
        "--card-policy",
        choices=(CardPolicy.BINPACK.value, CardPolicy.SPREAD.value),
        default=CardPolicy.SPREAD.value,
        help="the same of the cards of a node (default %(default)s)",
    )
    arguments.add_configuration(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
