"""Fit: does a node hold a pod, on which cards, and if not, why not.

The laws of one card stand in :mod:`vnpu.fit.laws`, the choice among several cards in :mod:`vnpu.fit.choice`, and the
search for all containers together in :mod:`vnpu.fit.search`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vnpu.annotations.policies import card_choice
from vnpu.cards import NO_USE, WHOLE_CORE
from vnpu.errors import RequestError, item, key
from vnpu.fit.answers import CardShare, CardVerdict, ContainerPlacement, NodeRefusal, Placement, Reason
from vnpu.fit.choice import MODULE
from vnpu.fit.laws import Want
from vnpu.fit.messages import node_verdicts, refuse_cards, refuse_node, verdicts
from vnpu.fit.misses import card_miss, tally_cards, tally_node
from vnpu.fit.policy import DEFAULT_POLICY, Policy
from vnpu.fit.search import DeadEnd, arrange
from vnpu.mode import Mode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from vnpu.cards import Card, Node, Use
    from vnpu.fit.misses import Tally
    from vnpu.request import PodRequest, SliceRequest


Miss = Reason | DeadEnd
"""What keeps a pod from a node: something about the whole node, or cards that do not hold it."""


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
    answer = node_obstacle(task, node, used) or try_cards(task, node, used)
    return answer if isinstance(answer, Placement) else refuse(task, node, used, answer)


def node_obstacle(task: Task, node: Node, used: Mapping[str, Use]) -> Reason | None:
    """What speaks against the whole node, whichever cards it has left."""
    if node.unsafe:
        return Reason.NODE_UNSAFE
    if task.request.terms in node.closed_to:
        return Reason.NODE_NOT_ELIGIBLE
    if task.request.mode is Mode.SOFT and not node.soft:
        return Reason.MODE_NOT_FIT
    if task.policy.unused_nodes_only:
        words = {want.word for want in task.wants}
        if any(card.chip in words and used.get(card.uuid, NO_USE).slots for card in node.cards):
            return Reason.EXCLUSIVE_CONFLICT
    return None


def try_cards(task: Task, node: Node, used: Mapping[str, Use]) -> Placement | DeadEnd:
    """The pod on the cards of a node without an obstacle, or where the search for them ended."""
    found = arrange(task.wants, node, used, task.policy)
    return found if isinstance(found, DeadEnd) else put(task.request, node, found)


def put(request: PodRequest, node: Node, cards: Iterable[Sequence[Card]]) -> Placement:
    """The pod on these cards of the node: those of each container that asks for some, in the order of the pod."""
    each = iter(cards)
    return Placement(
        request,
        node.name,
        tuple(
            ContainerPlacement(
                container.name,
                ()
                if (wanted := container.slice) is None
                else tuple(
                    CardShare(card, wanted.memory_mib, wanted.core_percent, wanted.template) for card in next(each)
                ),
            )
            for container in request.containers
        ),
    )


def refuse(task: Task, node: Node, used: Mapping[str, Use], miss: Miss) -> NodeRefusal:
    """Why the node does not hold the pod.

    Args:
        task: the pod.
        node: the node.
        used: what is held of each card, by UUID.
        miss: why the pod was not put there.
    """
    told = told_miss(task, node, used, miss)
    if isinstance(told, DeadEnd):
        return refuse_cards(node, told, several_containers=len(task.wants) > 1)
    return refuse_node(node, told, task.request.terms)


def tally(task: Task, node: Node, used: Mapping[str, Use], miss: Miss) -> Tally:
    """The same in numbers."""
    told = told_miss(task, node, used, miss)
    if not isinstance(told, DeadEnd):
        return tally_node(told, len(node.cards))
    misses = [card_miss(told.want, card, told.held.get(card.uuid, NO_USE), node.cordoned) for card in node.cards]
    return tally_cards(told.want, misses, given_up=told.given_up)


def told_miss(task: Task, node: Node, used: Mapping[str, Use], miss: Miss) -> Miss:
    """What people are told: a node that is none for such pods at all is told so, whatever else speaks against it."""
    if isinstance(miss, Reason):
        for want in task.wants:
            if sum(card.chip == want.word for card in node.cards) < want.count:
                return DeadEnd(want, used)
    return miss


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
    first = task.wants[0]
    answer = node_obstacle(task, node, used) or try_cards(task, node, used)
    if isinstance(answer, Reason):
        return node_verdicts(node, first, answer, request.terms)
    return verdicts(node, answer if isinstance(answer, DeadEnd) else DeadEnd(first, used))


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
