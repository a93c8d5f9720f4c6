"""One kind of pod before all kinds of nodes: each class of nodes is judged once, and each state of a card."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vnpu.fit.answers import Reason
from vnpu.fit.choice import enough
from vnpu.fit.classes import needs
from vnpu.fit.laws import obstacle
from vnpu.fit.misses import miss_for, tally_cards
from vnpu.fit.place import most_connection
from vnpu.fit.rules import node_obstacle, tally
from vnpu.fit.scores import connection
from vnpu.fit.search import DeadEnd, arrange

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vnpu.cards import Card, Node, Use
    from vnpu.fit.classes import CardState, NodeClass
    from vnpu.fit.misses import Miss, Tally
    from vnpu.fit.rules import Task

    Positions = tuple[tuple[int, ...], ...]

_TOGETHER: Final = -1
"""In the place of a container: each finds cards by itself, and not all together."""


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
        self._against: list[dict[CardState, Reason | None]] = [{} for _ in task.wants]
        self._misses: list[dict[CardState, Miss | None]] = [{} for _ in task.wants]
        self._missed: dict[NodeClass, Reason | int | None] = {}
        self._tallies: dict[NodeClass, Tally] = {}
        self._positions: dict[NodeClass, Positions] = {}
        self._connections: dict[NodeClass, float] = {}

    def __len__(self) -> int:
        """How many verdicts there are."""
        return len(self._missed) + len(self._tallies)

    def holds(self, one: NodeClass, node: Node, used: Mapping[str, Use]) -> bool:
        """Whether the nodes of the class hold the pod."""
        if one not in self._missed:
            self._missed[one] = self._try(one, node, used)
        return self._missed[one] is None

    def refusal(self, one: NodeClass, node: Node, used: Mapping[str, Use]) -> Tally:
        """Why the nodes of a class do not hold the pod, once :meth:`holds` said so."""
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

    def _try(self, one: NodeClass, node: Node, used: Mapping[str, Use]) -> Reason | int | None:
        """What keeps the pod from the node: something about it, or the place of the container that finds no cards.

        None where nothing does.
        """
        obstacle_of_all = node_obstacle(self.task, node, used)
        if obstacle_of_all is not None:
            return obstacle_of_all
        for place, want in enumerate(self.task.wants):
            fitting = self._reasons(place, one).count(None)
            if fitting < want.count or (want.chip.super_pod and not enough(want, node, used)):
                return place
        if len(self.task.wants) > 1 and isinstance(self._arranged(one, node, used), DeadEnd):
            return _TOGETHER
        return None

    def _tally(self, one: NodeClass, node: Node, used: Mapping[str, Use]) -> Tally:
        miss = self._missed[one]
        if isinstance(miss, Reason) or miss == _TOGETHER:
            end = miss if isinstance(miss, Reason) else self._arranged(one, node, used)
            assert not isinstance(end, tuple)
            return tally(self.task, node, used, end)
        assert miss is not None
        want, known = self.task.wants[miss], self._misses[miss]
        for state, reason in zip(one.states, self._reasons(miss, one), strict=True):
            if state not in known:
                known[state] = None if reason is None else miss_for(reason, want, state.card, state.held)
        return tally_cards(want, [known[state] for state in one.states])

    def _reasons(self, place: int, one: NodeClass) -> list[Reason | None]:
        """What speaks against each card, for the container at that place."""
        want, known = self.task.wants[place], self._against[place]
        for state in one.states:
            if state not in known:
                known[state] = obstacle(want, state.card, state.held, state.cordoned)
        return [known[state] for state in one.states]

    def _arranged(self, one: NodeClass, node: Node, used: Mapping[str, Use]) -> tuple[tuple[Card, ...], ...] | DeadEnd:
        """The cards of each container, kept for the other nodes of the class."""
        found = arrange(self.task.wants, node, used, self.task.policy)
        if not isinstance(found, DeadEnd):
            places = {card.uuid: position for position, card in enumerate(node.cards)}
            self._positions[one] = tuple(tuple(places[card.uuid] for card in cards) for cards in found)
        return found
