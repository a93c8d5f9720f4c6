"""Fit: does a node hold a pod, on which cards, and if not, why not.

The laws of one card stand in :mod:`vnpu.fit.laws`, the choice among several cards in :mod:`vnpu.fit.choice`, and the
search for all containers together in :mod:`vnpu.fit.search`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vnpu.annotations.policies import card_choice
from vnpu.cards import WHOLE_CORE
from vnpu.errors import RequestError, item, key
from vnpu.fit.answers import CardShare, CardVerdict, ContainerPlacement, NodeRefusal, Placement
from vnpu.fit.choice import MODULE
from vnpu.fit.laws import Want
from vnpu.fit.messages import node_obstacle, node_verdicts, refuse_cards, refuse_node, verdicts
from vnpu.fit.policy import DEFAULT_POLICY, Policy
from vnpu.fit.search import DeadEnd, arrange
from vnpu.mode import Mode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vnpu.cards import Node, Use
    from vnpu.request import PodRequest, SliceRequest


@dataclass(frozen=True, slots=True)
class Task:
    """A pod made ready for fitting: checked, and its annotations read.

    Attributes:
        request: the pod.
        wants: what each container with an NPU asks for, in the order of the pod.
        policy: the pod's own policy.
    """

    request: PodRequest
    wants: tuple[Want, ...]
    policy: Policy


def prepare(request: PodRequest, policy: Policy = DEFAULT_POLICY) -> Task:
    """Checks a request and reads the pod's annotations, once for all nodes.

    Raises:
        RequestError: the pod asks for nothing, or for something that no card may give.
        AnnotationError: a policy or a card list is malformed.
    """
    own = policy.for_pod(request.annotations)
    wants = []
    for index, container in enumerate(request.containers):
        wanted = container.slice
        if wanted is None:
            continue
        for field, allowed in _faults(wanted, request.mode):
            raise RequestError(key(item("containers", index), field), getattr(wanted, field), allowed)
        word = wanted.chip.common_word
        choice = card_choice(request.annotations, word)
        wants.append(
            Want(
                container.name,
                container.kind,
                wanted.chip,
                word,
                wanted.count,
                wanted.use,
                choice,
                unused_only=own.unused_cards_only,
            )
        )
    if not wants:
        raise RequestError("containers", [container.name for container in request.containers], "none asks for an NPU")
    return Task(request, tuple(wants), own)


def fit(
    request: PodRequest, node: Node, used: Mapping[str, Use], policy: Policy = DEFAULT_POLICY
) -> Placement | NodeRefusal:
    """Whether the node holds the pod, and on which cards.

    Every container gets as many distinct cards as it asks for; two containers may share a card. A plain init container
    stands beside the sidecars before it only, the apps beside all sidecars.

    Args:
        request: the pod.
        node: the node.
        used: what is held of each card, by UUID; cards that are not there are free.
        policy: what holds where the pod's annotations say nothing.

    Raises:
        RequestError: the pod asks for nothing, or for something that no card may give.
        AnnotationError: a policy or a card list is malformed.
    """
    task = prepare(request, policy)
    return try_node(task, node, used) or refuse(task, node, used)


def try_node(task: Task, node: Node, used: Mapping[str, Use]) -> Placement | None:
    """The pod on the node, None where the node does not hold it."""
    if node_obstacle(node, task.request.mode) is not None:
        return None
    found = arrange(task.wants, node, used, task.policy)
    if isinstance(found, DeadEnd):
        return None
    cards = iter(found)
    return Placement(
        task.request,
        node.name,
        tuple(
            ContainerPlacement(
                container.name,
                ()
                if (wanted := container.slice) is None
                else tuple(
                    CardShare(card, wanted.memory_mib, wanted.core_percent, wanted.template) for card in next(cards)
                ),
            )
            for container in task.request.containers
        ),
    )


def refuse(task: Task, node: Node, used: Mapping[str, Use]) -> NodeRefusal:
    """Why the node does not hold the pod; the node was tried."""
    obstacle = node_obstacle(node, task.request.mode)
    if obstacle is not None and all(_has_chips(node, want) for want in task.wants):
        return refuse_node(node, obstacle)
    return refuse_cards(node, _dead_end(task, node, used), several_containers=len(task.wants) > 1)


def explain(
    request: PodRequest, node: Node, used: Mapping[str, Use], policy: Policy = DEFAULT_POLICY
) -> tuple[CardVerdict, ...]:
    """Card by card, what speaks against the pod, told for the first container that finds too few cards.

    Where the node holds the pod, every verdict is about its first container.

    Raises:
        RequestError: the pod asks for nothing, or for something that no card may give.
        AnnotationError: a policy or a card list is malformed.
    """
    task = prepare(request, policy)
    obstacle = node_obstacle(node, request.mode)
    if obstacle is not None:
        return node_verdicts(node, task.wants[0].container, obstacle)
    return verdicts(node, _dead_end(task, node, used))


def _has_chips(node: Node, want: Want) -> bool:
    """Whether the node is one for such pods at all: a node without the cards is told so, whatever else it lacks."""
    return sum(card.chip == want.word for card in node.cards) >= want.count


def _dead_end(task: Task, node: Node, used: Mapping[str, Use]) -> DeadEnd:
    found = arrange(task.wants, node, used, task.policy)
    return found if isinstance(found, DeadEnd) else DeadEnd(task.wants[0], used)


def _faults(wanted: SliceRequest, mode: Mode) -> Iterator[tuple[str, str]]:
    """The fields of a request that no card may serve, and what is allowed there. Nothing is clamped."""
    word = wanted.chip.common_word
    if wanted.mode is not mode:
        yield "mode", f"every slice of a pod has the pod's mode, {mode}"
    if wanted.count < 1:
        yield "count", "at least one card is allowed"
    if wanted.chip.super_pod and wanted.count % MODULE:
        yield "count", f"{word} goes in modules of {MODULE} cards: an even number is allowed"
    if wanted.memory_mib < 1:
        yield "memory_mib", "at least 1 MiB per card is allowed"
    most = WHOLE_CORE if wanted.mode is Mode.SOFT else 0
    if not 0 <= wanted.core_percent <= most:
        yield "core_percent", f"0 to {most} percent of a card is allowed for a {wanted.mode} slice"
    if wanted.template is not None and (
        wanted.mode is Mode.SOFT or wanted.chip.template_named(wanted.template) is None
    ):
        yield "template", f"a template of {word} is allowed, in {Mode.HARD} mode only"
