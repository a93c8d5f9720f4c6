"""The command line of the planner."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from vnpu import quantity
from vnpu.annotations.policies import CardPolicy, NodePolicy
from vnpu.command_line import Parser, UsageError
from vnpu.documents import STANDARD_INPUT
from vnpu.errors import QuantityError
from vnpu.fit.inventory import MOST_CARDS
from vnpu.fit.workloads import MOST_PODS

if TYPE_CHECKING:
    from collections.abc import Sequence

_CARDS_FORM: Final = "CHIP[xN]"
_SLICES_FORM: Final = "MEMORY[,CORE][xN]"
_EPILOG: Final = """\
exit status: 0 all pods are placed, 1 some are not, 2 bad usage, input that cannot be read, or nothing to place

examples:
  python -m vnpu.fit --card Ascend910B3x8 --slice 28672,20x3 --slice 8192,10x5
  python -m vnpu.fit --nodes nodes.yaml --running pods.json app.yaml job.yaml
  python -m vnpu.fit --from-cluster app.yaml --what-if two-more-nodes.yaml
  python -m vnpu.fit --nodes nodes.yaml app.yaml -o html > plan.html
"""


class Output(StrEnum):
    """How a plan is written."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    HTML = "html"
    SVG = "svg"


@dataclass(frozen=True, slots=True)
class CardGroup:
    """``--card CHIP[xN]``: one node with ``count`` cards of the chip of that common word."""

    chip: str
    count: int


