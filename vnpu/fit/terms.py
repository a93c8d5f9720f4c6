"""What a pod asks of a node beside its cards: labels, taints, a name. What kube-scheduler filters by, for the planner.

A scheduler's extender does not look at this again: kube-scheduler has done so before it asks. The rules are those of
Kubernetes (k8s.io/component-helpers: nodeaffinity, and ``ToleratesTaint``): required terms of node affinity are
alternatives, and a term without expressions matches no node.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from vnpu.errors import ABSENT, InputError, bare, item, join, key, path_of, shown
from vnpu.objects import mapping_at

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

    from vnpu.cards import Node

_NODE_NAME: Final = "metadata.name"
"""The one field that ``matchFields`` may name."""
_REQUIRED: Final = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
_BLOCKING: Final = ("NoSchedule", "NoExecute")
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_TOLERATES: Final = ("Equal", "Exists")


@dataclass(frozen=True, slots=True)
class Requirement:
    """What one label of a node must be; ``operator`` is one of Kubernetes' six."""

    key: str
    operator: str
    values: tuple[str, ...]

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels are so."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
        number, bound = _whole(value), _whole(self.values[0] if len(self.values) == 1 else None)
        if number is None or bound is None:
            return False
        return number > bound if self.operator == "Gt" else number < bound


Term: TypeAlias = "tuple[tuple[Requirement, ...], tuple[Requirement, ...]]"
"""Requirements of labels, and of fields."""


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint of a node."""

    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        return bare(f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}")


@dataclass(frozen=True, slots=True)
class Toleration:
    """What a pod tolerates; an empty key, together with ``Exists``, and an empty effect stand for all."""

    key: str
    operator: str
    value: str
    effect: str

    def covers(self, taint: Taint) -> bool:
        """Whether the taint is tolerated."""
        if self.effect not in ("", taint.effect) or self.key not in ("", taint.key):
            return False
        return self.operator == "Exists" or (self.key == taint.key and self.value == taint.value)


@dataclass(frozen=True, slots=True)
class Terms:
    """What a pod asks of a node beside its cards; equal pods have equal terms.

    Attributes:
        node_name: the only node that will do, ``""`` for any.
        selector: labels that the node must have.
        alternatives: required node affinity: one of these must match; None where nothing is required.
        tolerations: of taints.
    """

    node_name: str = ""
    selector: tuple[tuple[str, str], ...] = ()
    alternatives: tuple[Term, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()

    @property
    def need_labels(self) -> bool:
        """Whether labels matter."""
        return bool(self.selector) or self.alternatives is not None

    def obstacle(self, name: str, surroundings: Surroundings) -> str:
        """Why the node will not do, for people; ``""`` where it will. Labels that are not told are not looked at."""
        if self.node_name not in ("", name):
            return f"the pod names node {bare(self.node_name)}"
        for taint in surroundings.taints:
            if taint.effect in _BLOCKING and not any(one.covers(taint) for one in self.tolerations):
                return f"its taint {taint} is not tolerated"
        labels = surroundings.labels
        if labels is None:
            return ""
        for label, wanted in self.selector:
            if labels.get(label) != wanted:
                found = f"is {shown(labels[label])}" if label in labels else "is absent"
                return f"its label {bare(label)} {found}, and the pod's nodeSelector wants {shown(wanted)}"
        if self.alternatives is not None and not any(_matches(one, name, labels) for one in self.alternatives):
            return "its labels match no term of the pod's required node affinity"
        return ""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What of a node matters beside its cards; ``labels`` are None where nobody told them."""

    labels: Mapping[str, str] | None = None
    taints: tuple[Taint, ...] = ()


def read_terms(spec: Mapping[str, Any]) -> Terms:
    """The terms in the spec of a pod.

    Raises:
        InputError: a field that has not the shape that Kubernetes gives it; its path begins with ``spec``.
    """
    try:
        selector = tuple(sorted(_texts(spec, "nodeSelector").items()))
        tolerations = tuple(_toleration(*entry) for entry in _entries(spec, "tolerations"))
        return Terms(_text(spec, "nodeName"), selector, _alternatives(spec), tolerations)
    except InputError as error:
        raise error.under("spec") from error


