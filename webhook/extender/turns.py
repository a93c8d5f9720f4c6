"""Turns on a node: what came of the one before, found out and, where need be, forced.

Whoever binds to a node writes its ticket into the node's Lease first (:mod:`webhook.extender.binding`). The next
one must know what came of that: either the pod of that ticket is bound, or its binding will never be. Each binding
names the resource version of its pod, as it was before the ticket was written. So one change of the pod, the fence,
makes whatever is still on its way come too late: the API server refuses it.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Final

from vnpu import names
from vnpu.errors import VnpuError
from vnpu.kube import KubeError, NotFound
from vnpu.objects import annotations_of
from webhook.extender import pods
from webhook.extender.calls import Fence, GetPod, ListPods, Wait
from webhook.extender.state import Stage

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from vnpu.annotations.ticket import Ticket
    from webhook.extender.calls import Call, Clock
    from webhook.extender.state import State

POLITE_S: Final = 1.5
"""For the turn of another extender to be over, before it is ended by force."""
PAUSE_S: Final = 0.5
"""Between two tries of what fails for now."""


class UnknownError(VnpuError):
    """What came of a turn cannot be told yet."""


def fate(ticket: Ticket, clock: Clock, deadline: float) -> Generator[Call, Any, Mapping[str, Any] | None]:
    """What came of a turn, for good: its pod where that is bound, None where it is not and never will be in that turn.

    Raises:
        UnknownError: the deadline passed before that could be told.
    """
    mark = secrets.token_hex(8)
    while True:
        try:
            pod: Mapping[str, Any] = yield GetPod(ticket.namespace, ticket.pod)
            if pod["metadata"]["uid"] != ticket.uid:
                return None
            if pod["spec"].get("nodeName"):
                return pod
            if annotations_of(pod).get(names.BIND_FENCE) != mark:
                version = pod["metadata"]["resourceVersion"]
                yield Fence(ticket.namespace, ticket.pod, version, mark)
        except NotFound:
            return None
        except KubeError as error:
            if clock.seconds() >= deadline:
                raise UnknownError(f"what came of {ticket} cannot be told: {error}") from error
            yield Wait(PAUSE_S)
        else:
            return None


def settle(state: State, node: str, ticket: Ticket, clock: Clock, deadline: float) -> Generator[Call, Any, None]:
    """Learn what came of a turn of another extender, and of all turns before it.

    The watch tells by itself, a moment later; where it does not, the turn is ended by force and the pods of the node
    are read.

    Raises:
        UnknownError: the deadline passed before that could be told.
        KubeError: the pods cannot be read.
    """
    patience = clock.seconds() + POLITE_S
    while state.unsettled(node) == ticket and (left := patience - clock.seconds()) > 0:
        yield Wait(left)
    if state.unsettled(node) != ticket:
        return
    yield from fate(ticket, clock, deadline)
    yield from learn(state, node, clock)
    state.settle(node, ticket)


def learn(state: State, node: str, clock: Clock) -> Generator[Call, Any, None]:
    """Know all pods that are bound to a node by now.

    Raises:
        KubeError: they cannot be read.
    """
    for document in (yield ListPods(node)):
        pod = pods.read(document, state.chips)
        if pod is not None and not pod.finished:
            state.assume(pod, Stage.HELD, clock.seconds())
