"""From the command line to values: the one module of the planner that reads files."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from vnpu import configuration, documents, ledger
from vnpu.command_line import UsageError
from vnpu.errors import FieldError, few
from vnpu.fit import live
from vnpu.fit.nodes import NodeList, running_pods
from vnpu.fit.report import Planner
from vnpu.fit.terms import Terms, close
from vnpu.fit.workloads import Reception
from vnpu.holdings import waits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from vnpu.chips import Chip, ChipTable
    from vnpu.fit.arguments import Options
    from vnpu.ledger import Entry, Ledger


def load(options: Options) -> Planner:
    """Reads every file that the command line names.

    Raises:
        VnpuError: a file, document or field that cannot be used; the message names it.
    """
    chips, warnings = configuration.read_chips(options.device_config)
    cluster = live.read(options.kubeconfig, options.context) if options.from_cluster else live.Live((), ())
    nodes = _nodes(options, cluster, chips)
    known = len(nodes.nodes)
    for path in options.what_if:
        for document in documents.read(path):
            nodes.add_document(document)
    books = _books(nodes, options, cluster, chips)
    settings, notes = configuration.read_settings(options.config)
    reception = Reception(settings, chips)
    batches = []
    if options.slices:
        batches.append(reception.take_slices(options.slices, _only_chip(books, chips)))
    for path in options.manifests:
        batches += map(reception.take, documents.read(path))
    reception.close()
    asked = list(
        dict.fromkeys(pod.terms for batch in batches for pod in batch.requests if isinstance(pod.terms, Terms))
    )
    books = replace(
        books,
        nodes=close(books.nodes, nodes.surroundings, asked),
        warnings=(*warnings, *notes, *books.warnings, *_untold(nodes, asked)),
    )
    added = frozenset(node.name for node in nodes.nodes[known:])
    return Planner(books, batches, options.node_policy, options.card_policy, added)


def _untold(nodes: NodeList, asked: Iterable[Terms]) -> Iterator[str]:
    """What is not looked at because nobody told it."""
    bare = [node.name for node in nodes.nodes if nodes.surroundings[node.name].labels is None]
    if bare and any(terms.need_labels for terms in asked):
        yield f"nodeSelector and node affinity are not looked at on nodes whose labels are not told: {few(bare)}"


def _nodes(options: Options, cluster: live.Live, chips: ChipTable) -> NodeList:
    nodes = NodeList(chips)
    nodes.add_cards(options.cards)
    for document in cluster.nodes:
        nodes.add_document(document)
    for path in options.nodes:
        for document in documents.read(path):
            nodes.add_document(document)
    return nodes


def _books(nodes: NodeList, options: Options, cluster: live.Live, chips: ChipTable) -> Ledger:
    pods = running_pods(chain(cluster.pods, chain.from_iterable(map(documents.read, options.running))))
    waiting: list[str] = []
    books = ledger.balance(nodes.nodes, _entries(pods, chips, waiting))
    return replace(books, warnings=(*nodes.warnings, *books.warnings, *_holding_nothing(waiting)))


def _entries(pods: Iterable[Mapping[str, Any]], chips: ChipTable, waiting: list[str]) -> Iterator[Entry]:
    """What the pods hold; those that ask for an NPU and have none yet are noted in passing."""
    for pod in pods:
        entry = ledger.entry(pod, chips)
        if not (entry.where or entry.holdings or entry.fault):
            with suppress(FieldError):  # who cannot be read holds nothing all the same
                if waits(pod, chips):
                    waiting.append(entry.label)
        yield entry


def _holding_nothing(waiting: Sequence[str]) -> Iterator[str]:
    """A manifest as somebody wrote it is no running pod, though it is easily given for one."""
    if waiting:
        have, hold = ("has", "holds") if len(waiting) == 1 else ("have", "hold")
        expected = "what kubectl get pods -A -o json prints is expected of running pods"
        yield f"{few(waiting)} {have} no node and no card yet, and {hold} nothing: {expected}"


def _only_chip(books: Ledger, chips: ChipTable) -> Chip:
    """The chip of ``--slice``: there must be no doubt."""
    words = sorted({card.chip for node in books.nodes for card in node.cards})
    if len(words) > 1:
        raise UsageError(f"--slice names no chip, and the nodes have {', '.join(words)}: give a manifest instead")
    chip = chips.get(words[0]) if words else None
    if chip is None:
        raise UsageError("--slice takes its chip from the nodes, and these have no cards: give nodes with cards")
    return chip
