"""Refusals: reasons counted for machines, and sentences for people that name the nearest miss."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from vnpu import names
from vnpu.annotations.policies import NodePolicy
from vnpu.cards import NO_USE, WHOLE_CORE
from vnpu.fit.answers import CardVerdict, NodeRefusal, Reason
from vnpu.fit.laws import obstacle
from vnpu.mode import Mode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vnpu.cards import Card, Node, Use
    from vnpu.fit.laws import Want
    from vnpu.fit.search import DeadEnd
    from vnpu.request import PodRequest, SliceRequest


class _Distance(IntEnum):
    """How far a card or node is from taking a slice: the remedy, the easiest first."""

    OTHER_ORDER = 0
    SMALLER_SLICE = 1
    OTHERS_GONE = 2
    CARD_BACK = 3
    OTHER_NODE = 4


_DISTANCE: Final = {
    Reason.CARD_INSUFFICIENT_MEMORY: _Distance.SMALLER_SLICE,
    Reason.CARD_INSUFFICIENT_CORE: _Distance.SMALLER_SLICE,
    Reason.CARD_INSUFFICIENT_AI_CORE: _Distance.SMALLER_SLICE,
    Reason.CARD_INSUFFICIENT_AI_CPU: _Distance.SMALLER_SLICE,
    Reason.CARD_TIME_SLICING_EXHAUSTED: _Distance.OTHERS_GONE,
    Reason.EXCLUSIVE_CONFLICT: _Distance.OTHERS_GONE,
    Reason.CARD_COMPUTE_UNITS_EXHAUSTED: _Distance.OTHERS_GONE,
    Reason.CARD_MODE_CONFLICT: _Distance.OTHERS_GONE,
    Reason.CARD_NOT_HEALTH: _Distance.CARD_BACK,
    Reason.CARD_CORDONED: _Distance.CARD_BACK,
    Reason.CARD_UUID_MISMATCH: _Distance.CARD_BACK,
    Reason.CARD_TYPE_MISMATCH: _Distance.OTHER_NODE,
}


@dataclass(frozen=True, slots=True)
class _Miss:
    """A card that does not take a slice.

    Attributes:
        card: the card.
        reasons: the law that the slice would break, and the one that a slice without memory would still break.
        distance: how far the card is from taking it.
        shortfall: what is missing of amounts, as parts of what the card has.
    """

    card: Card
    reasons: tuple[Reason, ...]
    distance: _Distance
    shortfall: float


def refuse_node(node: Node, reason: Reason) -> NodeRefusal:
    """The refusal of a node whose cards need not be looked at."""
    distance = _DISTANCE.get(reason, _Distance.OTHER_NODE)
    return _refusal(node, Counter({reason: 1}), _node_detail(node, reason), (distance, 0.0, 0.0))


def refuse_cards(node: Node, end: DeadEnd, *, several_containers: bool) -> NodeRefusal:
    """The refusal of a node whose cards do not hold the pod, told for the container at which the search ended.

    Args:
        node: the node.
        end: where the search ended.
        several_containers: whether the sentence must say which container it is about.
    """
    want = end.want
    refused = _misses(node, end)
    reasons = Counter(miss.reasons[0] for miss in refused)
    of_chip = len(node.cards) - reasons[Reason.CARD_TYPE_MISMATCH]
    fitting = len(node.cards) - len(refused)
    missing = want.count - fitting
    whom = f" for {want.container}" if several_containers else ""
    if of_chip < want.count:
        reasons[Reason.NODE_INSUFFICIENT_DEVICE] = 1
        has = f"only {of_chip} of {want.count} {want.word} cards" if of_chip else f"no {want.word} card"
        return _refusal(node, reasons, f"{node.name} has {has}{whom}", (_Distance.OTHER_NODE, missing, 0.0))
    if fitting:
        reasons[Reason.ALLOCATED_CARDS_INSUFFICIENT] = fitting
    if end.given_up:
        message = (
            f"{node.name} has room for each container and for all together, but the search for cards that hold them "
            "all was cut short: with fewer containers, or the same in another order, the pod may fit"
        )
        return _refusal(node, reasons, message, (_Distance.OTHER_ORDER, 0.0, 0.0))
    if missing <= 0:
        message = f"on {node.name} {fitting} cards would do{whom}, but too few of them form whole modules (2n, 2n + 1)"
        return _refusal(node, reasons, message, (_Distance.OTHERS_GONE, 0.0, 0.0))
    best = min(refused, key=lambda miss: (miss.distance, miss.shortfall, miss.card.index, miss.card.uuid))
    detail = _detail(want, best.card, end.held.get(best.card.uuid, NO_USE), best.reasons)
    message = f"on the best card ({node.name} card {best.card.index}) {detail}{whom}"
    if want.count > 1:
        message = f"{node.name} has {fitting} of {want.count} cards, and {message}"
    return _refusal(node, reasons, message, (best.distance, missing, best.shortfall))


def verdicts(node: Node, end: DeadEnd) -> tuple[CardVerdict, ...]:
    """Card by card, what speaks against the container at which the search ended."""
    container = end.want.container
    found = {card.uuid: CardVerdict(container, card, None, "") for card in node.cards}
    for miss in _misses(node, end):
        detail = _detail(end.want, miss.card, end.held.get(miss.card.uuid, NO_USE), miss.reasons)
        found[miss.card.uuid] = CardVerdict(container, miss.card, miss.reasons[0], detail)
    return tuple(found.values())


def node_verdicts(node: Node, want: Want, reason: Reason) -> tuple[CardVerdict, ...]:
    """The same where the whole node is refused. A card of another chip is told so: no remedy for the node helps it."""
    return tuple(
        CardVerdict(want.container, card, reason, _node_detail(node, reason))
        if card.chip == want.word
        else CardVerdict(want.container, card, Reason.CARD_TYPE_MISMATCH, _other_chip(want, card))
        for card in node.cards
    )


def unplaced_message(request: PodRequest, refusals: Sequence[NodeRefusal]) -> str:
    """Why no node holds the pod: what it asks for, and what is missing where it comes nearest."""
    asked = ", ".join(
        f"{container.name or 'a container'} asks for {_asked(container.slice)}"
        for container in request.containers
        if container.slice is not None
    )
    if not refusals:
        return f"there is no node: {asked}"
    nearest = min(refusals, key=lambda refusal: refusal.distance)
    verdict = "no node was found for it" if nearest.distance[0] == _Distance.OTHER_ORDER else "no node holds it"
    return f"{verdict}: {asked}; {nearest.message}"


def _refusal(node: Node, reasons: Counter[Reason], message: str, distance: tuple[float, ...]) -> NodeRefusal:
    total = max(1, len(node.cards))
    counted = {reason: count for reason, count in sorted(reasons.items()) if count}
    text = ", ".join(sorted(f"{count}/{total} {reason}" for reason, count in counted.items()))
    return NodeRefusal(node.name, counted, total, text, message, distance)


def _node_detail(node: Node, reason: Reason) -> str:
    if reason is Reason.NODE_UNSAFE:
        return f"{node.name} is unsafe for new slices: {node.unsafe}"
    if reason is Reason.EXCLUSIVE_CONFLICT:
        return f"{node.name} has cards of the pod's chips in use, and node policy {NodePolicy.MUTEX} takes no such node"
    return f'{node.name} takes no soft slices (node annotation {names.SOFT_NODE}: the text "true" is expected)'


def _shortages(want: Want, card: Card, held: Use) -> list[tuple[int, int, str]]:
    """What is missing on the card: how much, of how much in all, and of what."""
    use = want.use
    amounts = [(held.memory_mib + use.memory_mib, card.memory_mib, "MiB")]
    if use.mode is Mode.SOFT:
        amounts.append((held.core_percent + use.core_percent, WHOLE_CORE, "percent of compute"))
    else:
        amounts.append((held.ai_core + use.ai_core, card.ai_core, "AI core(s)"))
        amounts.append((held.ai_cpu + use.ai_cpu, card.ai_cpu, "AI CPU(s)"))
    return [(asked - total, total, unit) for asked, total, unit in amounts if asked > total]


def _misses(node: Node, end: DeadEnd) -> list[_Miss]:
    """The cards that do not take the slice, in the node's order."""
    want = end.want
    without_memory = replace(want, use=replace(want.use, memory_mib=0))
    found = []
    for card in node.cards:
        held = end.held.get(card.uuid, NO_USE)
        reason = obstacle(want, card, held, node.cordoned)
        if reason is None:
            continue
        reasons: tuple[Reason, ...] = (reason,)
        if reason is Reason.CARD_INSUFFICIENT_MEMORY:
            # A card whose compute is given away is not near, however little memory is missing.
            further = obstacle(without_memory, card, held, node.cordoned)
            if further is not None and further is not reason:
                reasons = (reason, further)
        shortfall = sum(missing / max(1, total) for missing, total, _ in _shortages(want, card, held))
        found.append(_Miss(card, reasons, max(_DISTANCE[reason] for reason in reasons), shortfall))
    return found


