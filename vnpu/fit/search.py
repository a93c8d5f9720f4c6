"""Cards for all containers of a pod together.

Containers may share cards, and each takes the cards it prefers, in the order of the pod. Where that leaves a later one
without, other choices are searched: a pod is refused only when no choice of cards holds it. The search goes by size,
never meets a state of the cards twice, turns back as soon as what is left cannot be enough, and takes cards that are
alike for one, so that it is short for real pods; a bound keeps hand-made riddles from taking the scheduler's time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import chain, groupby
from typing import TYPE_CHECKING, Final

from vnpu.cards import NO_USE, WHOLE_CORE
from vnpu.containers import ContainerKind
from vnpu.fit.bounds import rests
from vnpu.fit.choice import MODULE, alternatives, enough, kind, preferred

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from vnpu.cards import Card, Node, Use
    from vnpu.fit.laws import Want
    from vnpu.fit.policy import Policy

    Cards = tuple[Card, ...]
    Held = dict[str, Use]

MOST_TRIES: Final = 500
"""Choices of cards that one search looks at (some hundredths of a second); then it is given up.

Enough to be exact for eight containers on eight cards that all differ. Of more containers, only such are given up as
would leave next to nothing of the cards.
"""


@dataclass(frozen=True, slots=True)
class DeadEnd:
    """Where the way of preferred cards ended, on a node where no other way was found either.

    Attributes:
        want: the container that found too few cards.
        held: what stood on the cards then, by UUID: the slices of others and of the pod's containers before it.
        given_up: whether there may be another way: the search was given up before all were tried.
    """

    want: Want
    held: Mapping[str, Use]
    given_up: bool = False


def arrange(wants: Sequence[Want], node: Node, used: Mapping[str, Use], policy: Policy) -> tuple[Cards, ...] | DeadEnd:
    """The cards of each container, in the order of the containers, or where the way of preferred cards ended.

    Args:
        wants: what the containers ask for, in the order of the pod, at least one.
        node: the node.
        used: what others hold, by UUID.
        policy: which card goes first.
    """
    found = _preferred_way(wants, node, used, policy)
    if not isinstance(found, DeadEnd) or len(wants) == 1:
        return found
    for want in wants:
        if not enough(want, node, used):
            return DeadEnd(want, used)
    search = _Search(wants, node, used, policy)
    return search.run() or replace(found, given_up=search.given_up)


def _preferred_way(
    wants: Sequence[Want], node: Node, used: Mapping[str, Use], policy: Policy
) -> tuple[Cards, ...] | DeadEnd:
    held = _on(node, used)
    taken = []
    for want in wants:
        cards = preferred(want, node, held, policy)
        if not cards:
            return DeadEnd(want, held)
        taken.append(cards)
        _put(want, cards, held)
    return tuple(taken)


class _Search:
    """Depth first, container by container, the preferred cards first."""

    def __init__(self, wants: Sequence[Want], node: Node, used: Mapping[str, Use], policy: Policy) -> None:
        self.given_up = False
        self._order = _order(wants)
        self._wants = [wants[position] for position in self._order]
        self._rests = rests(self._wants)
        self._node = node
        self._policy = policy
        self._words = dict.fromkeys(want.word for want in wants)
        self._in_modules = {want.word for want in wants if want.chip.super_pod}
        # What runs beside the container in question: slices of others, sidecars and apps before it.
        self._held = _on(node, used)
        self._seen: set[Hashable] = set()

    def run(self) -> tuple[Cards, ...] | None:
        """The cards of each container, None where no way was found."""
        ways = [self._ways(0)] if self._hopeful(0) else []
        taken: list[tuple[Cards, Held]] = []
        for _ in range(MOST_TRIES + len(self._wants)):
            while ways and (cards := next(ways[-1], None)) is None:
                ways.pop()
                if taken:
                    self._held.update(taken.pop()[1])
            if not ways:
                return None
            assert cards is not None
            taken.append((cards, _put(self._wants[len(taken)], cards, self._held)))
            if len(taken) == len(self._wants):
                found = dict(zip(self._order, (cards for cards, _ in taken), strict=True))
                return tuple(found[position] for position in range(len(found)))
            if self._hopeful(len(taken)):
                ways.append(self._ways(len(taken)))
            else:
                self._held.update(taken.pop()[1])
        self.given_up = True
        return None

    def _ways(self, position: int) -> Iterator[Cards]:
        return alternatives(self._wants[position], self._node, self._held, self._policy)

    def _hopeful(self, position: int) -> bool:
        """Whether the cards are in a state not met before, with room for the containers from ``position`` on."""
        state = self._state(position)
        if state in self._seen:
            return False
        self._seen.add(state)
        return self._rests[position].may_fit(self._node, self._held)

    def _state(self, position: int) -> Hashable:
        """What the rest of the pod depends on: how many cards, or modules, of each kind there are."""
        kinds: Counter[Hashable] = Counter()
        for word in self._words:
            cards = [card for card in self._node.cards if card.chip == word]
            if word in self._in_modules:
                pairs: dict[int, list[Hashable]] = {}
                for card in cards:
                    pairs.setdefault(card.index // MODULE, []).append((card.index % MODULE, kind(card, self._held)))
                kinds.update((word, frozenset(pair)) for pair in pairs.values())
            else:
                kinds.update((word, kind(card, self._held)) for card in cards)
        return position, frozenset(kinds.items())


def _on(node: Node, used: Mapping[str, Use]) -> Held:
    """What is held of the node's cards."""
    return {card.uuid: used[card.uuid] for card in node.cards if card.uuid in used}


def _put(want: Want, cards: Cards, held: Held) -> Held:
    """Puts the slice on its cards; what stood there before. A plain init container is gone when the next starts."""
    before = {card.uuid: held.get(card.uuid, NO_USE) for card in cards}
    if want.kind is not ContainerKind.INIT:
        held.update({uuid: there.plus(want.use) for uuid, there in before.items()})
    return before


def _order(wants: Sequence[Want]) -> list[int]:
    """The positions of the containers, in runs whose order does not matter those that need most first.

    It matters to an init container which sidecars come before it, and to a slice without core whether it comes before
    the card is full.
    """

    def run(position: int) -> tuple[bool, bool]:
        want = wants[position]
        return want.kind is ContainerKind.INIT, want.use.core_percent == 0

    def need(position: int) -> float:
        want = wants[position]
        return want.use.memory_mib / want.chip.memory_allocatable_mib + want.use.core_percent / WHOLE_CORE

    runs = groupby(range(len(wants)), run)
    return list(chain.from_iterable(sorted(positions, key=need, reverse=True) for _, positions in runs))
