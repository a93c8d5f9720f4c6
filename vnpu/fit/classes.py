"""Nodes that look alike to every pod, so that one of them is judged for all.

A node's class is all that laws and scores look at: everything but the names of the node and its cards. Pods that name
cards by UUID are the exception; :mod:`vnpu.fit.index` looks at the nodes of these cards one by one.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from vnpu.cards import WHOLE_CORE, Card, Node, Use
from vnpu.fit.scores import node_load
from vnpu.mode import Mode

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from vnpu.fit.laws import Want
    from vnpu.fit.rules import Task

NAMELESS: Final = ""
"""The UUID of a card of which only the state counts; no card is called so, and no list of cards names it."""

RoomKey = tuple[str, Mode | None, bool]
"""Chip, mode of the slice, and whether it wants its card alone."""

Amounts = tuple[int, int]
"""MiB and units of compute: percent for soft slices, AI cores for hard ones."""

Room = dict[RoomKey, tuple[list[int], list[int]]]
"""What the cards that are open for such slices have left of memory and of compute, each the most first."""


@dataclass(frozen=True, slots=True, eq=False)
class CardState:
    """How a card looks to every slice that does not name it; cards in the same state share one object.

    Attributes:
        card: the card without its names and its place.
        held: what stands on it.
        cordoned: names the nameless card where it takes no new slices.
        room: what it has left for the slices that it is open for.
    """

    card: Card
    held: Use
    cordoned: frozenset[str]
    room: tuple[tuple[RoomKey, Amounts], ...]


@dataclass(slots=True, eq=False)
class NodeClass:
    """Nodes that look alike.

    Attributes:
        states: those of their cards, in the order of the node.
        load: see :func:`vnpu.fit.scores.node_load`.
        room: what is left on cards that are open for slices, by what the slices need.
        members: positions of the nodes that are in the class now, in rising order.
    """

    states: tuple[CardState, ...]
    load: float
    room: Room
    members: list[int] = field(default_factory=list)

    def join(self, position: int) -> None:
        """Take a node in."""
        insort(self.members, position)

    def leave(self, position: int) -> None:
        """Let a member go."""
        del self.members[bisect_left(self.members, position)]

    def first_beside(self, listed: AbstractSet[int]) -> int | None:
        """The first member that is not among these positions."""
        return next((position for position in self.members if position not in listed), None)


@dataclass(frozen=True, slots=True)
class Need:
    """What a node must at least have left for one container, whatever the others take."""

    key: RoomKey
    count: int
    memory_mib: int
    units: int


def needs(task: Task) -> list[Need]:
    """What the containers of a pod need, one by one."""
    return list(dict.fromkeys(map(_need, task.wants)))


def _need(want: Want) -> Need:
    use = want.use
    units = use.core_percent if use.mode is Mode.SOFT else use.ai_core
    alone = want.unused_only or use.core_percent == WHOLE_CORE
    return Need((want.word, use.mode, alone), want.count, use.memory_mib, units)


def has_room(room: Room, wanted: Sequence[Need]) -> bool:
    """Whether enough may be left for every container by itself; where not, the pod does not fit for certain."""
    for need in wanted:
        there = room.get(need.key)
        if there is None or len(there[0]) < need.count:
            return False
        last = need.count - 1
        if there[0][last] < need.memory_mib or there[1][last] < need.units:
            return False
    return True


class Classes:
    """The classes of all nodes, each made once."""

    def __init__(self) -> None:
        """Start with none."""
        self._states: dict[Hashable, CardState] = {}
        self._classes: dict[Hashable, NodeClass] = {}

    def __len__(self) -> int:
        """How many are known, those without members too."""
        return len(self._classes)

    def __iter__(self) -> Iterator[NodeClass]:
        """Those that have members."""
        return (one for one in self._classes.values() if one.members)

    def state(self, card: Card, held: Use, *, cordoned: bool) -> CardState:
        """The state of a card."""
        key = (
            *(card.chip, card.memory_mib, card.slots, card.ai_core, card.ai_cpu, card.healthy, cordoned),
            *(held.slots, held.memory_mib, held.core_percent, held.ai_core, held.ai_cpu, held.mode),
        )
        state = self._states.get(key)
        if state is None:
            nameless = replace(card, uuid=NAMELESS, index=0, network_id=None)
            closed = frozenset((NAMELESS,)) if cordoned else frozenset[str]()
            state = CardState(nameless, held, closed, () if cordoned else tuple(_card_room(card, held)))
            self._states[key] = state
        return state

    def of(self, node: Node, used: Mapping[str, Use], states: tuple[CardState, ...]) -> NodeClass:
        """The class of a node whose cards are in these states."""
        layout = tuple((card.index, card.network_id) for card in node.cards)
        key = (node.soft, bool(node.unsafe), frozenset(node.closed_to), layout, states)
        found = self._classes.get(key)
        if found is None:
            found = self._classes[key] = NodeClass(states, node_load(node, used), _node_room(node, states))
        return found

    def forget(self) -> None:
        """Drop the classes without members, and the states that no other has."""
        self._classes = {key: one for key, one in self._classes.items() if one.members}
        alive = {state for one in self._classes.values() for state in one.states}
        self._states = {key: state for key, state in self._states.items() if state in alive}


def _card_room(card: Card, held: Use) -> Iterator[tuple[RoomKey, Amounts]]:
    memory_mib = card.memory_mib - held.memory_mib
    if not card.healthy or held.slots >= card.slots or memory_mib <= 0:
        return
    for mode in (held.mode,) if held.slots else (Mode.SOFT, Mode.HARD):
        soft = mode is Mode.SOFT
        units = WHOLE_CORE - held.core_percent if soft else card.ai_core - held.ai_core
        if units < (1 if soft else 0):
            continue  # not even a slice without core of its own joins a card whose compute is given away
        yield (card.chip, mode, False), (memory_mib, units)
        if not held.slots:
            yield (card.chip, mode, True), (memory_mib, units)


def _node_room(node: Node, states: Sequence[CardState]) -> Room:
    room: Room = {}
    if node.unsafe:
        return room
    for state in states:
        for key, (memory_mib, units) in state.room:
            if node.soft or key[1] is not Mode.SOFT:
                memories, computes = room.setdefault(key, ([], []))
                memories.append(memory_mib)
                computes.append(units)
    for amounts in room.values():
        for column in amounts:
            column.sort(reverse=True)
    return room
