"""Refusals: reasons counted for machines, and sentences for people that name the nearest miss."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vnpu import names
from vnpu.annotations.policies import NodePolicy
from vnpu.cards import NO_USE
from vnpu.errors import bare
from vnpu.fit.answers import CardVerdict, NodeRefusal, Reason
from vnpu.fit.misses import DISTANCE, Distance, card_miss, shortages, tally_cards, tally_node
from vnpu.mode import Mode

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from vnpu.cards import Card, Node, Use
    from vnpu.fit.laws import Want
    from vnpu.fit.misses import Miss, Tally
    from vnpu.fit.search import DeadEnd
    from vnpu.request import PodRequest, SliceRequest


def refuse_node(node: Node, reason: Reason, terms: Hashable) -> NodeRefusal:
    """The refusal of a node whose cards need not be looked at, by a pod of these terms."""
    return _refusal(node, tally_node(reason, len(node.cards)), _node_detail(node, reason, terms))


def refuse_cards(node: Node, end: DeadEnd, *, several_containers: bool) -> NodeRefusal:
    """The refusal of a node whose cards do not hold the pod, told for the container at which the search ended.

    Args:
        node: the node.
        end: where the search ended.
        several_containers: whether the sentence must say which container it is about.
    """
    misses = _misses(node, end)
    tally = tally_cards(end.want, misses, given_up=end.given_up)
    whom = f" for {end.want.container}" if several_containers else ""
    return _refusal(node, tally, _cards_message(node, end, misses, whom))


def _cards_message(node: Node, end: DeadEnd, misses: Sequence[Miss | None], whom: str) -> str:
    want = end.want
    refused = [(miss, card) for miss, card in zip(misses, node.cards, strict=True) if miss is not None]
    of_chip = sum(card.chip == want.word for card in node.cards)
    fitting = len(node.cards) - len(refused)
    if of_chip < want.count:
        has = f"only {of_chip} of {want.count} {want.word} cards" if of_chip else f"no {want.word} card"
        return f"{node.name} has {has}{whom}"
    if end.given_up:
        return (
            f"{node.name} has room for each container and for all together, but the search for cards that hold them "
            "all was cut short: with fewer containers, or the same in another order, the pod may fit"
        )
    if fitting >= want.count:
        return f"on {node.name} {fitting} cards would do{whom}, but too few of them form whole modules (2n, 2n + 1)"
    miss, best = min(refused, key=lambda one: (one[0].distance, one[0].shortfall, one[1].index, one[1].uuid))
    detail = _detail(want, best, end.held.get(best.uuid, NO_USE), miss.reasons)
    message = f"on the best card ({node.name} card {best.index}) {detail}{whom}"
    return f"{node.name} has {fitting} of {want.count} cards, and {message}" if want.count > 1 else message


def verdicts(node: Node, end: DeadEnd) -> tuple[CardVerdict, ...]:
    """Card by card, what speaks against the container at which the search ended."""
    want = end.want
    return tuple(
        CardVerdict(want.container, card, None, "")
        if miss is None
        else CardVerdict(
            want.container, card, miss.reasons[0], _detail(want, card, end.held.get(card.uuid, NO_USE), miss.reasons)
        )
        for miss, card in zip(_misses(node, end), node.cards, strict=True)
    )


def node_verdicts(node: Node, want: Want, reason: Reason, terms: Hashable) -> tuple[CardVerdict, ...]:
    """The same where the whole node is refused. A card of another chip is told so: no remedy for the node helps it."""
    return tuple(
        CardVerdict(want.container, card, reason, _node_detail(node, reason, terms))
        if card.chip == want.word
        else CardVerdict(want.container, card, Reason.CARD_TYPE_MISMATCH, _other_chip(want, card))
        for card in node.cards
    )


def asked_for(request: PodRequest) -> str:
    """What each container of the pod asks for."""
    return ", ".join(
        f"{bare(container.name) or 'a container'} asks for {_asked(container.slice)}"
        for container in request.containers
        if container.slice is not None
    )


def unplaced_message(request: PodRequest, refusals: Sequence[NodeRefusal]) -> str:
    """Why no node holds the pod: what it asks for, and what is missing where it comes nearest."""
    asked = asked_for(request)
    if not refusals:
        return f"there is no node: {asked}"
    nearest = min(refusals, key=lambda refusal: refusal.distance)
    verdict = "no node was found for it" if nearest.distance[0] == Distance.OTHER_ORDER else "no node holds it"
    return f"{verdict}: {asked}; {nearest.message}"


def _refusal(node: Node, tally: Tally, message: str) -> NodeRefusal:
    return NodeRefusal(node.name, tally.reasons, tally.total, tally.text, message, tally.distance)


def _node_detail(node: Node, reason: Reason, terms: Hashable) -> str:
    if reason is Reason.NODE_UNSAFE:
        return f"{node.name} is unsafe for new slices: {node.unsafe}"
    if reason is Reason.NODE_NOT_ELIGIBLE:
        return f"{node.name} is not for this pod: {node.closed_to[terms]}"
    if reason is Reason.EXCLUSIVE_CONFLICT:
        return f"{node.name} has cards of the pod's chips in use, and node policy {NodePolicy.MUTEX} takes no such node"
    why = node.hard_because or f'its annotation {names.SOFT_NODE} is not the text "true"'
    return f"{node.name} takes no soft slices: {why}"


def _misses(node: Node, end: DeadEnd) -> list[Miss | None]:
    """What speaks against each card, in the node's order."""
    return [card_miss(end.want, card, end.held.get(card.uuid, NO_USE), node.cordoned) for card in node.cards]


