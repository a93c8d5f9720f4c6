"""What kube-scheduler and its extenders say to each other: JSON of ``k8s.io/kube-scheduler/extender/v1``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from vnpu.errors import InputError
from webhook.extender.binding import Order

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.extender.verbs import Answer

_ENCODER: Final = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"))


class Question(NamedTuple):
    """A pod, and nodes that may hold it.

    Attributes:
        pod: the Pod.
        names: of the nodes.
        nodes: the Nodes by name where kube-scheduler sends them whole (``nodeCacheCapable: false``), else None.
    """

    pod: Mapping[str, Any]
    names: Sequence[str]
    nodes: Mapping[str, Mapping[str, Any]] | None


def read_question(body: bytes) -> Question:
    """The ``ExtenderArgs`` in the body of /filter and /prioritize.

    Raises:
        InputError: the body holds none.
    """
    fields = _fields(body, "ExtenderArgs")
    pod, names, nodes = fields.get("pod"), fields.get("nodenames"), fields.get("nodes")
    if not isinstance(pod, dict) or not isinstance(pod.get("metadata"), dict) or not isinstance(pod.get("spec"), dict):
        raise InputError("pod", pod, "a Pod is expected")
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        return Question(pod, names, None)
    items = nodes.get("items") if isinstance(nodes, dict) else None
    try:
        whole = {node["metadata"]["name"]: node for node in items or ()}
    except (TypeError, KeyError) as error:
        raise InputError("nodes.items", items, "Nodes are expected") from error
    if items is None:
        raise InputError("nodenames", names, "the names of nodes, or a NodeList in nodes, are expected")
    return Question(pod, tuple(whole), whole)


def filtered(question: Question, answer: Answer) -> bytes:
    """The ``ExtenderFilterResult`` for a question.

    All refusals are final: taking other pods away would not be an answer of this extender, so kube-scheduler need not
    try.
    """
    document: dict[str, Any] = {"failedAndUnresolvableNodes": answer.refused}
    if question.nodes is None:
        document["nodenames"] = answer.fits
    else:
        items = [question.nodes[name] for name in answer.fits]
        document["nodes"] = {"apiVersion": "v1", "kind": "NodeList", "metadata": {}, "items": items}
    return encoded(document)


def scored(scores: Mapping[str, int]) -> bytes:
    """The ``HostPriorityList`` with these scores."""
    return encoded([{"host": name, "score": score} for name, score in scores.items()])


def read_order(body: bytes) -> Order:
    """The ``ExtenderBindingArgs`` in the body of /bind.

    Raises:
        InputError: the body holds none.
    """
    fields = _fields(body, "ExtenderBindingArgs")
    values = []
    for name in ("podNamespace", "podName", "podUID", "node"):
        value = fields.get(name.lower())
        if not isinstance(value, str) or not value or not value.isascii():
            raise InputError(name, value, "a name is expected, in ASCII")
        values.append(value)
    return Order(*values)


def failed(message: str) -> bytes:
    """A result with nothing but an error, as all verbs but /prioritize have it; ``""`` where /bind did bind."""
    return encoded({"error": message} if message else {})


def encoded(document: Any) -> bytes:
    """JSON in ASCII."""
    return _ENCODER.encode(document).encode()


def _fields(body: bytes, kind: str) -> dict[str, Any]:
    """The fields of a JSON object by their names in lower case: Go takes them in any."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InputError("", "no JSON", f"{kind} of extender/v1 is expected") from error
    if not isinstance(document, dict):
        raise InputError("", document, f"{kind} of extender/v1 is expected")
    return {name.lower(): value for name, value in document.items()}