@dataclass(frozen=True, slots=True)
class SliceGroup:
    """``--slice MEMORY[,CORE][xN]``: ``count`` pods, each with a slice of ``memory`` and ``core``, as written.

    The core is None where it is left out.
    """

    memory: str
    core: str | None
    count: int


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asks for.

    Attributes:
        manifests: files of pods and workloads, in the order given.
        cards: nodes of ``--card``.
        slices: pods of ``--slice``.
        nodes: files of ``--nodes``.
        what_if: files of ``--what-if``.
        running: the files of ``--running``.
        from_cluster: whether nodes and running pods are read from a cluster too.
        kubeconfig: the file that names the cluster, None for kubectl's own.
        context: the context of the kubeconfig that names the cluster, None for the current one.
        device_config: the chip table's file, None for the default table.
        config: the webhook's settings file, None for the defaults.
        node_policy: for pods that name none.
        card_policy: the same for cards.
        output: how the plan is written.
        explain: the pod to explain card by card, ``name`` or ``namespace/name``.
        quiet: no progress and no warnings in the table.
    """

    manifests: tuple[Path, ...]
    cards: tuple[CardGroup, ...]
    slices: tuple[SliceGroup, ...]
    nodes: tuple[Path, ...]
    what_if: tuple[Path, ...]
    running: tuple[Path, ...]
    from_cluster: bool
    kubeconfig: str | None
    context: str | None
    device_config: Path | None
    config: Path | None
    node_policy: NodePolicy
    card_policy: CardPolicy
    output: Output
    explain: str | None
    quiet: bool

    @property
    def files(self) -> tuple[Path, ...]:
        """Every file that is read, as often as it is named; ``-`` is standard input."""
        settings = filter(None, (self.device_config, self.config))
        return (*self.manifests, *self.nodes, *self.what_if, *self.running, *settings)


def parse(arguments: Sequence[str]) -> Options:
    """The options of a command line; ``--help`` prints itself and exits.

    Raises:
        UsageError: an argument that is unknown, malformed or missing.
    """
    found = _parser().parse_intermixed_args(arguments)
    options = Options(
        manifests=tuple(found.manifests),
        cards=tuple(found.card),
        slices=tuple(found.slice),
        nodes=tuple(found.nodes),
        what_if=tuple(found.what_if),
        running=tuple(found.running),
        from_cluster=found.from_cluster,
        kubeconfig=found.kubeconfig,
        context=found.context,
        device_config=found.device_config,
        config=found.config,
        node_policy=NodePolicy(found.policy),
        card_policy=CardPolicy(found.card_policy),
        output=Output(found.output),
        explain=found.explain,
        quiet=found.quiet,
    )
    _check(options)
    return options


def _check(options: Options) -> None:
    if not (options.cards or options.nodes or options.what_if or options.from_cluster):
        raise UsageError(f"no nodes: give --card {_CARDS_FORM}, --nodes FILE or --from-cluster")
    for option, value in (("--kubeconfig", options.kubeconfig), ("--context", options.context)):
        if value is not None and not options.from_cluster:
            raise UsageError(f"{option} names the cluster of --from-cluster, which is not given")
    if not options.slices and not options.manifests:
        raise UsageError(f"nothing to place: give manifests or --slice {_SLICES_FORM}")
    if options.files.count(STANDARD_INPUT) > 1:
        raise UsageError("standard input (-) can be read once only")


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m vnpu.fit",
        description="Plan offline which pods go to which NPU cards, by the rules of admission and fit.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add(
        "manifests",
        nargs="*",
        type=Path,
        metavar="MANIFEST",
        help="Pod, Deployment, StatefulSet, ReplicaSet, ReplicationController, Job, CronJob, Volcano's Job and "
        "CronJob, or a List of them; - is stdin",
    )
    add(
        "--card",
        action="append",
        default=[],
        type=_card_group,
        metavar=_CARDS_FORM,
        help="a soft node with N cards of that chip; may stand several times (node-0, node-1, ...)",
    )
    add(
        "--slice",
        action="append",
        default=[],
        type=_slice_group,
        metavar=_SLICES_FORM,
        help="N pods with a soft slice of MEMORY MiB and CORE percent; may stand several times (slice-0, ...)",
    )
    add(
        "--nodes",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="kubectl get nodes -o json or yaml, or an inventory; may stand several times",
    )
    add("--from-cluster", action="store_true", help="nodes and running pods of the cluster that kubectl talks to")
    add("--kubeconfig", metavar="FILE", help="the kubeconfig that names the cluster (default: kubectl's own)")
    add("--context", metavar="NAME", help="the cluster of this context of the kubeconfig")
    add(
        "--what-if",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="more nodes, as for --nodes, and what they would change",
    )
    add(
        "--running",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="kubectl get pods -A -o json: what is held already; may stand several times",
    )
    add("--device-config", type=Path, metavar="FILE", help="the chip table (default: that of HAMi's chart)")
    add("--config", type=Path, metavar="FILE", help="the webhook's settings (default: its defaults)")
    add(
        "--policy",
        choices=[policy.value for policy in NodePolicy],
        default=NodePolicy.BINPACK.value,
        help="which node is taken first, where the pod does not say (default: %(default)s)",
    )
    add(
        "--card-policy",
        choices=[policy.value for policy in CardPolicy],
        default=CardPolicy.SPREAD.value,
        help="which card is taken first, where the pod does not say (default: %(default)s)",
    )
    add(
        "-o",
        "--output",
        choices=[form.value for form in Output],
        default=Output.TABLE.value,
        help="default: %(default)s",
    )
    add("--explain", metavar="POD", help="also say card by card why POD (name or namespace/name) fits or does not")
    add("--quiet", action="store_true", help="no progress bar, and no warnings in the table")
    return parser


def _card_group(text: str) -> CardGroup:
    return CardGroup(*_counted(text, MOST_CARDS))


def _slice_group(text: str) -> SliceGroup:
    amounts, count = _counted(text, MOST_PODS)
    memory, comma, core = (part.strip() for part in amounts.partition(","))
    try:
        quantity.parse(memory)
        if comma:
            quantity.parse(core)
    except QuantityError as error:
        raise argparse.ArgumentTypeError(f"{text}: {error}; the form is {_SLICES_FORM}") from error
    return SliceGroup(memory, core if comma else None, count)


def _counted(text: str, most: int) -> tuple[str, int]:
    """``8192,20x3`` is ``8192,20`` three times; without a number at the end it is there once."""
    what, _, digits = text.rpartition("x")
    if not (what and digits.isascii() and digits.isdigit()):
        return text, 1
    if len(digits) > len(str(most)) or not 1 <= int(digits) <= most:
        raise argparse.ArgumentTypeError(f"{text}: a count from 1 to {most} is allowed after the x")
    return what, int(digits)
