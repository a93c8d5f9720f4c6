"""What the extender knows of the cluster: nodes and pods as the watches show them, and shares that are spoken for.

Nothing here calls anybody, waits, or reads a clock. What a pod holds stands in its annotations; a share that this
process gave away stands in an :class:`Assumed` until a watch shows it in the annotations, or it is proven never to
come there. One thread at a time.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from vnpu import ledger, names
from vnpu.annotations import ticket as tickets
from vnpu.errors import AnnotationError
from vnpu.fit.index import Index
from vnpu.objects import annotations_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from vnpu.annotations.ticket import Ticket
    from vnpu.cards import Node, Use
    from vnpu.chips import ChipTable
    from vnpu.fit.policy import Policy
    from webhook.extender.pods import Pod, Unserved


class Stage(Enum):
    """How far a share is that this process gave away."""

    PLANNED = "planned"
    """Whoever gave it away is still at work, and will say what came of it."""
    HELD = "held"
    """It is bound, or may be: a watch will show it, or a look at the pod disproves it."""


class Assumed(NamedTuple):
    """A share that is spoken for.

    Attributes:
        pod: the pod as it is once it is bound.
        stage: how far it is.
        since: when it came there, in seconds of the caller's clock.
    """

    pod: Pod
    stage: Stage
    since: float


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node as its object shows it.

    Attributes:
        uid: of the object.
        version: its resource version.
        node: its cards, before anything is said about what is held of them.
        lock: the text of the device plugin's lock, ``""`` for none.
    """

    uid: str
    version: str
    node: Node
    lock: str


class Turn(NamedTuple):
    """The Lease of a node: whose turn it is, or was last.

    Attributes:
        version: its resource version, ``""`` where there is none.
        ticket: the last one, None where there never was any.
        fault: why it cannot be told whose turn it is, so that nothing can be bound there; ``""`` where it can.
    """

    version: str
    ticket: Ticket | None
    fault: str = ""


_NOWHERE: Final[frozenset[str]] = frozenset()
_NO_TURN: Final = Turn("", None)


