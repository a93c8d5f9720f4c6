"""From the command line to values: the one module of the planner that reads files."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vnpu import device_config, ledger
from vnpu.admission.settings import Settings, parse_settings
from vnpu.chips import DEFAULT_CHIPS
from vnpu.errors import InputError
from vnpu.fit import documents
from vnpu.fit.nodes import NodeList, running_pods
from vnpu.fit.report import Planner
from vnpu.fit.workloads import Reception

if TYPE_CHECKING:
    from pathlib import Path

    from vnpu.chips import Chip, ChipTable
    from vnpu.fit.arguments import Options
    from vnpu.fit.documents import Document
    from vnpu.ledger import Ledger


def load(options: Options) -> Planner:
    """Reads every file that the command line names.

    Raises:
        VnpuError: a file, document or field that cannot be used; the message names it.
    """
    chips, warnings = _chips(options.device_config)
    books = _books(options, chips)
    reception = Reception(_settings(options.config), chips)
    asked = []
    if options.slices:
        asked.append(reception.take_slices(options.slices, _only_chip(books, chips)))
    for path in options.manifests:
        asked += map(reception.take, documents.read(path))
    books = replace(books, warnings=(*warnings, *books.warnings))
    return Planner(books, asked, options.node_policy, options.card_policy)


def _chips(path: Path | None) -> tuple[ChipTable, tuple[str, ...]]:
    if path is None:
        return DEFAULT_CHIPS, ()
    with _only_document(path) as document:
        config = device_config.parse(document.value)
    return config.table, tuple(f"{document.place}: {warning}" for warning in config.warnings)


def _settings(path: Path | None) -> Settings:
    if path is None:
        return Settings()
    with _only_document(path) as document:
        return parse_settings(document.value)


def _only_document(path: Path) -> Document:
    found = list(documents.read(path))
    if len(found) > 1:
        raise InputError(str(path), f"{len(found)} documents", "one document is expected")
    return found[0] if found else documents.Document(str(path), 1, "", {})


def _books(options: Options, chips: ChipTable) -> Ledger:
    nodes = NodeList(chips)
    nodes.add_cards(options.cards)
    for path in options.nodes:
        for document in documents.read(path):
            nodes.add_document(document)
    pods = running_pods(documents.read(options.running)) if options.running is not None else ()
    books = ledger.book(nodes.nodes, pods, chips)
    return replace(books, warnings=(*nodes.warnings, *books.warnings))


def _only_chip(books: Ledger, chips: ChipTable) -> Chip:
    """The chip of ``--slice``: there must be no doubt."""
    words = sorted({card.chip for node in books.nodes for card in node.cards})
    chip = chips.get(words[0]) if len(words) == 1 else None
    if chip is None:
        raise InputError("--slice", words, "the nodes must have cards of exactly one chip")
    return chip