def _detail(want: Want, card: Card, held: Use, reasons: Sequence[Reason]) -> str:
    slots = "its only slot is" if card.slots == 1 else f"all {card.slots} slots are"
    there = "1 slice is" if held.slots == 1 else f"{held.slots} slices are"
    texts = {
        Reason.CARD_TYPE_MISMATCH: _other_chip(want, card),
        Reason.CARD_NOT_HEALTH: "the device plugin reports a fault",
        Reason.CARD_CORDONED: f"new slices are off (node annotation {names.CORDON})",
        Reason.CARD_UUID_MISMATCH: _left_out(want, card),
        Reason.CARD_MODE_CONFLICT: f"{held.mode or 'unknown'} slices are there, which {want.use.mode} ones cannot join",
        Reason.CARD_TIME_SLICING_EXHAUSTED: f"{slots} taken",
        Reason.EXCLUSIVE_CONFLICT: f"{there} there, and the pod wants the card alone",
        Reason.CARD_COMPUTE_UNITS_EXHAUSTED: "all compute is given away, so that nothing is left to share",
    }
    missing = [_missing(want, card, held)] if DISTANCE[reasons[0]] is Distance.SMALLER_SLICE else []
    return ", and ".join(missing + [texts[reason] for reason in reasons if reason in texts])


def _missing(want: Want, card: Card, held: Use) -> str:
    amounts = " and ".join(f"{missing} {unit}" for missing, _, unit in shortages(want, card, held))
    never = f" (of {card.memory_mib} MiB in all)" if want.use.memory_mib > card.memory_mib else ""
    return f"{amounts} are missing{never}"


def _left_out(want: Want, card: Card) -> str:
    if card.uuid in want.choice.no_use:
        return f"the pod's annotation {names.no_use_uuid(want.word)} names the card"
    return f"the pod's annotation {names.use_uuid(want.word)} does not name the card"


def _other_chip(want: Want, card: Card) -> str:
    return f"the chip is {card.chip}, not {want.word}"


def _asked(wanted: SliceRequest) -> str:
    cards = f"{wanted.count} {wanted.chip.common_word} card{'s' if wanted.count > 1 else ''}"
    if wanted.mode is Mode.SOFT:
        return f"{cards} with {wanted.memory_mib} MiB and core {wanted.core_percent}"
    return f"{cards} with template {wanted.template}" if wanted.template else f"{cards}, whole"
