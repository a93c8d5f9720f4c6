"""Quick proofs that containers find no room on a node, whichever cards each of them takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vnpu.cards import NO_USE, WHOLE_CORE
from vnpu.containers import ContainerKind
from vnpu.fit.choice import enough
from vnpu.fit.laws import obstacle

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from vnpu.cards import Card, Node, Use
    from vnpu.fit.laws import Want

    Amounts = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Rest:
    """Containers that are still to be placed, as far as it takes to see that they find no room.

    Attributes:
        hardest: where each of these finds cards, every one does.
        easiest: a card that takes none of these takes none of those that stay.
        demand: per common word, what all that stay hold together. A plain init container does not stay.
    """

    hardest: Sequence[Want] = ()
    easiest: Sequence[Want] = ()
    demand: Mapping[str, Amounts] = field(default_factory=dict)

    def plus(self, want: Want) -> Rest:
        """These containers and one more."""
        hardest = _joined(self.hardest, want, _needs_more)
        if want.kind is ContainerKind.INIT:
            return Rest(hardest, self.easiest, self.demand)
        own = tuple(want.count * amount for amount in _amounts(want.use))
        total = _sum(self.demand[want.word], own) if want.word in self.demand else own
        return Rest(hardest, _joined(self.easiest, want, _needs_less), {**self.demand, want.word: total})

    def may_fit(self, node: Node, held: Mapping[str, Use]) -> bool:
        """Whether each finds enough cards, and what is left of all cards is enough for all.

        Only cards that take at least one of the containers count: what is left of the others is of no use.

        Args:
            node: the node.
            held: what stands on its cards, by UUID.
        """
        return all(enough(want, node, held) for want in self.hardest) and all(
            all(left >= needed for left, needed in zip(self._left(word, node, held), demand, strict=True))
            for word, demand in self.demand.items()
        )

    def _left(self, word: str, node: Node, held: Mapping[str, Use]) -> Amounts:
        easiest = [want for want in self.easiest if want.word == word]
        total = _amounts(NO_USE)
        for card in node.cards:
            there = held.get(card.uuid, NO_USE)
            if any(obstacle(want, card, there, node.cordoned) is None for want in easiest):
                total = _sum(total, _free(card, there))
        return total


def rests(wants: Sequence[Want]) -> list[Rest]:
    """For each of the containers, itself and all after it."""
    found = [Rest()]
    for want in reversed(wants):
        found.append(found[-1].plus(want))
    return found[:0:-1]


def _joined(wants: Sequence[Want], want: Want, speaks_for: Callable[[Want, Want], bool]) -> Sequence[Want]:
    """The wants and one more, without those for which another one speaks."""
    if any(speaks_for(other, want) for other in wants):
        return wants
    return [want, *(other for other in wants if not speaks_for(want, other))]


def _needs_more(one: Want, other: Want) -> bool:
    """Whether the other finds cards wherever this one does."""
    return _needs_less(other, one) and other.count <= one.count


def _needs_less(one: Want, other: Want) -> bool:
    """Whether every card that takes the other would take this one."""
    return one.word == other.word and all(
        amount <= most for amount, most in zip(_amounts(one.use), _amounts(other.use), strict=True)
    )


def _amounts(use: Use) -> Amounts:
    return use.slots, use.memory_mib, use.core_percent, use.ai_core, use.ai_cpu


def _free(card: Card, held: Use) -> Amounts:
    everything = card.slots, card.memory_mib, WHOLE_CORE, card.ai_core, card.ai_cpu
    return tuple(total - amount for total, amount in zip(everything, _amounts(held), strict=True))


def _sum(one: Amounts, other: Amounts) -> Amounts:
    return tuple(map(sum, zip(one, other, strict=True)))
