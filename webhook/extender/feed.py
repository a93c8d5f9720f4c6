"""Lists and watches, told to the state: what each kind of object means to it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final

from vnpu import names
from vnpu.kube import LEASES, NODES, PODS
from webhook.extender import pods

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from vnpu.annotations.ticket import Ticket
    from vnpu.kube import Event, Resource
    from webhook.extender.state import State

_DELETED: Final = "DELETED"
_OWN: Final = (names.DEVICE_TEXT_PREFIX, names.SOFT_NODE, names.CORDON)


class Feed(ABC):
    """One kind of object.

    A list is told in three steps, for it may be long: :meth:`begin` before it is asked for, :meth:`reduce` for each
    object while it is read, which needs no state, and :meth:`replace` at the end.
    """

    resource: Resource
    namespace: str | None = None
    label: str = ""

    def __init__(self, state: State) -> None:
        """Feed this state."""
        self._state = state

    def begin(self) -> None:  # noqa: B027 - most kinds have nothing to prepare
        """A list is about to be asked for."""

    def reduce(self, document: Mapping[str, Any]) -> Any:
        """What is kept of an object until the list is complete, None for nothing."""
        return document

    @abstractmethod
    def replace(self, reduced: Iterable[Any]) -> None:
        """The list is complete: these are there, and no others."""

    @abstractmethod
    def event(self, event: Event) -> None:
        """Something happened to an object."""


class Nodes(Feed):
    """Nodes: their cards."""

    resource = NODES

    def reduce(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """The node without what says nothing about its cards."""
        metadata = document["metadata"]
        annotations = metadata.get("annotations") or {}
        kept = {name: metadata[name] for name in ("name", "uid", "resourceVersion")}
        kept["annotations"] = {name: text for name, text in annotations.items() if name.startswith(_OWN)}
        return {"metadata": kept, "status": {"allocatable": (document.get("status") or {}).get("allocatable")}}

    def replace(self, reduced: Iterable[Any]) -> None:
        """These nodes are there, and no others."""
        self._state.replace_nodes(reduced)

    def event(self, event: Event) -> None:
        """Something happened to a node."""
        if event.type == _DELETED:
            self._state.drop_node(event.object["metadata"]["name"])
        else:
            self._state.put_node(event.object)


class Turns(Feed):
    """The Leases that say whose turn it is on a node."""

    resource = LEASES
    namespace = names.TURN_NAMESPACE
    label = names.TURN_LABEL

    def replace(self, reduced: Iterable[Any]) -> None:
        """These Leases are there, and no others."""
        self._state.replace_turns(reduced)

    def event(self, event: Event) -> None:
        """Something happened to a Lease."""
        if event.type == _DELETED:
            self._state.drop_turn(event.object["metadata"]["name"].removeprefix(names.TURN_LEASE_PREFIX))
        else:
            self._state.put_turn(event.object)


class Pods(Feed):
    """Pods: what they hold, and what those that wait ask for."""

    resource = PODS

    def __init__(self, state: State) -> None:
        """Feed this state."""
        super().__init__(state)
        self._turns: dict[str, Ticket] = {}

    def begin(self) -> None:
        """A list is about to be asked for: what it does not show is over for the turns that are open now."""
        self._turns = self._state.open_turns()

    def reduce(self, document: Mapping[str, Any]) -> pods.Pod | None:
        """The pod, None where it has nothing to do with NPUs."""
        return pods.read(document, self._state.chips)

    def replace(self, reduced: Iterable[pods.Pod]) -> None:
        """These pods are there, and no others."""
        self._state.replace_pods(reduced, self._turns)

    def event(self, event: Event) -> None:
        """Something happened to a pod."""
        pod = None if event.type == _DELETED else pods.read(event.object, self._state.chips)
        if pod is None:
            self._state.drop_pod(event.object["metadata"]["uid"])
        else:
            self._state.put_pod(pod)
