"""Tickets: whose turn it is, or was last, to be bound to a node.

``<number>,<pod UID>,<namespace>,<pod>``, as the holder of the node's Lease and, once it is bound, in the annotation
``huawei.com/vnpu-bind-ticket`` of the pod. The numbers of a node rise from turn to turn, so that no two tickets of it
are ever equal.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from vnpu.annotations.fields import number, text
from vnpu.errors import AnnotationError
from vnpu.quantity import INT32_MAX

_FIELDS: Final = 4
_ALLOWED: Final = "<number>,<pod UID>,<namespace>,<pod> is expected"


class Ticket(NamedTuple):
    """One turn.

    Attributes:
        number: of the turn, from 1.
        uid: of the pod.
        namespace: of the pod.
        pod: its name.
    """

    number: int
    uid: str
    namespace: str
    pod: str

    def __str__(self) -> str:
        return f"{self.number},{self.uid},{self.namespace},{self.pod}"


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
