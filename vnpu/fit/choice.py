"""Which cards one container takes, where more of them would do than it needs.

Cards come in units: single cards, or the whole modules of two that a super pod (910C) is made of. Units are ordered by
the policy's rank of their cards; the order of equal ones is that of index and UUID, so that the same input gives the
same answer.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

from vnpu.cards import NO_USE
from vnpu.fit.laws import obstacle
from vnpu.fit.scores import card_score, tells_groups

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

    from vnpu.cards import Card, Node, Use
    from vnpu.chips import Chip
    from vnpu.fit.laws import Want
    from vnpu.fit.policy import Policy

    Unit = tuple[Card, ...]
    Ranked = tuple[float, Unit]

MODULE: Final = 2
"""Cards of a module: those with the indices 2n and 2n + 1."""


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
    return _cards(_first(want, node, units)) if len(units) >= _needed(want) else ()


def alternatives(want: Want, node: Node, held: Mapping[str, Use], policy: Policy) -> Iterator[tuple[Card, ...]]:
    """Every choice of cards that makes a difference to the containers that follow, the preferred one first.

    Cards of equal size with equal slices on them are interchangeable, so that only how many of each kind are taken
    counts. Choices within one group of cards come before those that span groups. Some come more than once.
    """
    units = _units(want, node, held, policy)
    needed = _needed(want)
    if len(units) < needed:
        return
    yield _cards(_first(want, node, units))
    groups = _groups(units) if grouped(want.chip, node) else []
    within_groups = sorted(groups, key=len) if len(groups) > 1 else []
    for pool in (*within_groups, units):
        kinds: dict[Hashable, list[Ranked]] = {}
        for entry in pool:
            kinds.setdefault(tuple(kind(card, held) for card in entry[1]), []).append(entry)
        heaps = list(kinds.values())
        for numbers in _splits([len(heap) for heap in heaps], needed):
            yield _cards(chain.from_iterable(heap[:number] for heap, number in zip(heaps, numbers, strict=True)))


def kind(card: Card, held: Mapping[str, Use]) -> Hashable:
    """What makes two cards of a chip interchangeable for a slice that both may take."""
    return card.memory_mib, card.slots, card.ai_core, card.ai_cpu, held.get(card.uuid, NO_USE)


def grouped(chip: Chip, node: Node) -> bool:
    """Whether the node says of all its cards of the chip which group they belong to."""
    return tells_groups(chip) and all(
        card.network_id is not None for card in node.cards if card.chip == chip.common_word
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


def _units(want: Want, node: Node, held: Mapping[str, Use], policy: Policy) -> list[Ranked]:
    """Every unit that the container may take, best first; none where its cards are too few in any case."""
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


def _first(want: Want, node: Node, units: list[Ranked]) -> list[Ranked]:
    """The units that the container takes, of enough ones in their order.

    Cards in groups: the smallest group that holds the request, so that no bigger one is broken. Where none does, the
    largest is taken whole, and the rest is chosen in the same way again. A single card has nobody to stay together
    with: it follows the policy, and groups decide between equal ranks only.
    """
    needed = _needed(want)
    if not grouped(want.chip, node):
        return units[:needed]
    groups = _groups(units)
    if needed == 1:
        best_rank = units[0][0]
        return min((group for group in groups if group[0][0] == best_rank), key=len)[:1]
    taken: list[Ranked] = []
    while len(taken) < needed:
        group = _next_group(groups, needed - len(taken))
        groups.remove(group)
        taken += group[: needed - len(taken)]
    return taken


def _groups(units: Iterable[Ranked]) -> list[list[Ranked]]:
    """The units by network id, the group with the best unit first."""
    groups: dict[int | None, list[Ranked]] = {}
    for entry in units:
        groups.setdefault(entry[1][0].network_id, []).append(entry)
    return list(groups.values())


def _next_group(groups: Sequence[list[Ranked]], needed: int) -> list[Ranked]:
    """The smallest group that holds what is needed, else the largest; of equal ones that with the better cards."""
    holding = [group for group in groups if len(group) >= needed]
    if holding:
        return min(holding, key=lambda group: (len(group), sum(rank for rank, _ in group[:needed])))
    return min(groups, key=lambda group: (-len(group), sum(rank for rank, _ in group)))


def _cards(units: Iterable[Ranked]) -> tuple[Card, ...]:
    return tuple(card for _, unit in units for card in unit)


def _splits(sizes: Sequence[int], total: int) -> Iterator[list[int]]:
    """Every way to take ``total`` things from heaps of these sizes, as many as can be from the first heaps first."""
    if total > sum(sizes):
        return
    numbers = [0] * len(sizes)
    place, left = 0, total
    while True:
        for heap in range(place, len(sizes)):
            numbers[heap] = min(sizes[heap], left)
            left -= numbers[heap]
        yield numbers
        # The last heap that can hand one thing to the heaps after it does so; these are then filled anew.
        room = 0
        for heap in reversed(range(len(sizes))):
            if numbers[heap] and room:
                numbers[heap] -= 1
                place, left = heap + 1, left + 1
                break
            room += sizes[heap] - numbers[heap]
            left += numbers[heap]
        else:
            return
