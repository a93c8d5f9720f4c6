"""Tickets: whose turn it is, or was last, to be bound to a node.

``<number>,<pod UID>,<namespace>,<pod>,<mark>``, as the holder of the node's Lease and, once it is bound, in the
annotation ``huawei.com/vnpu-bind-ticket`` of the pod. The numbers of a node rise from turn to turn, and two who want
the same turn for the same pod have different marks, so that no two tickets of a node are ever equal.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from vnpu.annotations.fields import number, text
from vnpu.errors import AnnotationError
from vnpu.quantity import INT32_MAX

_FIELDS: Final = 5
_ALLOWED: Final = "<number>,<pod UID>,<namespace>,<pod>,<mark> is expected"


class Ticket(NamedTuple):
    """One turn.

    Attributes:
        number: of the turn, from 1.
        uid: of the pod.
        namespace: of the pod.
        pod: its name.
        mark: of whoever takes the turn.
    """

    number: int
    uid: str
    namespace: str
    pod: str
    mark: str

    def __str__(self) -> str:
        return ",".join(map(str, self))


def decode(value: Any, path: str = "") -> Ticket:
    """The ticket in a text.

    Args:
        value: the text.
        path: where it stands, for the error.

    Raises:
        AnnotationError: anything else.
    """
    parts = text(value, path).split(",")
    if len(parts) != _FIELDS or not all(parts):
        raise AnnotationError(path, value, _ALLOWED)
    turn = number(parts[0], path)
    if not 1 <= turn < INT32_MAX:
        raise AnnotationError(path, value, _ALLOWED)
    return Ticket(turn, *parts[1:])
