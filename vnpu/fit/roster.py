"""The nodes of an index: where each stands, what is held of its cards, and which class it is of at the moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vnpu.cards import NO_USE
from vnpu.fit.classes import Classes, NodeClass
from vnpu.fit.order import Order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from vnpu.cards import Node, Use

_MOST_IDLE: Final = 10_000
"""Classes without members that are remembered: nodes often come back to a state that others were in."""

_NO_CLASS: Final = NodeClass((), 0.0, {})
"""Stands for the class of a node that is just coming."""


class Roster:
    """Nodes at positions, which they keep while they are there, rising in the order in which they came.

    Attributes:
        used: what is held of each card, by UUID; cards of which nothing is held are not there.
        places: the position of each node by its name, in the order of the positions.
        in_groups: whether any card ever told of a group of cards with a fast connection.
        changes: how often anything changed.
        clearances: how often classes without members were dropped, so that nobody else may keep them either.
    """

    def __init__(self, used: Mapping[str, Use]) -> None:
        """Start without nodes.

        Args:
            used: what is held of the cards of nodes that will come.
        """
        self.used = dict(used)
        self.places: dict[str, int] = {}
        self.in_groups = False
        self.changes = 0
        self.clearances = 0
        self._nodes: list[Node | None] = []
        self._class: list[NodeClass] = []
        self._homes: dict[str, tuple[int, ...]] = {}
        self._classes = Classes()
        self._orders: dict[int, Order] = {}
        self._snapshot: Mapping[str, int] | None = None

    def __len__(self) -> int:
        """How many positions there are, those without a node too."""
        return len(self._nodes)

    def __iter__(self) -> Iterator[Node]:
        """The nodes in their order."""
        return (node for node in self._nodes if node is not None)

    def at(self, position: int) -> Node:
        """The node that stands there."""
        node = self._nodes[position]
        assert node is not None
        return node

    def class_at(self, position: int) -> NodeClass:
        """The class of the node that stands there."""
        return self._class[position]

    def homes(self, uuids: Iterable[str]) -> set[int]:
        """The positions of the nodes that have one of these cards."""
        return {position for uuid in uuids for position in self._homes.get(uuid, ())}

    def alike(self, apart: AbstractSet[int]) -> Iterator[list[int]]:
        """The positions of all nodes: of a class together in rising order, but those ``apart`` each for itself."""
        yield from ([position] for position in apart)
        for one in self._classes:
            members = [position for position in one.members if position not in apart] if apart else one.members
            if members:
                yield members

    def order(self, sign: int) -> Order:
        """The classes by load times ``sign``."""
        if sign not in self._orders:
            self._orders[sign] = Order(sign, self._classes)
        return self._orders[sign]

    def snapshot(self) -> Mapping[str, int]:
        """The places as they are now, whatever happens later."""
        if self._snapshot is None:
            self._snapshot = dict(self.places)
        return self._snapshot

    def enter(self, node: Node) -> None:
        """Put a node with a new name behind the others."""
        position = self.places[node.name] = len(self._nodes)
        self._nodes.append(node)
        self._class.append(_NO_CLASS)
        self._snapshot = None
        self._settle(node, position)
        self._join(position)

    def replace(self, node: Node) -> None:
        """Put a node in the place of the one that has its name."""
        position = self.places[node.name]
        before = self.at(position)
        if before == node:
            return
        self._leave(position)
        self._unsettle(before, position)
        self._nodes[position] = node
        self._settle(node, position)
        self._drop_uses(before)
        self._join(position)

    def remove(self, name: str) -> None:
        """Take a node out, and what is held of its cards."""
        position = self.places.pop(name)
        node = self.at(position)
        self._leave(position)
        self._unsettle(node, position)
        self._nodes[position] = None
        self._drop_uses(node)
        self._snapshot = None
        self.changes += 1

    def change(self, uses: Mapping[str, Use]) -> None:
        """Say what is held of these cards from now on."""
        changed = [uuid for uuid, use in uses.items() if use != self.used.get(uuid, NO_USE)]
        for uuid in changed:
            if uses[uuid] == NO_USE:
                del self.used[uuid]
            else:
                self.used[uuid] = uses[uuid]
        for position in self.homes(changed):
            self._leave(position)
            self._join(position)

    def _settle(self, node: Node, position: int) -> None:
        self.in_groups = self.in_groups or any(card.network_id is not None for card in node.cards)
        for card in node.cards:
            self._homes[card.uuid] = (*self._homes.get(card.uuid, ()), position)

    def _unsettle(self, node: Node, position: int) -> None:
        for card in node.cards:
            left = tuple(home for home in self._homes[card.uuid] if home != position)
            if left:
                self._homes[card.uuid] = left
            else:
                del self._homes[card.uuid]

    def _drop_uses(self, before: Node) -> None:
        for card in before.cards:
            if card.uuid not in self._homes:
                self.used.pop(card.uuid, None)

    def _leave(self, position: int) -> None:
        one = self._class[position]
        orders = self._orders.values() if one.members[0] == position else ()
        for order in orders:
            order.discard(one)
        one.leave(position)
        if one.members:
            for order in orders:
                order.add(one)

    def _join(self, position: int) -> None:
        node = self.at(position)
        states = tuple(
            self._classes.state(card, self.used.get(card.uuid, NO_USE), cordoned=card.uuid in node.cordoned)
            for card in node.cards
        )
        one = self._class[position] = self._classes.of(node, self.used, states)
        first = not one.members or position < one.members[0]
        orders = self._orders.values() if first else ()
        if one.members:
            for order in orders:
                order.discard(one)
        one.join(position)
        for order in orders:
            order.add(one)
        self.changes += 1
        if len(self._classes) > len(self._nodes) + _MOST_IDLE:
            self._classes.forget()
            self.clearances += 1
