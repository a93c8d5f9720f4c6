"""``kubectl vnpu top``: who holds what of which card."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from vnpu import ledger
from vnpu.cards import NO_USE, WHOLE_CORE
from vnpu.fit.table import MODES, Column, Section, compute
from vnpu.mode import Mode
from webhook.doctor.snapshot import dig

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vnpu.cards import Card, Node, Use
    from vnpu.kube import Object
    from webhook.kubectl.view import View

_AMOUNTS: Final = (Column("MEMORY MiB", number=True), Column("CORE %", number=True), Column("AI CORES", number=True))
_NODES: Final = (
    *(Column("NODE"), Column("TAKES"), Column("CHIP"), Column("CARDS", number=True), Column("FREE", number=True)),
    *(*_AMOUNTS, Column("SLICES", number=True), Column("NOTE")),
)
_CARDS: Final = (
    *(Column("NODE"), Column("CARD", number=True), Column("UUID"), Column("MODE")),
    *(*_AMOUNTS, Column("SLICES", number=True), Column("NOTE")),
)
_PODS: Final = (
    *(Column("POD"), Column("PHASE"), Column("NODE"), Column("CARD", number=True), Column("UUID"), Column("MODE")),
    *(*_AMOUNTS, Column("NOTE")),
)


def nodes(view: View) -> list[Section]:
    """Nodes, then their cards; nodes without cards are left out unless something is wrong with them."""
    shown = [node for node in view.books.nodes if node.cards or node.unsafe]
    rows = [row for node in shown for row in _node_rows(view, node)]
    cards = [_card_row(view, node, card) for node in shown for card in node.cards]
    return [Section("Nodes", _NODES, tuple(rows)), Section("Cards", _CARDS, tuple(cards))]


def _node_rows(view: View, node: Node) -> Iterator[tuple[str, ...]]:
    takes = "soft and hard" if node.soft else "hard"
    if not node.cards:
        yield (node.name, takes, "", "0", "0", "", "", "", "", node.unsafe)
    for word in sorted({card.chip for card in node.cards}):
        cards = [card for card in node.cards if card.chip == word]
        uses = [_use(view, card) for card in cards]
        free = sum(_is_free(node, card, use) for card, use in zip(cards, uses, strict=True))
        yield (
            *(node.name, takes, word, str(len(cards)), str(free)),
            f"{sum(use.memory_mib for use in uses)} / {sum(card.memory_mib for card in cards)}",
            f"{sum(use.core_percent for use in uses)} / {WHOLE_CORE * len(cards)}" if node.soft else "",
            f"{sum(use.ai_core for use in uses)} / {sum(card.ai_core for card in cards)}",
            f"{sum(use.slots for use in uses)} / {sum(card.slots for card in cards)}",
            f"takes no new slices: {node.unsafe}" if node.unsafe else "",
        )


def _card_row(view: View, node: Node, card: Card) -> tuple[str, ...]:
    use = _use(view, card)
    return (
        *(node.name, str(card.index), card.uuid, MODES[use.mode]),
        *(f"{use.memory_mib} / {card.memory_mib}", *compute(use, card)),
        f"{use.slots} / {card.slots}",
        ", ".join(_card_notes(view, node, card)),
    )


def _card_notes(view: View, node: Node, card: Card) -> Iterator[str]:
    if not card.healthy:
        yield "unhealthy"
    if card.uuid in node.cordoned:
        yield "cordoned"
    if card.uuid in view.books.over_booked:
        yield f"over-booked: {view.books.over_booked[card.uuid]}"


def _is_free(node: Node, card: Card, use: Use) -> bool:
    return not use.slots and card.healthy and card.uuid not in node.cordoned and not node.unsafe


def _use(view: View, card: Card) -> Use:
    return view.books.used.get(card.uuid, NO_USE)


def pods(view: View, namespace: str | None) -> list[Section]:
    """The pods that hold cards, or that cannot tell what they hold; of one namespace, or of all."""
    places = {card.uuid: card.index for node in view.books.nodes for card in node.cards}
    rows = []
    for pod in _holders(view, namespace):
        entry = ledger.entry(pod, view.chips)
        name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        head = (name, str(dig(pod, "status", "phase") or ""), entry.where)
        if entry.fault:
            rows.append((*head, "", "", "", "", "", "", f"cannot be told: {entry.fault.partition(': ')[2]}"))
        rows += [
            (
                *(*head, str(places.get(uuid, "?")), uuid, MODES[use.mode], str(use.memory_mib)),
                *(("", str(use.ai_core)) if use.mode is Mode.HARD else (str(use.core_percent), "")),
                "" if uuid in places else "no known node has this card",
            )
            for holding in entry.holdings
            for uuid, use in holding.uses.items()
        ]
    return [Section("Pods", _PODS, tuple(rows))]


def _holders(view: View, namespace: str | None) -> Sequence[Object]:
    wanted = [pod for pod in view.pods if namespace in (None, pod["metadata"]["namespace"])]
    return sorted(wanted, key=lambda pod: (pod["metadata"]["namespace"], pod["metadata"]["name"]))


def nodes_json(view: View) -> dict[str, Any]:
    """The same as JSON."""
    return {
        "nodes": [
            {
                "name": node.name,
                "soft": node.soft,
                "unsafe": node.unsafe,
                "cards": [_card_json(view, node, card) for card in node.cards],
            }
            for node in view.books.nodes
            if node.cards or node.unsafe
        ]
    }


def _card_json(view: View, node: Node, card: Card) -> dict[str, Any]:
    use = _use(view, card)
    return {
        "uuid": card.uuid,
        "index": card.index,
        "chip": card.chip,
        "mode": use.mode.value if use.mode is not None else None,
        "memory_used_mib": use.memory_mib,
        "memory_mib": card.memory_mib,
        "core_used_percent": use.core_percent,
        "ai_core_used": use.ai_core,
        "ai_core": card.ai_core,
        "slots_used": use.slots,
        "slots": card.slots,
        "healthy": card.healthy,
        "cordoned": card.uuid in node.cordoned,
        "free": _is_free(node, card, use),
        "over_booked": view.books.over_booked.get(card.uuid, ""),
    }


def pods_json(view: View, namespace: str | None) -> dict[str, Any]:
    """The same as JSON."""
    told = []
    for pod in _holders(view, namespace):
        entry = ledger.entry(pod, view.chips)
        if not entry.fault and not entry.holdings:
            continue
        cards = [
            {
                "uuid": uuid,
                "chip": holding.chip.common_word,
                "mode": use.mode.value if use.mode is not None else None,
                "memory_mib": use.memory_mib,
                "core_percent": use.core_percent,
                "ai_core": use.ai_core,
            }
            for holding in entry.holdings
            for uuid, use in holding.uses.items()
        ]
        metadata = pod["metadata"]
        told.append(
            {
                "namespace": metadata["namespace"],
                "name": metadata["name"],
                "node": entry.where,
                "phase": str(dig(pod, "status", "phase") or ""),
                "fault": entry.fault,
                "cards": cards,
            }
        )
    return {"pods": told}
