"""Place: which node a pod goes to."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from vnpu.fit.answers import Placement, Unplaced
from vnpu.fit.messages import unplaced_message
from vnpu.fit.policy import DEFAULT_POLICY, Policy
from vnpu.fit.rules import node_obstacle, prepare, refuse, try_cards
from vnpu.fit.scores import SCALE, connection, node_load, tells_groups

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vnpu.cards import Node, Use
    from vnpu.fit.answers import Reason
    from vnpu.fit.rules import Miss, Task
    from vnpu.request import PodRequest


def place(
    request: PodRequest, nodes: Sequence[Node], used: Mapping[str, Use], policy: Policy = DEFAULT_POLICY
) -> Placement | Unplaced:
    """Puts a pod on the best node that holds it.

    The fullest node first under ``binpack``, the emptiest under ``spread``, as they are before the pod comes; under
    ``mutex`` the first where no card of its chips is in use. For containers with several cards the connection between
    these counts too. Equal nodes keep their order.

    Args:
        request: the pod.
        nodes: the nodes, in an order that decides between equal ones.
        used: what is held of each card, by UUID.
        policy: what holds where the pod's annotations say nothing.

    Raises:
        RequestError: the pod asks for nothing, or for something that no card may give.
        AnnotationError: a policy or a card list is malformed.
    """
    task = prepare(request, policy)
    sign = task.policy.node_sign
    ranked = []
    misses: dict[int, Miss] = {}
    for position, node in enumerate(nodes):
        obstacle = node_obstacle(task, node, used)
        if obstacle is None:
            ranked.append((sign * node_load(node, used), position))
        else:
            misses[position] = obstacle
    most = most_connection(task)
    found: tuple[float, int, Placement] | None = None
    for rank, position in sorted(ranked):
        if found is not None and rank - most > found[0]:
            break  # not even the best connection would make this node, or one after it, better
        answer = try_cards(task, nodes[position], used)
        if not isinstance(answer, Placement):
            misses[position] = answer
            continue
        if not most:
            return answer
        candidate = (rank - connection_of(answer), position, answer)
        if found is None or candidate[:2] < found[:2]:
            found = candidate
    return _unplaced(task, nodes, used, misses) if found is None else found[2]


def _unplaced(task: Task, nodes: Sequence[Node], used: Mapping[str, Use], misses: Mapping[int, Miss]) -> Unplaced:
    refusals = [refuse(task, node, used, misses[position]) for position, node in enumerate(nodes)]
    reasons: Counter[Reason] = Counter()
    for refusal in refusals:
        reasons.update(refusal.reasons)
    return Unplaced(
        task.request,
        unplaced_message(task.request, refusals),
        dict(sorted(reasons.items())),
        {refusal.node: refusal.text for refusal in refusals},
    )


def most_connection(task: Task) -> float:
    """What :func:`connection_of` can be at most."""
    return SCALE * sum(want.count > 1 and tells_groups(want.chip) for want in task.wants)


def connection_of(placement: Placement) -> float:
    """How well the cards of each container are connected, together: see :func:`vnpu.fit.scores.connection`."""
    return sum(
        connection(asked.slice.chip, [share.card for share in given.cards])
        for asked, given in zip(placement.pod.containers, placement.containers, strict=True)
        if asked.slice is not None
    )