class State:
    """The cluster as far as it is known, and the index over it."""

    def __init__(self, chips: ChipTable, policy: Policy) -> None:
        """Start with nothing.

        Args:
            chips: the chip table.
            policy: of pods whose annotations do not say.
        """
        self.chips = chips
        self._index = Index(policy=policy)
        self._nodes: dict[str, NodeView] = {}
        self._pods: dict[str, Pod] = {}
        self._assumed: dict[str, Assumed] = {}
        # By node and by card: the UIDs of the pods that are there, or hold it; and the nodes that register a card.
        self._at: defaultdict[str, set[str]] = defaultdict(set)
        self._holders: defaultdict[str, set[str]] = defaultdict(set)
        self._homes: defaultdict[str, set[str]] = defaultdict(set)
        self._waiting: set[str] = set()
        self._dirty: set[str] = set()
        self._turns: dict[str, Turn] = {}
        self._settled: dict[str, Ticket] = {}

    # ---- What is known

    @property
    def index(self) -> Index:
        """The index over all nodes, up to date."""
        for name in self._dirty:
            view = self._nodes.get(name)
            if view is None:
                self._index.remove(name)
            else:
                self._index.update(*self._books(name, view))
        self._dirty.clear()
        return self._index

    @property
    def nodes(self) -> Mapping[str, NodeView]:
        """The nodes by name."""
        return self._nodes

    @property
    def pods(self) -> Mapping[str, Pod]:
        """The pods that have to do with NPUs, by UID, as the watch shows them."""
        return self._pods

    @property
    def assumed(self) -> Mapping[str, Assumed]:
        """The shares that are spoken for, by the UID of their pods."""
        return self._assumed

    def pod(self, uid: str) -> Pod | None:
        """The pod as it is, or as it is assumed to be; None where nobody knows it."""
        shown = self._pods.get(uid)
        assumed = self._assumed.get(uid)
        return shown if assumed is None or (shown is not None and shown.node) else assumed.pod

    def silent(self, before: int) -> set[str]:
        """The nodes whose device plugin has not served a pod that was bound before this time, in unix seconds."""
        return {
            pod.node
            for pod in map(self.pod, self._waiting)
            if pod is not None and pod.unserved is not None and pod.unserved.since < before
        }

    def unserved(self, node: str) -> Iterator[tuple[Pod, Unserved]]:
        """The pods that are bound to the node, or may be, and wait for its device plugin."""
        for uid in sorted(self._at.get(node, _NOWHERE)):
            assumed = self._assumed.get(uid)
            shown = self._pods.get(uid)
            if assumed is not None and assumed.stage is Stage.PLANNED and (shown is None or not shown.node):
                continue
            pod = self.pod(uid)
            if pod is not None and pod.node == node and pod.unserved is not None:
                yield pod, pod.unserved

    # ---- Nodes

    def put_node(self, document: Mapping[str, Any]) -> None:
        """A node as a watch, or the answer to a call, shows it; an older one than is known changes nothing.

        Raises:
            InputError: this is no Node object.
        """
        node, _ = ledger.read_node(document, self.chips)
        metadata = document["metadata"]
        lock = annotations_of(document).get(names.NODE_LOCK, "")
        view = NodeView(metadata["uid"], metadata["resourceVersion"], node, lock)
        before = self._nodes.get(node.name)
        if before is not None and before.uid == view.uid and _older(view.version, before.version):
            return
        self._nodes[node.name] = view
        self._rehome(node.name, before, view)

    def drop_node(self, name: str) -> None:
        """A node is gone. What its pods hold stays booked until they are gone, should it come back."""
        before = self._nodes.pop(name, None)
        if before is not None:
            self._rehome(name, before, None)

    def replace_nodes(self, documents: Iterable[Mapping[str, Any]]) -> None:
        """These nodes are there, and no others."""
        gone = set(self._nodes)
        for document in documents:
            self.put_node(document)
            gone.discard(document["metadata"]["name"])
        for name in gone:
            self.drop_node(name)

    def _rehome(self, name: str, before: NodeView | None, after: NodeView | None) -> None:
        for view, there in ((before, False), (after, True)):
            for card in view.node.cards if view is not None else ():
                self._touch_card(card.uuid)
                _change_group(self._homes, card.uuid, name, there=there)
                self._touch_card(card.uuid)
        # Pods that are there and hold cards of other nodes put the blame on this one only while it is known.
        for uid in self._at.get(name, _NOWHERE):
            pod = self.pod(uid)
            for uuid in pod.entry.uuids if pod is not None else ():
                self._dirty |= self._homes.get(uuid, _NOWHERE)
        self._dirty.add(name)

    def _touch_card(self, uuid: str) -> None:
        self._dirty |= self._homes.get(uuid, _NOWHERE)
        self._dirty.update(pod.entry.where for pod in map(self.pod, self._holders.get(uuid, _NOWHERE)) if pod)

    # ---- Turns

    def turn(self, node: str) -> Turn:
        """Whose turn it is on a node, or was last."""
        return self._turns.get(node, _NO_TURN)

    def put_turn(self, document: Mapping[str, Any]) -> None:
        """A Lease as a watch, or the answer to a call, shows it; an older one than is known changes nothing."""
        name, version = document["metadata"]["name"], document["metadata"]["resourceVersion"]
        node = name.removeprefix(names.TURN_LEASE_PREFIX)
        before = self.turn(node)
        if _older(version, before.version):
            return
        path = f"lease {names.TURN_NAMESPACE}/{name}: spec.holderIdentity"
        try:
            ticket = tickets.decode((document.get("spec") or {}).get("holderIdentity"), path)
        except AnnotationError as error:
            self._turns[node] = Turn(version, before.ticket, str(error))
            return
        self._turns[node] = Turn(version, ticket)
        pod = self._pods.get(ticket.uid)
        if pod is not None and pod.node == node and pod.ticket == str(ticket):
            self.settle(node, ticket)

    def drop_turn(self, node: str) -> None:
        """Somebody removed a Lease; whose turn it was is not forgotten."""
        if node in self._turns:
            self._turns[node] = self._turns[node]._replace(version="")

    def forget_turn(self, node: str, version: str) -> None:
        """Its Lease was removed as it was in this version, when it was known what came of its last turn."""
        if self.turn(node).version == version:
            self._turns.pop(node, None)
            self._settled.pop(node, None)

    def strays(self) -> list[str]:
        """The nodes that are gone, and whose turns are not forgotten."""
        return [node for node in self._turns if node not in self._nodes]

    def replace_turns(self, documents: Iterable[Mapping[str, Any]]) -> None:
        """These Leases are there, and no others."""
        gone = set(self._turns)
        for document in documents:
            self.put_turn(document)
            gone.discard(document["metadata"]["name"].removeprefix(names.TURN_LEASE_PREFIX))
        for node in gone:
            self.drop_turn(node)

    def unsettled(self, node: str) -> Ticket | None:
        """The last turn on the node where what came of it is not known here, None where it is.

        Nobody takes a turn before he knows what came of the one before: what is known of the last is known of all.
        """
        ticket = self.turn(node).ticket
        return None if ticket == self._settled.get(node) else ticket

    def settle(self, node: str, ticket: Ticket) -> None:
        """What came of a turn is known, and of all turns on that node before it."""
        if self.turn(node).ticket == ticket:
            self._settled[node] = ticket

    def next_ticket(self, node: str, pod: Pod, mark: str) -> Ticket:
        """The turn that comes next on a node, for whoever has this mark."""
        ticket = self.turn(node).ticket
        return tickets.Ticket(1 if ticket is None else ticket.number + 1, pod.uid, pod.namespace, pod.name, mark)

    def open_turns(self) -> dict[str, Ticket]:
        """The turns of :meth:`unsettled`, by node: taken before pods are listed, for :meth:`replace_pods`."""
        return {node: ticket for node in self._turns if (ticket := self.unsettled(node)) is not None}

    # ---- Pods

    def put_pod(self, pod: Pod) -> None:
        """A pod as the watch shows it."""
        if pod.node and pod.ticket:
            # Watches show what happens to pods in its order: whoever was bound there before, was shown before.
            ticket = self.unsettled(pod.node)
            if ticket is not None and ticket.uid == pod.uid and str(ticket) == pod.ticket:
                self.settle(pod.node, ticket)
        if pod.finished:
            self.drop_pod(pod.uid)
            return
        self._change(pod.uid, pod, None if pod.node else self._assumed.get(pod.uid))

    def drop_pod(self, uid: str) -> None:
        """The watch shows that a pod is gone, or holds nothing any more."""
        assumed = self._assumed.get(uid)
        self._change(uid, None, assumed if assumed is not None and assumed.stage is Stage.PLANNED else None)

    def replace_pods(self, pods: Iterable[Pod], turns: Mapping[str, Ticket]) -> None:
        """These pods are there, and no others.

        Args:
            pods: from one consistent list.
            turns: what :meth:`open_turns` said before that list was begun. A pod that is in no such list cannot be
                bound any more, and whoever was bound before it is in the list.
        """
        gone = set(self._pods)
        listed = set()
        for pod in pods:
            self.put_pod(pod)
            gone.discard(pod.uid)
            listed.add(pod.uid)
        for uid in gone:
            self._change(uid, None, self._assumed.get(uid))
        for node, ticket in turns.items():
            if ticket.uid not in listed:
                self.settle(node, ticket)

    # ---- Shares that are spoken for

    def assume(self, pod: Pod, stage: Stage, now: float) -> None:
        """Speak for a share: the pod as it is once it is bound. Where the watch shows it bound, nothing changes."""
        shown = self._pods.get(pod.uid)
        if shown is None or not shown.node:
            self._change(pod.uid, shown, Assumed(pod, stage, now))

    def forget(self, uid: str) -> None:
        """Give back what was spoken for."""
        self._change(uid, self._pods.get(uid), None)

    def hold(self, uid: str, now: float) -> None:
        """Leave a planned share to the watch: its pod is bound, or may be."""
        assumed = self._assumed.get(uid)
        if assumed is not None:
            self.assume(assumed.pod, Stage.HELD, now)

    # ---- Books

    def _change(self, uid: str, pod: Pod | None, assumed: Assumed | None) -> None:
        """Put a pod, and what is assumed of it, in the place of what was known."""
        before = self.pod(uid)
        if pod is None:
            self._pods.pop(uid, None)
        else:
            self._pods[uid] = pod
        if assumed is None:
            self._assumed.pop(uid, None)
        else:
            self._assumed[uid] = assumed
        after = self.pod(uid)
        (self._waiting.add if after is not None and after.unserved is not None else self._waiting.discard)(uid)
        if before is not None and after is not None and before.entry == after.entry:
            return
        for one, there in ((before, False), (after, True)):
            if one is None:
                continue
            if one.entry.where:
                _change_group(self._at, one.entry.where, uid, there=there)
                self._dirty.add(one.entry.where)
            for uuid in one.entry.uuids:
                _change_group(self._holders, uuid, uid, there=there)
                self._dirty |= self._homes.get(uuid, _NOWHERE)

    def _books(self, name: str, view: NodeView) -> tuple[Node, Mapping[str, Use]]:
        """The node and what is held of its cards: the ledger of it and of all nodes that have to do with it."""
        uids = set(self._at.get(name, _NOWHERE))
        for card in view.node.cards:
            uids |= self._holders.get(card.uuid, _NOWHERE)
        entries = [pod.entry for pod in map(self.pod, sorted(uids)) if pod is not None]
        involved = {name}
        for entry in entries:
            involved.add(entry.where)
            for uuid in entry.uuids:
                involved |= self._homes.get(uuid, _NOWHERE)
        for card in view.node.cards:
            involved |= self._homes[card.uuid]
        nodes = [self._nodes[other].node for other in sorted(involved) if other in self._nodes]
        books = ledger.balance(nodes, entries)
        return next(node for node in books.nodes if node.name == name), books.used


def _change_group(groups: defaultdict[str, set[str]], name: str, member: str, *, there: bool) -> None:
    """Groups without members are not kept: names of nodes and cards come and go without end."""
    (groups[name].add if there else groups[name].discard)(member)
    if not groups[name]:
        del groups[name]


def _older(version: str, than: str) -> bool:
    """Whether a resource version was there before another one of the same kind."""
    return version.isdecimal() and than.isdecimal() and int(version) < int(than)
