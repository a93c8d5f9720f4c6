"""The nodes that the planner is given, from whatever names them, and the pods that run there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from vnpu import ledger
from vnpu.errors import ABSENT, InputError, shown
from vnpu.fit import inventory
from vnpu.fit.terms import Surroundings, read_surroundings
from vnpu.objects import mapping_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from vnpu.cards import Node
    from vnpu.chips import ChipTable
    from vnpu.documents import Document
    from vnpu.fit.arguments import CardGroup

_COMMAND_LINE: Final = "--card"


class NodeList:
    """Nodes in the order in which they are given, each name once, and warnings about them.

    Attributes:
        nodes: the nodes.
        surroundings: what else is told of them, by name.
        warnings: sentences.
    """

    def __init__(self, chips: ChipTable) -> None:
        """Start with no nodes.

        Args:
            chips: the chips that nodes may have.
        """
        self._chips = chips
        self._places: dict[str, str] = {}
        self.nodes: list[Node] = []
        self.surroundings: dict[str, Surroundings] = {}
        self.warnings: list[str] = []

    def add_cards(self, groups: Iterable[CardGroup]) -> None:
        """Soft nodes ``node-0``, ``node-1``, ... of the command line.

        Raises:
            ConfigError: a chip that the table does not know.
        """
        for number, group in enumerate(groups):
            chip = inventory.find_chip(group.chip, self._chips, _COMMAND_LINE)
            slots = inventory.default_slots(chip, soft=True)
            node = inventory.make_node(f"node-{number}", chip, group.count, soft=True, slots=slots)
            self._add(node, Surroundings(), _COMMAND_LINE)

    def add_document(self, document: Document) -> None:
        """The node of a Kubernetes Node object, or those of an inventory.

        Raises:
            DocumentError: neither of the two, a field that cannot be used, or a name that was there before.
        """
        with document:
            value = document.value
            if not isinstance(value, dict):
                allowed = "Kubernetes Nodes or an inventory (nodes: [...]) are expected"
                raise InputError("", value, allowed)
            kind = value.get("kind", ABSENT)
            if kind is ABSENT:
                for node, labels in inventory.parse(value, self._chips):
                    self._add(node, Surroundings(labels), document.place)
            elif kind == "Node":
                node, warnings = ledger.read_node(value, self._chips)
                self.warnings += warnings
                self._add(_judged(node, value), read_surroundings(value), document.place)
            else:
                raise InputError("kind", kind, "Node, or an inventory (nodes: [...]) without a kind, is expected")

    def _add(self, node: Node, surroundings: Surroundings, place: str) -> None:
        if node.name in self._places:
            raise InputError("", node.name, f"a node of this name stands at {self._places[node.name]} already")
        self._places[node.name] = place
        self.nodes.append(node)
        self.surroundings[node.name] = surroundings
        if node.unsafe:
            self.warnings.append(f"node {node.name} takes no new slices: {node.unsafe}")


def running_pods(documents: Iterable[Document]) -> Iterator[Mapping[str, Any]]:
    """The Pod objects in the documents.

    Raises:
        DocumentError: something else than a Pod.
    """
    for document in documents:
        with document:
            value = document.value
            if not isinstance(value, dict):
                raise InputError("", value, "a Pod is expected")
            kind = value.get("kind", ABSENT)
            if kind != "Pod":
                raise InputError("kind", kind, "Pod is expected: what kubectl get pods -A -o json prints")
            yield value


def _judged(node: Node, document: Mapping[str, Any]) -> Node:
    """The node, unsafe where nothing is scheduled any more."""
    reasons = [node.unsafe]
    if mapping_at(document, "spec").get("unschedulable") is True:
        reasons.append("it is unschedulable (kubectl cordon)")
    reasons += _not_ready(mapping_at(document, "status").get("conditions"))
    return replace(node, unsafe="; ".join(filter(None, reasons)))


def _not_ready(conditions: Any) -> Iterator[str]:
    """Why the node is not ready. One that says nothing of it, as people write it by hand, is taken to be."""
    for condition in conditions if isinstance(conditions, list) else ():
        if isinstance(condition, dict) and condition.get("type") == "Ready" and condition.get("status") != "True":
            yield f"it is not ready (condition Ready is {shown(condition.get('status', ABSENT))})"
