"""Plan: many pods, one after the other, gangs all or none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from vnpu.annotations import policies
from vnpu.fit.answers import CardStatus, Placement, Plan, Reason, Unplaced
from vnpu.fit.index import Index
from vnpu.fit.policy import Policy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from vnpu.cards import Node, Use
    from vnpu.request import PodRequest


@dataclass(frozen=True, slots=True)
class Workload:
    """Pods that belong together.

    Attributes:
        pods: in order; those that ask for no NPU find room anywhere and are not listed in the plan.
        min_available: with fewer pods placed than this, none of them is (a gang); 0 or 1 for pods on their own.
    """

    pods: tuple[PodRequest, ...]
    min_available: int = 1


def plan(
    workloads: Iterable[Workload],
    nodes: Sequence[Node],
    used: Mapping[str, Use],
    node_policy: str = policies.NodePolicy.BINPACK,
    card_policy: str = policies.CardPolicy.SPREAD,
) -> Plan:
    """Places the pods of the workloads in their order, each with the others before it in place.

    A gang places as many of its pods as fit; where these are fewer than ``min_available``, all are taken back.

    Args:
        workloads: what is to be placed.
        nodes: where to; their order decides between equal nodes.
        used: what is held already, by UUID.
        node_policy: for pods whose annotations do not say; the same words as there.
        card_policy: the same for cards.

    Raises:
        RequestError: a pod asks for something that no card may give.
        AnnotationError: a policy, or a card list of a pod, is malformed.
    """
    policy = Policy(policies.node_policy(node_policy, "node_policy"), policies.card_policy(card_policy, "card_policy"))
    index = Index(nodes, used, policy)
    placements: list[Placement] = []
    left_over: list[Unplaced] = []
    for workload in workloads:
        answers = [_take(index, pod) for pod in workload.pods if pod.asks]
        placed = [answer for answer in answers if isinstance(answer, Placement)]
        ready = len(placed) + sum(not pod.asks for pod in workload.pods)
        if ready < workload.min_available and workload.min_available > 1:
            for placement in placed:
                index.release(placement)
            left_over += _gang_refused(answers, ready, workload.min_available)
        else:
            placements += placed
            left_over += [answer for answer in answers if isinstance(answer, Unplaced)]
    return Plan(str(node_policy), str(card_policy), tuple(placements), tuple(left_over), _status(index))


def _take(index: Index, request: PodRequest) -> Placement | Unplaced:
    answer = index.place(request)
    if isinstance(answer, Placement):
        index.hold(answer)
    return answer


def _status(index: Index) -> tuple[CardStatus, ...]:
    return tuple(
        CardStatus(node.name, card, held.mode, held)
        for node in index.nodes
        for card in node.cards
        for held in (index.held(card.uuid),)
    )


def _gang_refused(answers: Sequence[Placement | Unplaced], ready: int, needed: int) -> list[Unplaced]:
    """A gang of which too few pods fit: those that fit alone say so, the others why they do not."""
    waiting = f"the gang needs {needed} pods, and only {ready} fit"
    return [
        replace(answer, message=f"{waiting}; {answer.message}")
        if isinstance(answer, Unplaced)
        else Unplaced(answer.pod, f"{waiting}; this one would", {Reason.GANG_NOT_READY: 1}, {})
        for answer in answers
    ]
