"""Which cards one container takes, where more of them would do than it needs.

Cards come in units: single cards, or the whole modules of two that a super pod (910C) is made of. Units are ordered by
the policy's rank of their cards; the order of equal ones is that of index and UUID, so that the same input gives the
same answer.
"""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from vnpu.cards import NO_USE
from vnpu.fit.laws import obstacle
from vnpu.fit.scores import card_score

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from vnpu.cards import Card, Node, Use
    from vnpu.chips import Chip
    from vnpu.fit.laws import Want
    from vnpu.fit.policy import Policy

    Unit = tuple[Card, ...]

MODULE: Final = 2
"""Cards of a module: those with the indices 2n and 2n + 1."""

_GROUPED: Final = "Ascend910"
"""Chips of this family tell by a network id which cards have a fast connection."""


def usable(want: Want, node: Node, held: Mapping[str, Use]) -> list[Card]:
    """The cards of the node that the container may take, in the node's order."""
    cordoned = node.cordoned
    return [card for card in node.cards if obstacle(want, card, held.get(card.uuid, NO_USE), cordoned) is None]


def enough(want: Want, node: Node, held: Mapping[str, Use]) -> bool:
    """Whether the node has as many cards for the container as it needs."""
    cards = usable(want, node, held)
    return len(modules(cards)) * MODULE >= want.count if want.chip.super_pod else len(cards) >= want.count


def preferred(want: Want, node: Node, held: Mapping[str, Use], policy: Policy) -> tuple[Card, ...]:
    """The cards that the container takes, ``()`` where the node has too few.

    Args:
        want: what it asks for.
        node: the node.
        held: what stands on its cards, by UUID.
        policy: which card goes first.
    """
    units = _units(want, node, held, policy)
    return tuple(chain.from_iterable(_first(want, node, units))) if len(units) >= _needed(want) else ()


def alternatives(want: Want, node: Node, held: Mapping[str, Use], policy: Policy) -> Iterator[tuple[Card, ...]]:
    """Every choice of cards that makes a difference to the containers that follow, the preferred one first.

    Cards of equal size with equal slices on them are interchangeable, so that only how many of each kind are taken
    counts. The preferred choice comes a second time among the others.
    """
    units = _units(want, node, held, policy)
    needed = _needed(want)
    if len(units) < needed:
        return
    yield tuple(chain.from_iterable(_first(want, node, units)))
    kinds: dict[Hashable, list[Unit]] = {}
    for _, unit in units:
        kinds.setdefault(tuple(kind(card, held) for card in unit), []).append(unit)
    alike = list(kinds.values())
    for numbers in _splits([len(units_of_kind) for units_of_kind in alike], needed):
        yield tuple(
            card
            for units_of_kind, number in zip(alike, numbers, strict=True)
            for unit in islice(units_of_kind, number)
            for card in unit
        )


def kind(card: Card, held: Mapping[str, Use]) -> Hashable:
    """What makes two cards of a chip interchangeable for a slice that both may take."""
    return card.memory_mib, card.slots, card.ai_core, card.ai_cpu, held.get(card.uuid, NO_USE)


def grouped(chip: Chip, node: Node) -> bool:
    """Whether the node says of all its cards of the chip which group they belong to."""
    return (
        chip.common_word.startswith(_GROUPED)
        and not chip.super_pod
        and all(card.network_id is not None for card in node.cards if card.chip == chip.common_word)
    )


def modules(cards: Sequence[Card]) -> list[Unit]:
    """The whole modules among the cards, by index."""
    by_index = {card.index: card for card in cards}
    return [
        (by_index[index], by_index[index + 1])
        for index in sorted(by_index)
        if index % MODULE == 0 and index + 1 in by_index
    ]


def _needed(want: Want) -> int:
    return want.count // MODULE if want.chip.super_pod else want.count


def _units(want: Want, node: Node, held: Mapping[str, Use], policy: Policy) -> list[tuple[float, Unit]]:
    """Rank and cards of every unit that the container may take, best first."""
    cards = usable(want, node, held)
    if len(cards) < want.count:
        return []
    units = modules(cards) if want.chip.super_pod else [(card,) for card in cards]
    sign, weights, use = policy.card_sign, policy.weights, want.use
    ranked = [
        (sign * sum(card_score(card, held.get(card.uuid, NO_USE), use, weights) for card in unit), unit)
        for unit in units
    ]
    return sorted(ranked, key=lambda entry: (entry[0], entry[1][0].index, entry[1][0].uuid))


def _first(want: Want, node: Node, ranked: list[tuple[float, Unit]]) -> list[Unit]:
    """The units that the container takes, best first; there are enough.

    Cards in groups: the smallest group that holds the request, so that no bigger one is broken. Where none does, the
    largest is taken whole, and the rest is chosen in the same way again. A single card has nobody to stay together
    with: it follows the policy, and groups decide between equal ranks only.
    """
    needed = _needed(want)
    if not grouped(want.chip, node):
        return [unit for _, unit in ranked[:needed]]
    groups: dict[int | None, list[tuple[float, Unit]]] = {}
    for entry in ranked:
        groups.setdefault(entry[1][0].network_id, []).append(entry)
    if needed == 1:
        best_rank = ranked[0][0]
        best = [group for group in groups.values() if group[0][0] == best_rank]
        return [min(best, key=len)[0][1]]
    waiting = list(groups.values())
    taken: list[Unit] = []
    while needed:
        holding = [group for group in waiting if len(group) >= needed]
        group = min(
            holding or waiting,
            key=lambda group, needed=needed: (  # type: ignore[misc]
                len(group) if holding else -len(group),
                sum(rank for rank, _ in group[:needed]),
            ),
        )
        waiting.remove(group)
        taken += [unit for _, unit in group[:needed]]
        needed -= min(needed, len(group))
    return taken


def _splits(sizes: Sequence[int], total: int) -> Iterator[tuple[int, ...]]:
    """Every way to take ``total`` things from heaps of these sizes, as many as can be from the first heaps first."""
    if not sizes:
        if total == 0:
            yield ()
        return
    rest = sum(sizes[1:])
    for number in range(min(sizes[0], total), max(0, total - rest) - 1, -1):
        for others in _splits(sizes[1:], total - number):
            yield (number, *others)
