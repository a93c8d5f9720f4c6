"""One kind of pod before all kinds of nodes: each class of nodes is judged once, and each state of a card."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vnpu.fit.choice import enough
from vnpu.fit.classes import needs
from vnpu.fit.laws import obstacle
from vnpu.fit.misses import card_miss, tally_cards
from vnpu.fit.place import most_connection
from vnpu.fit.rules import node_obstacle, tally, told_miss
from vnpu.fit.scores import connection
from vnpu.fit.search import DeadEnd, arrange

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vnpu.cards import Card, Node, Use
    from vnpu.fit.classes import CardState, NodeClass
    from vnpu.fit.misses import Miss, Tally
    from vnpu.fit.rules import Task

    Positions = tuple[tuple[int, ...], ...]


class Judge:
    """Pods that differ in nothing but their names, before classes of nodes.

    A class is given with one of its nodes, none of whose cards is listed, and what is held of its cards, by UUID.

    Attributes:
        task: one of the pods.
        needs: what a class must have left for each of its containers.
        listed: UUIDs that the pods name: the nodes of these cards are no part of what is judged here.
        listed_only: whether only these cards will do.
        most_connection: what good connections may count for a node at most.
    """

    def __init__(self, task: Task) -> None:
        """Start with nothing judged."""
        self.task = task
        self.needs = needs(task)
        self.listed = frozenset[str]().union(*(want.choice.use | want.choice.no_use for want in task.wants))
        self.listed_only = any(want.choice.use for want in task.wants)
        self.most_connection = most_connection(task)
        self._takes: list[dict[CardState, bool]] = [{} for _ in task.wants]
        self._misses: list[dict[CardState, Miss | None]] = [{} for _ in task.wants]
        self._holds: dict[NodeClass, bool] = {}
        self._tallies: dict[NodeClass, Tally] = {}
        self._positions: dict[NodeClass, Positions] = {}
        self._connections: dict[NodeClass, float] = {}

    def __len__(self) -> int:
        """How many verdicts there are."""
        return len(self._holds) + len(self._tallies)

    def holds(self, one: NodeClass, node: Node, used: Mapping[str, Use]) -> bool:
        """Whether the nodes of the class hold the pod."""
        verdict = self._holds.get(one)
        if verdict is None:
            verdict = self._holds[one] = self._held(one, node, used)
        return verdict

    def refusal(self, one: NodeClass, node: Node, used: Mapping[str, Use]) -> Tally:
        """Why the nodes of a class that does not hold the pod do not."""
        found = self._tallies.get(one)
        if found is None:
            found = self._tallies[one] = self._tally(one, node, used)
        return found

    def cards(self, one: NodeClass, node: Node, used: Mapping[str, Use]) -> list[list[Card]]:
        """The node's cards for each container that asks for some, in a class that holds the pod."""
        positions = self._positions.get(one)
        if positions is None:
            found = self._arranged(one, node, used)
            assert not isinstance(found, DeadEnd)
            positions = self._positions[one]
        return [[node.cards[position] for position in each] for each in positions]

    def connection(self, one: NodeClass, node: Node, used: Mapping[str, Use]) -> float:
        """How well the cards of each container are connected, together, in a class that holds the pod."""
        if not self.most_connection:
            return 0.0
        found = self._connections.get(one)
        if found is None:
            pairs = zip(self.task.wants, self.cards(one, node, used), strict=True)
            found = self._connections[one] = sum(connection(want.chip, cards) for want, cards in pairs)
        return found

    def _held(self, one: NodeClass, node: Node, used: Mapping[str, Use]) -> bool:
        if node_obstacle(self.task, node, used) is not None or self._short(one, node, used) is not None:
            return False
        return len(self.task.wants) == 1 or not isinstance(self._arranged(one, node, used), DeadEnd)

    def _tally(self, one: NodeClass, node: Node, used: Mapping[str, Use]) -> Tally:
        wants = self.task.wants
        miss = node_obstacle(self.task, node, used) or self._short(one, node, used) or self._arranged(one, node, used)
        assert not isinstance(miss, tuple)
        told = told_miss(self.task, node, used, miss)
        if not isinstance(told, DeadEnd) or told.held is not used:
            return tally(self.task, node, used, told)
        place = wants.index(told.want)
        known = self._misses[place]
        for state in one.states:
            if state not in known:
                known[state] = card_miss(wants[place], state.card, state.held, state.cordoned)
        return tally_cards(told.want, [known[state] for state in one.states])

    def _short(self, one: NodeClass, node: Node, used: Mapping[str, Use]) -> DeadEnd | None:
        """The first container for which there are too few cards, whatever the others take."""
        for want, known in zip(self.task.wants, self._takes, strict=True):
            for state in one.states:
                if state not in known:
                    known[state] = obstacle(want, state.card, state.held, state.cordoned) is None
            fitting = sum([known[state] for state in one.states])
            if fitting < want.count or (want.chip.super_pod and not enough(want, node, used)):
                return DeadEnd(want, used)
        return None

    def _arranged(self, one: NodeClass, node: Node, used: Mapping[str, Use]) -> tuple[tuple[Card, ...], ...] | DeadEnd:
        """The cards of each container, kept for the other nodes of the class."""
        found = arrange(self.task.wants, node, used, self.task.policy)
        if not isinstance(found, DeadEnd):
            places = {card.uuid: position for position, card in enumerate(node.cards)}
            self._positions[one] = tuple(tuple(places[card.uuid] for card in cards) for cards in found)
        return found
