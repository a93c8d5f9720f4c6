"""Cards for all containers of a pod together.

Containers may share cards, and each takes the cards it prefers. Where that leaves a later one without, the others
are tried: a pod is refused only when no choice of cards holds it. The search never meets a state of the cards twice,
and cards that are alike count once, so that it is short for real pods; a bound keeps hand-made riddles from taking the
scheduler's time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vnpu.cards import NO_USE
from vnpu.containers import ContainerKind
from vnpu.fit.choice import MODULE, alternatives, enough, kind, preferred

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from vnpu.cards import Card, Node, Use
    from vnpu.fit.laws import Want
    from vnpu.fit.policy import Policy

    Cards = tuple[Card, ...]
    Held = dict[str, Use]

MOST_TRIES: Final = 2_000
"""Choices of cards that one search looks at (a fifth of a second); beyond it the pod counts as not fitting.

Enough to be exact for six containers on eight cards that all differ.
"""


@dataclass(frozen=True, slots=True)
class DeadEnd:
    """Where the way of preferred cards ended.

    Attributes:
        want: the container that found too few cards.
        held: what stood on the cards then, by UUID: the slices of others and of the pod's containers before it.
    """

    want: Want
    held: Mapping[str, Use]


def arrange(wants: Sequence[Want], node: Node, used: Mapping[str, Use], policy: Policy) -> tuple[Cards, ...] | DeadEnd:
    """The cards of each container, in the order of the containers, or where the search ended.

    Args:
        wants: what the containers ask for, in the order of the pod, at least one.
        node: the node.
        used: what others hold, by UUID.
        policy: which card goes first.
    """
    if len(wants) == 1:
        cards = preferred(wants[0], node, used, policy)
        return (cards,) if cards else DeadEnd(wants[0], used)
    return _Search(wants, node, used, policy).run()


class _Search:
    """Depth first, container by container, the preferred cards first."""

    def __init__(self, wants: Sequence[Want], node: Node, used: Mapping[str, Use], policy: Policy) -> None:
        self._wants = wants
        self._still_to_come = _from_each_on(wants)
        self._node = node
        self._policy = policy
        self._words = dict.fromkeys(want.word for want in wants)
        self._in_modules = {want.word for want in wants if want.chip.super_pod}
        # What runs beside the container in question: slices of others, sidecars and apps before it.
        self._held = {card.uuid: used[card.uuid] for card in node.cards if card.uuid in used}
        self._seen: set[Hashable] = set()
        self._end: DeadEnd | None = None

    def run(self) -> tuple[Cards, ...] | DeadEnd:
        ways = [self._ways(0)] if self._hopeful(0) else []
        taken: list[tuple[Cards, Held]] = []
        for _ in range(MOST_TRIES + len(self._wants)):
            while ways and (cards := next(ways[-1], None)) is None:
                ways.pop()
                if taken:
                    self._held.update(taken.pop()[1])
            if not ways:
                break
            assert cards is not None
            taken.append((cards, self._take(self._wants[len(taken)], cards)))
            if len(taken) == len(self._wants):
                return tuple(cards for cards, _ in taken)
            if self._hopeful(len(taken)):
                ways.append(self._ways(len(taken)))
            else:
                self._held.update(taken.pop()[1])
        assert self._end is not None, "the way of preferred cards ends within the first tries"
        return self._end

    def _ways(self, position: int) -> Iterator[Cards]:
        return alternatives(self._wants[position], self._node, self._held, self._policy)

    def _take(self, want: Want, cards: Cards) -> Held:
        """Puts the slice on its cards; what stood there before. A plain init container is gone when the next starts."""
        before = {card.uuid: self._held.get(card.uuid, NO_USE) for card in cards}
        if want.kind is not ContainerKind.INIT:
            self._held.update({uuid: held.plus(want.use) for uuid, held in before.items()})
        return before

    def _hopeful(self, position: int) -> bool:
        """Whether the cards are in a state not met before, and each container from ``position`` on finds enough."""
        state = self._state(position)
        if state in self._seen:
            return False
        self._seen.add(state)
        for want in self._still_to_come[position]:
            if not enough(want, self._node, self._held):
                self._end = self._end or DeadEnd(want, dict(self._held))
                return False
        return True

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


def _from_each_on(wants: Sequence[Want]) -> list[list[Want]]:
    """For each position, the wants from there on, of equal ones the first: one that finds no card speaks for all."""
    found: list[list[Want]] = []
    later: list[Want] = []
    for want in reversed(wants):
        asked = want.chip, want.count, want.use
        later = [want, *(other for other in later if (other.chip, other.count, other.use) != asked)]
        found.append(later)
    return found[::-1]