def _detail(want: Want, card: Card, held: Use, reasons: Sequence[Reason]) -> str:
    amounts = [f"{missing} {unit}" for missing, _, unit in _shortages(want, card, held)]
    texts = {
        Reason.CARD_TYPE_MISMATCH: _other_chip(want, card),
        Reason.CARD_NOT_HEALTH: "the device plugin reports a fault",
        Reason.CARD_CORDONED: f"new slices are off (node annotation {names.CORDON})",
        Reason.CARD_UUID_MISMATCH: "the pod's annotations leave the card out",
        Reason.CARD_MODE_CONFLICT: f"{held.mode or 'unknown'} slices are there, which {want.use.mode} ones cannot join",
        Reason.CARD_TIME_SLICING_EXHAUSTED: f"all {card.slots} slots are taken",
        Reason.EXCLUSIVE_CONFLICT: f"{held.slots} slice(s) are there, and the pod wants the card alone",
        Reason.CARD_COMPUTE_UNITS_EXHAUSTED: "all compute is given away, so that nothing is left to share",
    }
    missing = [" and ".join(amounts) + " are missing"] if _DISTANCE[reasons[0]] is _Distance.SMALLER_SLICE else []
    return ", and ".join(missing + [texts[reason] for reason in reasons if reason in texts])


def _other_chip(want: Want, card: Card) -> str:
    return f"the chip is {card.chip}, not {want.word}"


def _asked(wanted: SliceRequest) -> str:
    cards = f"{wanted.count} {wanted.chip.common_word} card{'s' if wanted.count > 1 else ''}"
    if wanted.mode is Mode.SOFT:
        return f"{cards} with {wanted.memory_mib} MiB and core {wanted.core_percent}"
    return f"{cards} with template {wanted.template}" if wanted.template else f"{cards}, whole"
