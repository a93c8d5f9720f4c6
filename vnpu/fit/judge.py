"""One kind of pod before all kinds of nodes: each class of nodes is judged once, and each state of a card."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vnpu.fit.choice import enough
from vnpu.fit.classes import needs
from vnpu.fit.misses import card_miss, tally_cards
from vnpu.fit.rules import node_obstacle, tally, told_miss
from vnpu.fit.search import DeadEnd, arrange

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vnpu.cards import Card, Node, Use
    from vnpu.fit.classes import CardState, NodeClass
    from vnpu.fit.laws import Want
    from vnpu.fit.misses import Miss, Tally
    from vnpu.fit.rules import Task

    Positions = tuple[tuple[int, ...], ...]


class Judge:
    """Pods that differ in nothing but their names, before classes of nodes.

    Attributes:
        task: one of the pods.
        needs: what a class must have left for each of its containers.
        listed: UUIDs that the pods name: the nodes of these cards are no part of what is judged here.
        listed_only: whether only these cards will do.
    """

    def __init__(self, task: Task) -> None:
        """Start with nothing judged."""
        self.task = task
        self.needs = needs(task)
        self.listed = frozenset[str]().union(*(want.choice.use | want.choice.no_use for want in task.wants))
        self.listed_only = any(want.choice.use for want in task.wants)
        self._misses: list[dict[CardState, Miss | None]] = [{} for _ in task.wants]
        self._tallies: dict[NodeClass, Tally | None] = {}
        self._positions: dict[NodeClass, Positions] = {}

    def __len__(self) -> int:
        """How many classes were judged."""
        return len(self._tallies)

    def refusal(self, one: NodeClass, node: Node, used: Mapping[str, Use]) -> Tally | None:
        """Why the nodes of the class do not hold the pod, None where they do.

        Args:
            one: the class.
            node: a node of the class, none of whose cards is listed.
            used: what is held of its cards, by UUID.
        """
        if one in self._tallies:
            return self._tallies[one]
        tally = self._tallies[one] = self._judged(one, node, used)
        return tally

    def cards(self, one: NodeClass, node: Node, used: Mapping[str, Use]) -> list[list[Card]]:
        """The node's cards for each container that asks for some, in a class that holds the pod."""
        positions = self._positions.get(one)
        if positions is None:
            found = arrange(self.task.wants, node, used, self.task.policy)
            assert not isinstance(found, DeadEnd)
            positions = self._keep(one, node, found)
        return [[node.cards[position] for position in each] for each in positions]

    def _judged(self, one: NodeClass, node: Node, used: Mapping[str, Use]) -> Tally | None:
        wants = self.task.wants
        miss = node_obstacle(self.task, node, used) or self._too_few(one, node, used)
        if miss is None and len(wants) > 1:
            found = arrange(wants, node, used, self.task.policy)
            if isinstance(found, DeadEnd):
                miss = found
            else:
                self._keep(one, node, found)
        if miss is None:
            return None
        told = told_miss(self.task, node, used, miss)
        if isinstance(told, DeadEnd) and told.held is used:
            return tally_cards(told.want, self._misses_on(wants.index(told.want), one))
        return tally(self.task, node, used, told)

    def _too_few(self, one: NodeClass, node: Node, used: Mapping[str, Use]) -> DeadEnd | None:
        """The first container for which there are too few cards, whatever the others take."""
        for place, want in enumerate(self.task.wants):
            fitting = self._misses_on(place, one).count(None)
            if fitting < want.count or (want.chip.super_pod and not enough(want, node, used)):
                return DeadEnd(want, used)
        return None

    def _misses_on(self, place: int, one: NodeClass) -> Sequence[Miss | None]:
        known = self._misses[place]
        for state in one.states:
            if state not in known:
                known[state] = self._miss(self.task.wants[place], state)
        return [known[state] for state in one.states]

    @staticmethod
    def _miss(want: Want, state: CardState) -> Miss | None:
        return card_miss(want, state.card, state.held, state.cordoned)

    def _keep(self, one: NodeClass, node: Node, found: Sequence[Sequence[Card]]) -> Positions:
        places = {card.uuid: position for position, card in enumerate(node.cards)}
        positions = self._positions[one] = tuple(tuple(places[card.uuid] for card in cards) for cards in found)
        return positions