def read_surroundings(document: Mapping[str, Any]) -> Surroundings:
    """Labels and taints of a Kubernetes Node.

    Raises:
        InputError: a field that has not the shape that Kubernetes gives it.
    """
    metadata, spec = mapping_at(document, "metadata"), mapping_at(document, "spec")
    try:
        labels = _texts(metadata, "labels")
    except InputError as error:
        raise error.under("metadata") from error
    try:
        taints = tuple(
            Taint(_text(entry, "key", path), _text(entry, "value", path), _text(entry, "effect", path))
            for entry, path in _entries(spec, "taints")
        )
    except InputError as error:
        raise error.under("spec") from error
    return Surroundings(labels, taints)


def close(nodes: Iterable[Node], surroundings: Mapping[str, Surroundings], asked: Iterable[Terms]) -> tuple[Node, ...]:
    """The nodes, each closed to the pods of those terms for which it will not do.

    Args:
        nodes: the nodes.
        surroundings: of each node, by name.
        asked: the terms of all pods, each once.
    """
    kinds = tuple(asked)
    return tuple(_closed(node, surroundings[node.name], kinds) for node in nodes)


def _closed(node: Node, surroundings: Surroundings, kinds: Sequence[Terms]) -> Node:
    reasons: dict[Hashable, str] = {one: reason for one in kinds if (reason := one.obstacle(node.name, surroundings))}
    return replace(node, closed_to=MappingProxyType(reasons)) if reasons else node


def _matches(term: Term, name: str, labels: Mapping[str, str]) -> bool:
    expressions, fields = term
    return bool(expressions or fields) and (
        all(one.matches(labels) for one in expressions) and all(one.matches({_NODE_NAME: name}) for one in fields)
    )


def _whole(text: str | None) -> int | None:
    digits = (text or "").removeprefix("-")
    return int(text or "") if digits.isascii() and digits.isdigit() and len(digits) < 19 else None


def _alternatives(spec: Mapping[str, Any]) -> tuple[Term, ...] | None:
    place = path_of(_REQUIRED)
    required = mapping_at(spec, *_REQUIRED)
    if not required:
        return None
    terms = list(_entries(required, "nodeSelectorTerms", place))
    if not terms:
        raise InputError(join(place, "nodeSelectorTerms"), ABSENT, "a list of at least one term is expected")
    return tuple(
        (
            tuple(_requirement(*entry) for entry in _entries(term, "matchExpressions", path)),
            tuple(_requirement(*entry) for entry in _entries(term, "matchFields", path)),
        )
        for term, path in terms
    )


def _requirement(entry: Mapping[str, Any], path: str) -> Requirement:
    values = entry.get("values")
    if values is None:
        values = []
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise InputError(join(path, "values"), values, "a list of texts is expected")
    return Requirement(_text(entry, "key", path), _word(entry, "operator", path, _OPERATORS), tuple(values))


def _toleration(entry: Mapping[str, Any], path: str) -> Toleration:
    operator = _word(entry, "operator", path, _TOLERATES) if entry.get("operator") else _TOLERATES[0]
    return Toleration(_text(entry, "key", path), operator, _text(entry, "value", path), _text(entry, "effect", path))


def _entries(parent: Mapping[str, Any], field: str, path: str = "") -> Iterator[tuple[Mapping[str, Any], str]]:
    """The mappings of a list, each with its path; none where the list is absent."""
    entries, place = parent.get(field), join(path, field)
    if entries is None:
        return
    if not isinstance(entries, list):
        raise InputError(place, entries, "a list is expected")
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise InputError(item(place, index), entry, "a mapping is expected")
        yield entry, item(place, index)


def _texts(parent: Mapping[str, Any], field: str) -> dict[str, str]:
    found = mapping_at(parent, field)
    return {name: _text(found, name, field) for name in found}


def _text(parent: Mapping[str, Any], field: str, path: str = "") -> str:
    value = parent.get(field)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InputError(key(path, field), value, "a text is expected")
    return value


def _word(parent: Mapping[str, Any], field: str, path: str, words: Sequence[str]) -> str:
    value = parent.get(field, ABSENT)
    if value not in words:
        raise InputError(join(path, field), value, f"allowed are {', '.join(words)}")
    return str(value)
