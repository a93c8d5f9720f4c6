"""Place: which node a pod goes to."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from vnpu.annotations.policies import NodePolicy
from vnpu.fit.answers import Placement, Unplaced
from vnpu.fit.messages import node_obstacle, unplaced_message
from vnpu.fit.policy import DEFAULT_POLICY, Policy
from vnpu.fit.rules import Task, prepare, refuse, try_node
from vnpu.fit.scores import SCALE, connection, node_load

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vnpu.cards import Node, Use
    from vnpu.fit.answers import Reason
    from vnpu.request import PodRequest


def place(
    request: PodRequest, nodes: Sequence[Node], used: Mapping[str, Use], policy: Policy = DEFAULT_POLICY
) -> Placement | Unplaced:
    """Puts a pod on the best node that holds it.

    The fullest node first under ``binpack``, the emptiest under ``spread``, as they are before the pod comes; for
    containers with several cards the connection between these counts too. Equal nodes keep their order.

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
    return best(task, nodes, used) or unplaced(task, nodes, used)


def best(task: Task, nodes: Sequence[Node], used: Mapping[str, Use]) -> Placement | None:
    """The pod on the best node that holds it."""
    sign = -1 if task.policy.node == NodePolicy.BINPACK else 1
    ranked = sorted(
        (sign * node_load(node, used), position)
        for position, node in enumerate(nodes)
        if node_obstacle(node, task.request.mode) is None
    )
    most_connection = SCALE * sum(want.count > 1 for want in task.wants)
    found: tuple[float, int, Placement] | None = None
    for rank, position in ranked:
        if found is not None and rank - most_connection > found[0]:
            break  # not even the best connection would make this node, or one after it, better
        placement = try_node(task, nodes[position], used)
        if placement is None:
            continue
        if not most_connection:
            return placement
        candidate = (rank - _connection(placement), position, placement)
        if found is None or candidate[:2] < found[:2]:
            found = candidate
    return None if found is None else found[2]


def unplaced(task: Task, nodes: Sequence[Node], used: Mapping[str, Use]) -> Unplaced:
    """Why no node holds the pod; all were tried."""
    refusals = [refuse(task, node, used) for node in nodes]
    reasons: Counter[Reason] = Counter()
    for refusal in refusals:
        reasons.update(refusal.reasons)
    return Unplaced(
        task.request,
        unplaced_message(task.request, refusals),
        dict(sorted(reasons.items())),
        {refusal.node: refusal.text for refusal in refusals},
    )


def _connection(placement: Placement) -> float:
    return sum(connection([share.card for share in container.cards]) for container in placement.containers)
