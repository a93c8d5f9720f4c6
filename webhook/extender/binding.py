"""Binding: one pod at a time on a node, whoever else binds there.

Every extender that binds to a node first takes the next turn on it: it writes its ticket into the node's Lease, on the
condition that the Lease has not changed since it was read, and only once it knows what came of the turn before
(:mod:`webhook.extender.turns`): everything that was ever bound there is in the books then. So between taking the turn
and binding, nobody else binds there, without any clock or leader. A process may stop at any point for any time: what it
sends when it goes on, the API server refuses. (The Lease is not the node's own. It outlives the Node object, which may
be deleted and made anew while a binding is on its way.)

A binding and its annotations are one write. One whose outcome is unknown keeps its share spoken for until a look at the
pod tells.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from vnpu import names
from vnpu.admission.settings import DevicePlugin
from vnpu.allocation import binding_annotations
from vnpu.annotations import lock as locks
from vnpu.errors import AnnotationError, FieldError, VnpuError
from vnpu.fit.answers import NodeRefusal
from vnpu.kube import Conflict, KubeError, NotFound
from vnpu.objects import annotation_path
from vnpu.request import pod_request
from webhook.extender import pods, turns
from webhook.extender.calls import Bind, DropTurn, GetNode, GetPod, GetTurn, LockNode, TakeTurn, Wait
from webhook.extender.state import Stage
from webhook.extender.turns import PAUSE_S, UnknownError

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from typing import TypeAlias

    from vnpu.admission.settings import Settings
    from vnpu.annotations.ticket import Ticket
    from vnpu.request import PodRequest
    from webhook.extender.calls import Call, Clock
    from webhook.extender.pods import Pod
    from webhook.extender.state import State

    Steps: TypeAlias = Generator[Call, Any, None]

PATIENCE_S: Final = 20.0
"""For all of a bind; kube-scheduler is configured to wait a little longer."""
REVIEW_S: Final = 30.0
"""After this time without a word from the watch, a share that may be bound is to be looked after."""
_BUSY: Final = "it is being bound already"
_TRIES: Final = 4
"""Turns that one bind takes while others change its pod all the time."""


class BindError(VnpuError):
    """A pod was not bound, or is not known to be; the text goes into its event."""


class Order(NamedTuple):
    """Who is to be bound, and where to."""

    namespace: str
    name: str
    uid: str
    node: str


class Binder:
    """Binds pods; its methods yield what they want of the world."""

    def __init__(self, state: State, settings: Settings, clock: Clock) -> None:
        """Begin.

        Args:
            state: what is known; it changes while a bind waits.
            settings: what pods are completed by, and whose device plugin serves the nodes.
            clock: for patience and annotations.
        """
        self._state = state
        self._settings = settings
        self._clock = clock
        self._busy: set[str] = set()

    def bind(self, order: Order) -> Steps:
        """Bind a pod. Where it is bound to that node already, all is well.

        Raises:
            BindError: it was not bound, and all that was taken for it is given back; or whether it is bound cannot be
                told yet, and its share stays spoken for.
        """
        deadline = self._clock.seconds() + PATIENCE_S
        try:
            pod = yield from self._find(order)
            if pod is not None:
                yield from self._bind_to(pod, order.node, deadline)
        except KubeError as error:
            raise BindError(f"the API server does not let the pod be bound: {error}") from error
        except UnknownError as error:
            raise BindError(str(error)) from error

    def review(self, uid: str) -> Steps:
        """Look after a share that may be bound, and give it back where it is not.

        Raises:
            KubeError: that cannot be told now.
            UnknownError: the same.
        """
        assumed = self._state.assumed.get(uid)
        if assumed is None or assumed.stage is not Stage.HELD:
            return
        pod = assumed.pod
        ticket = self._state.unsettled(pod.node)
        document: Mapping[str, Any] | None
        if ticket is not None and pod.ticket == str(ticket):
            document = yield from turns.fate(ticket, self._clock, self._clock.seconds() + PATIENCE_S)
            self._state.settle(pod.node, ticket)
        else:
            document = yield from self._get(pod.namespace, pod.name)
        if self._state.assumed.get(uid) is not assumed:
            return
        found = None if document is None else pods.read(document, self._state.chips)
        if found is None or found.uid != uid or found.node != pod.node or found.finished:
            self._state.forget(uid)
        else:
            self._state.hold(uid, self._clock.seconds())

    def sweep(self, node: str) -> Steps:
        """Remove the Lease of a node that is gone, once it is known what came of its last turn.

        Whoever takes the first turn with a Lease of his own making reads all pods of the node: so nothing is lost with
        the old one.

        Raises:
            KubeError: that cannot be done now, or somebody takes a turn there.
            UnknownError: what came of the last turn cannot be told.
        """
        version, fault = self._state.turn(node).version, self._state.turn(node).fault
        if fault or node in self._busy or node in self._state.nodes:
            return
        if version:
            ticket = self._state.unsettled(node)
            if ticket is not None:
                yield from turns.settle(self._state, node, ticket, self._clock, self._clock.seconds() + PATIENCE_S)
            with suppress(NotFound):
                yield DropTurn(node, version)
        self._state.forget_turn(node, version)

    # ---- The pod

    def _find(self, order: Order) -> Generator[Call, Any, Pod | None]:
        """The pod that is to be bound, None where it is bound as asked."""
        assumed = self._state.assumed.get(order.uid)
        if assumed is not None:
            if assumed.stage is Stage.PLANNED:
                raise BindError(_BUSY)
            yield from self.review(order.uid)
        shown = self._state.pods.get(order.uid)
        if assumed is None and shown is not None and not shown.node and not shown.deleting:
            return shown
        return (yield from self._look(order))

    def _look(self, order: Order) -> Generator[Call, Any, Pod | None]:
        document = yield from self._get(order.namespace, order.name)
        if document is None or document["metadata"]["uid"] != order.uid:
            raise BindError("the pod is gone")
        pod = pods.read(document, self._state.chips)
        if pod is None:
            raise BindError("it asks for no chip of the device config, and is not for this extender to bind")
        if pod.node:
            self._state.assume(pod, Stage.HELD, self._clock.seconds())  # the watch may not have shown it yet
            if pod.node == order.node:
                return None
            raise BindError(f"it is bound to {pod.node}")
        if pod.deleting:
            raise BindError("it is being deleted")
        return pod

    def _get(self, namespace: str, name: str) -> Generator[Call, Any, Mapping[str, Any] | None]:
        try:
            document: Mapping[str, Any] = yield GetPod(namespace, name)
        except NotFound:
            return None
        return document

    def _choose(self, pod: Pod, node: str, ticket: Ticket | None = None) -> Mapping[str, str]:
        """Speak for cards of the node, in the place of what was spoken for; gives the annotations to bind with."""
        self._state.forget(pod.uid)
        try:
            answer = self._state.index.on(request(pod.document, self._state, self._settings), node)
        except KeyError:
            raise BindError(f"node {node} is not known") from None
        except FieldError as error:
            raise BindError(str(error)) from error
        if isinstance(answer, NodeRefusal):
            raise BindError(f"{answer.text}: {answer.message}")
        annotations = binding_annotations(answer, int(self._clock.now().timestamp()))
        if ticket is not None:
            annotations[names.BIND_TICKET] = str(ticket)
        planned = pods.read(pods.bound(pod.document, node, annotations), self._state.chips)
        assert planned is not None, "whoever holds cards has to do with NPUs"
        self._state.assume(planned, Stage.PLANNED, self._clock.seconds())
        return annotations

    # ---- The turn

    def _bind_to(self, pod: Pod, node: str, deadline: float) -> Steps:
        if pod.uid in self._state.assumed:  # since it was looked for
            raise BindError(_BUSY)
        # From here on filters see the share as taken, although its cards may still change.
        self._choose(pod, node)
        try:
            while node in self._busy:
                self._in_time(deadline, f"others are being bound to {node}")
                yield Wait(deadline - self._clock.seconds())
            self._busy.add(node)
            try:
                yield from self._in_turn(pod, node, deadline)
            finally:
                self._busy.discard(node)
        finally:
            assumed = self._state.assumed.get(pod.uid)
            if assumed is not None and assumed.stage is Stage.PLANNED:
                self._state.forget(pod.uid)

    def _in_turn(self, pod: Pod, node: str, deadline: float) -> Steps:
        for _ in range(_TRIES):
            ticket = yield from self._take(pod, node, deadline)
            changed = yield from self._send(pod, node, ticket, deadline)
            if changed is None:
                return
            pod = changed
        raise BindError("others change the pod all the time")

    def _take(self, pod: Pod, node: str, deadline: float) -> Generator[Call, Any, Ticket]:
        """Take the next turn on the node."""
        mark = secrets.token_hex(4)
        while True:
            yield from self._ready(pod, node, deadline)
            version, ticket = self._state.turn(node).version, self._state.next_ticket(node, pod, mark)
            try:
                try:
                    document = yield TakeTurn(node, version, str(ticket))
                except KubeError as error:
                    if not error.unknown and not isinstance(error, Conflict | NotFound):
                        raise
                    document = yield GetTurn(node)
                self._state.put_turn(document)
            except NotFound:
                self._state.drop_turn(node)
            if self._state.turn(node).ticket == ticket:
                if not version:
                    # Whoever removed the Lease before knew what came of its turns. Here that may not be known.
                    yield from turns.learn(self._state, node, self._clock)
                return ticket
            self._in_time(deadline, f"others bind to {node} all the time")

    def _ready(self, pod: Pod, node: str, deadline: float) -> Steps:
        """Wait until the turn before is over, and the device plugin can tell the pod from others that it serves."""
        while True:
            ticket = self._state.unsettled(node)
            if ticket is not None:
                yield from turns.settle(self._state, node, ticket, self._clock, deadline)
            if node not in self._state.nodes:
                raise BindError(f"node {node} is gone")
            blocker = self._state.turn(node).fault or self._blocker(pod, node)
            if not blocker and self._state.unsettled(node) is None:
                return
            self._in_time(deadline, blocker or f"others bind to {node} all the time")
            yield Wait(PAUSE_S)

    def _send(self, pod: Pod, node: str, ticket: Ticket, deadline: float) -> Generator[Call, Any, Pod | None]:
        """Bind the pod in its turn: None where it is bound, the pod as it is now where somebody changed it."""
        lock = ""
        try:
            if self._is_bound(pod.uid):  # by somebody else, in the turn before
                raise Conflict(0, "Bound", "the pod is bound already")
            annotations = self._choose(pod, node, ticket)
            lock = yield from self._lock(pod, node, deadline)
            try:
                yield Bind(pod.namespace, pod.name, pod.uid, pod.version, node, annotations)
            except KubeError as error:
                if not error.unknown or not (yield from self._came_through(pod, node, ticket, deadline)):
                    raise
        except UnknownError:
            raise  # the turn is not over, and the lock is the device plugin's if the pod is bound
        except VnpuError as error:
            self._state.settle(node, ticket)  # nothing that was sent in this turn will come through
            yield from self._unlock(node, lock)
            if not isinstance(error, Conflict):
                raise
            return (yield from self._look(Order(pod.namespace, pod.name, pod.uid, node)))
        self._state.settle(node, ticket)
        self._state.hold(pod.uid, self._clock.seconds())
        return None

    def _is_bound(self, uid: str) -> bool:
        shown, assumed = self._state.pods.get(uid), self._state.assumed.get(uid)
        return bool(shown is not None and shown.node) or (assumed is not None and assumed.stage is Stage.HELD)

    def _came_through(self, pod: Pod, node: str, ticket: Ticket, deadline: float) -> Generator[Call, Any, bool]:
        self._state.hold(pod.uid, self._clock.seconds())
        found = yield from turns.fate(ticket, self._clock, deadline)
        if found is not None and found["spec"]["nodeName"] == node:
            return True
        self._state.forget(pod.uid)
        return False

    # ---- The device plugin

    def _lock(self, pod: Pod, node: str, deadline: float) -> Generator[Call, Any, str]:
        """Take the lock by which HAMi's device plugin knows whom it serves; ours knows without, and finds none."""
        wanted = None
        if self._settings.device_plugin is DevicePlugin.HAMI:
            wanted = locks.encode(locks.NodeLock(self._clock.now(), pod.namespace, pod.name))
        while (view := self._state.nodes.get(node)) is not None and view.lock != (wanted or ""):
            blocker = self._blocker(pod, node)
            if blocker:
                raise BindError(blocker)
            try:
                document = yield LockNode(node, view.version, wanted)
            except KubeError as error:
                if not error.unknown and not isinstance(error, Conflict):
                    raise
                document = yield GetNode(node)
            self._learn(document)
            self._in_time(deadline, f"others change node {node} all the time")
            if self._state.nodes.get(node) is view:  # another node has its name now; the watch will tell
                yield Wait(PAUSE_S)
        return wanted or ""

    def _blocker(self, pod: Pod, node: str) -> str:
        """Whom the device plugin must serve before this pod may come; ``""`` where nobody is in the way.

        HAMi's serves the owner of the node's lock. Ours finds the only pod that waits, or one of several that get the
        same.
        """
        waiting = [(other, what) for other, what in self._state.unserved(node) if other.uid != pod.uid]
        if self._settings.device_plugin is DevicePlugin.HAMI:
            return self._locked({(other.namespace, other.name) for other, _ in waiting}, pod, node)
        planned = self._state.assumed.get(pod.uid)
        for other, what in waiting:
            if planned is not None and not what.alike(planned.pod.unserved):
                return f"the device plugin of {node} has yet to serve {other.namespace}/{other.name}"
        return ""

    def _locked(self, waiting: set[tuple[str, str]], pod: Pod, node: str) -> str:
        text = self._state.nodes[node].lock
        if not text:
            return ""
        try:
            lock = locks.decode(text, annotation_path(names.NODE_LOCK))
        except AnnotationError as error:
            return f"node {node}: {error}"
        owner = lock.namespace, lock.pod
        if lock.expired(self._clock.now()) or (lock.pod and owner not in waiting):
            return ""
        whom = f" for {lock.namespace}/{lock.pod}" if lock.pod and owner != (pod.namespace, pod.name) else ""
        return f"node {node} is locked{whom} since {lock.time.isoformat()}: its device plugin has yet to release it"

    def _unlock(self, node: str, lock: str) -> Steps:
        """Take back a lock that nobody was bound under. Where that fails, others see that its owner is not bound."""
        with suppress(KubeError):
            for _ in range(_TRIES):
                view = self._state.nodes.get(node)
                if not lock or view is None or view.lock != lock:
                    return
                try:
                    document = yield LockNode(node, view.version, None)
                except Conflict:
                    document = yield GetNode(node)
                self._learn(document)

    def _learn(self, document: Mapping[str, Any]) -> None:
        """A node as the answer to a call shows it: news only of a node that the watch knows, for it may be gone."""
        view = self._state.nodes.get(document["metadata"]["name"])
        if view is not None and view.uid == document["metadata"]["uid"]:
            self._state.put_node(document)

    def _in_time(self, deadline: float, blocker: str) -> None:
        if self._clock.seconds() >= deadline:
            raise BindError(blocker)


def request(document: Mapping[str, Any], state: State, settings: Settings) -> PodRequest:
    """What a pod asks for.

    Raises:
        FieldError: it cannot be served.
    """
    return pod_request(
        document, state.chips, default_mode=settings.default_mode, default_core_percent=settings.default_core_percent
    )
