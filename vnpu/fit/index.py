"""The index: the answers of :func:`vnpu.fit.place.place` and :func:`vnpu.fit.rules.fit` without a look at every card.

Nodes that look alike are judged once (:mod:`vnpu.fit.classes`), pods that ask alike share what was judged
(:mod:`vnpu.fit.judge`), and a pod goes through the nodes in the order of its policy only until one holds it
(:mod:`vnpu.fit.order`). A change of a node costs the work for that node alone.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from vnpu.cards import NO_USE
from vnpu.errors import InputError
from vnpu.fit.answers import NodeRefusal, Placement, Unplaced
from vnpu.fit.judge import Judge
from vnpu.fit.messages import unplaced_message
from vnpu.fit.place import connection_of
from vnpu.fit.policy import DEFAULT_POLICY, Policy
from vnpu.fit.roster import Roster
from vnpu.fit.rules import fit, node_obstacle, prepare, put, refuse, tally, try_cards
from vnpu.fit.texts import NodeTexts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from vnpu.cards import Node, Use
    from vnpu.fit.answers import Reason
    from vnpu.fit.misses import Tally
    from vnpu.fit.rules import Miss, Task
    from vnpu.request import PodRequest

_MOST_JUDGES: Final = 256
_MOST_JUDGED: Final = 1_000_000
"""Kinds of pods, and verdicts of all of them together, that are remembered; some 100 MB at most."""


@dataclass(frozen=True, slots=True)
class Filtered:
    """Which nodes hold a pod.

    Attributes:
        fits: names of those that do, in the order asked.
        refused: why the others do not, by name: ``text`` is what an event says of the node, ``distance`` compares.
        unknown: names that the index does not have.
    """

    fits: tuple[str, ...]
    refused: Mapping[str, Tally]
    unknown: tuple[str, ...]


class _Asked(NamedTuple):
    """A pod that is asked about.

    Attributes:
        task: the pod.
        judge: what is known of such pods.
        listed: positions of the nodes whose cards the pod names: they are looked at one by one.
    """

    task: Task
    judge: Judge
    listed: AbstractSet[int]


class Index:
    """Nodes and what is held of their cards, kept so that a pod finds its place fast.

    The answers are those of the plain rules at that moment, to the last reason and word. Between equal nodes the one
    that came first decides; a node keeps its place while it is updated. Methods raise what the plain functions raise:
    RequestError for what no card may give, AnnotationError for a malformed policy or card list. Nothing is locked:
    one thread at a time.

    Cost: a filter or score is some tenths of a microsecond for each node named, and some 10 microseconds for each
    class of nodes that such a pod has not met yet; a placement is independent of the number of nodes where classes
    are few; an update is some 30 microseconds.
    """

    def __init__(
        self, nodes: Iterable[Node] = (), used: Mapping[str, Use] | None = None, policy: Policy = DEFAULT_POLICY
    ) -> None:
        """Start with these nodes.

        Args:
            nodes: with names of their own, in an order that decides between equal ones.
            used: what is held of each card, by UUID; copied.
            policy: what holds where the annotations of a pod say nothing.
        """
        self._policy = policy
        self._roster = Roster(used or {})
        self._judges: dict[object, Judge] = {}
        self._refused: dict[Judge, tuple[int, Unplaced]] = {}
        self._counted: dict[Judge, int] = {}
        self._judged = 0
        self._clearances = 0
        for node in nodes:
            if node.name in self._roster.places:
                raise InputError("nodes", node.name, "each node may stand once")
            self._roster.enter(node)

    # ---- What there is

    @property
    def nodes(self) -> Iterator[Node]:
        """The nodes, in their order."""
        return iter(self._roster)

    def held(self, uuid: str) -> Use:
        """What is held of a card; nothing of a card that no node has."""
        return self._roster.used.get(uuid, NO_USE)

    def update(self, node: Node, used: Mapping[str, Use]) -> None:
        """Put a node in, or what it is now in the place of what it was.

        Args:
            node: the node.
            used: what is held of its cards, by UUID; cards that are not there are free, and those of other nodes do
                not count.
        """
        if node.name in self._roster.places:
            self._roster.replace(node)
        else:
            self._roster.enter(node)
        self._roster.change({card.uuid: used.get(card.uuid, NO_USE) for card in node.cards})

    def remove(self, name: str) -> None:
        """Take a node out, with what is held of its cards; nothing happens where it is not there."""
        if name in self._roster.places:
            self._roster.remove(name)

    def hold(self, placement: Placement) -> None:
        """Book what a placed pod holds."""
        self._roster.change({uuid: self.held(uuid).plus(use) for uuid, use in placement.holds().items()})

    def release(self, placement: Placement) -> None:
        """Give back what :meth:`hold` booked."""
        self._roster.change({uuid: self.held(uuid).minus(use) for uuid, use in placement.holds().items()})

    # ---- What is asked

    def place(self, request: PodRequest) -> Placement | Unplaced:
        """The best node that holds the pod and its cards there, or why there is none; nothing is booked."""
        asked = self._asked(request)
        changes, refused = self._refused.get(asked.judge, (-1, None))
        if refused is not None and changes == self._roster.changes:
            return replace(refused, pod=request)  # nothing changed since such a pod was refused
        best = self._best(asked)
        if best is not None:
            return self._on(asked, best)
        answer = self._unplaced(asked, self._roster.alike(asked.listed))
        self._refused[asked.judge] = self._roster.changes, answer
        return answer

    def on(self, request: PodRequest, name: str) -> Placement | NodeRefusal:
        """The pod on this node and no other.

        Raises:
            KeyError: the index has no such node.
        """
        return fit(request, self._roster.at(self._roster.places[name]), self._roster.used, self._policy)

    def feasible(self, request: PodRequest, among: Iterable[str]) -> Filtered:
        """Which of these nodes hold the pod, and why the others do not."""
        asked = self._asked(request)
        fits, unknown = [], []
        refused: dict[str, Tally] = {}
        places = self._roster.places
        for name in among:
            position = places.get(name)
            if position is None:
                unknown.append(name)
                continue
            told = self._refusal(asked, position)
            if told is None:
                fits.append(name)
            else:
                refused[name] = told
        return Filtered(tuple(fits), refused, tuple(unknown))

    def why_not(self, request: PodRequest, among: Iterable[str]) -> Unplaced:
        """Why none of these nodes holds the pod, in one sentence with the nearest miss, and node by node.

        Names that the index does not have are left out; so are nodes that do hold it.
        """
        places = self._roster.places
        positions = sorted({places[name] for name in among if name in places})
        return self._unplaced(self._asked(request), ([position] for position in positions))

    def scores(self, request: PodRequest, among: Iterable[str]) -> dict[str, float]:
        """How much the policy of the pod speaks for each of these nodes; those that do not hold it are left out.

        Higher is better: :meth:`place` takes the highest, of equal ones the first. The load of a node counts -30 to
        30, the connection of its cards up to 10 for each container with several.
        """
        asked = self._asked(request)
        sign = asked.task.policy.node_sign
        found = {}
        for name in among:
            position = self._roster.places.get(name)
            if position is not None and self._holds(asked, position):
                rank = sign * self._roster.class_at(position).load
                found[name] = self._connection(asked, position) - rank
        return found

    # ---- Placing

    def _best(self, asked: _Asked) -> int | None:
        """The position of the node of the lowest rank that holds the pod, of equal ones the first."""
        roster, sign = self._roster, asked.task.policy.node_sign
        slack = asked.judge.most_connection if roster.in_groups else 0
        found: tuple[float, int] | None = None
        for position in asked.listed:
            if self._holds(asked, position):
                candidate = sign * roster.class_at(position).load - self._connection(asked, position), position
                found = candidate if found is None else min(found, candidate)
        walk = () if asked.judge.listed_only else roster.order(sign).walk(asked.judge.needs)
        for rank, _, one in walk:
            if found is not None and rank - slack > found[0]:
                break  # not even the best connection would make this class, or one after it, better
            first = one.first_beside(asked.listed)
            if first is None or not self._holds(asked, first):
                continue
            if not slack and found is None:
                return first
            candidate = rank - (self._connection(asked, first) if slack else 0), first
            found = candidate if found is None else min(found, candidate)
        return None if found is None else found[1]

    def _asked(self, request: PodRequest) -> _Asked:
        task = prepare(request, self._policy)
        judge = self._judge(task)
        return _Asked(task, judge, self._roster.homes(judge.listed))

    def _holds(self, asked: _Asked, position: int) -> bool:
        if position in asked.listed:
            return isinstance(self._tried(asked.task, position), Placement)
        roster = self._roster
        return asked.judge.holds(roster.class_at(position), roster.at(position), roster.used)

    def _refusal(self, asked: _Asked, position: int) -> Tally | None:
        """Why the node does not hold the pod, None where it does."""
        roster = self._roster
        node = roster.at(position)
        if position not in asked.listed:
            one = roster.class_at(position)
            return None if asked.judge.holds(one, node, roster.used) else asked.judge.refusal(one, node, roster.used)
        answer = self._tried(asked.task, position)
        return None if isinstance(answer, Placement) else tally(asked.task, node, roster.used, answer)

    def _on(self, asked: _Asked, position: int) -> Placement:
        """The pod on a node that holds it."""
        if position not in asked.listed:
            roster = self._roster
            node = roster.at(position)
            cards = asked.judge.cards(roster.class_at(position), node, roster.used)
            return put(asked.task.request, node, cards)
        answer = self._tried(asked.task, position)
        assert isinstance(answer, Placement)
        return answer

    def _connection(self, asked: _Asked, position: int) -> float:
        """How well the cards are connected that the pod takes on a node that holds it."""
        if position in asked.listed:
            return connection_of(self._on(asked, position))
        roster = self._roster
        return asked.judge.connection(roster.class_at(position), roster.at(position), roster.used)

    def _tried(self, task: Task, position: int) -> Placement | Miss:
        node = self._roster.at(position)
        return node_obstacle(task, node, self._roster.used) or try_cards(task, node, self._roster.used)

    def _unplaced(self, asked: _Asked, among: Iterable[Sequence[int]]) -> Unplaced:
        """Why the pod has no place at these positions; those of nodes that are judged alike come together, rising."""
        reasons: Counter[Reason] = Counter()
        texts: list[str] = [""] * len(self._roster)
        nearest: tuple[tuple[float, ...], int] | None = None
        for positions in among:
            told = self._refusal(asked, positions[0])
            if told is None:
                continue
            for position in positions:
                texts[position] = told.text
            for reason, cards in told.reasons.items():
                reasons[reason] += cards * len(positions)
            if nearest is None or (told.distance, positions[0]) < nearest:
                nearest = told.distance, positions[0]
        refusals = [] if nearest is None else [self._told(asked.task, nearest[1])]
        return Unplaced(
            asked.task.request,
            unplaced_message(asked.task.request, refusals),
            dict(sorted(reasons.items())),
            NodeTexts(self._roster.snapshot(), texts),
        )

    def _told(self, task: Task, position: int) -> NodeRefusal:
        miss = self._tried(task, position)
        assert not isinstance(miss, Placement)
        return refuse(task, self._roster.at(position), self._roster.used, miss)

    def _judge(self, task: Task) -> Judge:
        key = task.request.mode, task.request.terms, task.wants, task.policy
        if self._clearances != self._roster.clearances:
            self._clearances = self._roster.clearances
            self._judges.clear()
            self._refused.clear()
            self._counted.clear()
            self._judged = 0
        judge = self._judges.pop(key, None)
        if judge is None:
            judge = Judge(task)
            if len(self._judges) >= _MOST_JUDGES:
                self._drop_judge()
        self._judges[key] = judge
        # What a judge learns in this turn is counted in its next one.
        self._judged += len(judge) - self._counted.get(judge, 0)
        self._counted[judge] = len(judge)
        while self._judged > _MOST_JUDGED and len(self._judges) > 1:
            self._drop_judge()
        return judge

    def _drop_judge(self) -> None:
        """Forget the kind of pods that was asked about longest ago."""
        oldest = self._judges.pop(next(iter(self._judges)))
        self._refused.pop(oldest, None)
        self._judged -= self._counted.pop(oldest)
