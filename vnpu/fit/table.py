"""A plan as tables for people: what there is to say, section by section, however it is drawn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import compress, groupby
from typing import TYPE_CHECKING, Final

from vnpu.cards import WHOLE_CORE
from vnpu.errors import few
from vnpu.fit.admit import full_name
from vnpu.mode import Mode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vnpu.cards import Card, Use
    from vnpu.fit.answers import CardStatus, Unplaced
    from vnpu.fit.report import Change, Explanation, Report
    from vnpu.placement import CardShare, Placement

_WHOLE_CARD: Final = "whole card"
MODES: Final = {Mode.SOFT: "soft", Mode.HARD: "hard", None: "empty"}


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its title, ``""`` where the section's says it all, and whether it holds numbers, which stand right."""

    title: str
    number: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """A table with a title.

    Attributes:
        title: what the rows are.
        columns: at least one.
        rows: as many texts each as there are columns.
        bad: whether the rows are what went wrong.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    bad: bool = False


def sections(report: Report, *, warnings: bool = True) -> Iterator[Section]:
    """Cards, pods that are placed, pods that are not, explanations and warnings.

    Sections without rows are left out, and columns without any text.

    Args:
        report: the plan.
        warnings: whether to show them.
    """
    plan = report.plan
    found = [
        _cards(report),
        _placed(plan.placements, f"node policy {plan.node_policy}, card policy {plan.card_policy}"),
        _unplaced(plan.unplaced),
        *([] if report.change is None else [_changed(report.change)]),
        *map(explained, report.explanations),
    ]
    if warnings:
        found.append(Section("Warnings", (Column(""),), tuple((warning,) for warning in plan.warnings)))
    return (without_blank_columns(section) for section in found if section.rows)


def without_blank_columns(section: Section) -> Section:
    """The section without columns in which no row has a text."""
    kept = [any(texts) for texts in zip(*section.rows, strict=True)]
    return replace(
        section,
        columns=tuple(compress(section.columns, kept)),
        rows=tuple(tuple(compress(row, kept)) for row in section.rows),
    )


def _cards(report: Report) -> Section:
    nodes = {node.name: node for node in report.cluster.nodes}
    columns = (
        Column("NODE"),
        Column("CARDS"),
        Column("CHIP"),
        Column("MODE"),
        Column("MEMORY MiB", number=True),
        Column("CORE %", number=True),
        Column("AI CORES", number=True),
        Column("SLOTS", number=True),
        Column("NOTE"),
    )

    def state(status: CardStatus) -> tuple[str, ...]:
        card, use, node = status.card, status.use, nodes[status.node]
        notes = (
            (not card.healthy, "unhealthy"),
            (card.uuid in node.cordoned, "cordoned"),
            (bool(node.unsafe), "node takes no new slices"),
        )
        return (
            status.node,
            card.chip,
            MODES[status.mode],
            f"{use.memory_mib} / {card.memory_mib}",
            *compute(use, card),
            f"{use.slots} / {card.slots}",
            ", ".join(text for holds, text in notes if holds),
        )

    # Cards in the same state share a row: most of a large cluster is either empty or full.
    rows = tuple(
        (node, _ranges([status.card.index for status in alike]), *rest)
        for (node, *rest), alike in groupby(report.plan.cards, state)
    )
    return Section(f"{_number(len(report.plan.cards), 'card')} on {_number(len(nodes), 'node')}", columns, rows)


def compute(use: Use, card: Card) -> tuple[str, str]:
    """What is held of a card's compute: percent by soft slices, AI cores by hard ones."""
    if use.mode is Mode.HARD:
        return "", f"{use.ai_core} / {card.ai_core}"
    return f"{use.core_percent} / {WHOLE_CORE}", ""


def _placed(placements: Sequence[Placement], policies: str) -> Section:
    columns = (
        Column("POD"),
        Column("CONTAINER"),
        Column("NODE"),
        Column("CARD", number=True),
        Column("UUID"),
        Column("MEMORY MiB", number=True),
        Column("CORE %", number=True),
        Column("TEMPLATE"),
    )
    rows = tuple(
        (full_name(placement.pod), container.name, placement.node, *_share(share, placement.pod.mode))
        for placement in placements
        for container in placement.containers
        for share in container.cards
    )
    return Section(f"Placed: {_number(len(placements), 'pod')} ({policies})", columns, rows)


def _share(share: CardShare, mode: Mode) -> tuple[str, ...]:
    card = share.card
    core, template = (str(share.core_percent), "") if mode is Mode.SOFT else ("", share.template or _WHOLE_CARD)
    return str(card.index), card.uuid, str(share.memory_mib), core, template


def _unplaced(pods: Sequence[Unplaced]) -> Section:
    def fault(unplaced: Unplaced) -> tuple[str, str, str]:
        return unplaced.pod.name.rpartition("-")[0], unplaced.message, _codes(unplaced)

    rows = []
    # Replicas that fail alike share a row.
    for (_, message, codes), alike in groupby(pods, fault):
        names = [full_name(unplaced.pod) for unplaced in alike]
        label = names[0] if len(names) == 1 else f"{names[0]} .. {names[-1]} ({len(names)})"
        rows.append((label, codes, message))
    columns = (Column("POD"), Column("REASONS"), Column("WHY"))
    return Section(f"Not placed: {_number(len(pods), 'pod')}", columns, tuple(rows), bad=True)


def _codes(unplaced: Unplaced) -> str:
    return ", ".join(f"{cards} {reason}" for reason, cards in unplaced.reasons.items())


def explained(explanation: Explanation) -> Section:
    """Card by card, what speaks against a pod."""
    columns = (Column("NODE"), Column("CARD", number=True), Column("UUID"), Column("CONTAINER"), Column("VERDICT"))
    rows = tuple(
        (
            node,
            str(verdict.card.index),
            verdict.card.uuid,
            verdict.container,
            "fits" if verdict.reason is None else f"{verdict.reason}: {verdict.detail}",
        )
        for node, verdicts in explanation.verdicts.items()
        for verdict in verdicts
    )
    if not rows:
        rows = (("", "", "", "", explanation.message),)
    where = f"placed on {explanation.node}" if explanation.node is not None else "not placed"
    return Section(f"Why {full_name(explanation.pod)} is {where}", columns, rows)


def _changed(change: Change) -> Section:
    """What nodes that are not there yet would change; the names of the pods may be many."""
    columns = (Column("PODS", number=True), Column("CHANGE"), Column("WHICH"))
    told = [(change.more, "placed because of them")]
    if change.fewer:
        told.append((change.fewer, "not placed because of them: others took their room"))
    rows = tuple((str(len(pods)), words, few(pods)) for pods, words in told)
    return Section(f"What {_number(len(change.nodes), 'more node')} would change: {few(change.nodes)}", columns, rows)


def _ranges(indices: Sequence[int]) -> str:
    """``0-2, 5`` for rising numbers."""
    runs: list[list[int]] = []
    for index in indices:
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def _number(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"
