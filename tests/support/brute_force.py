"""An independent reference for fit on small inputs: every assignment of containers to sets of cards is tried.

It replays a pod as Kubernetes runs it. At each start of a container the slices that stand on its cards are added up
anew from the list of those that run.
"""

from __future__ import annotations

from itertools import combinations, product
from typing import TYPE_CHECKING

from vnpu.containers import ContainerKind
from vnpu.mode import Mode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from vnpu.cards import Card, Node, Use
    from vnpu.placement import Placement
    from vnpu.request import ContainerRequest, PodRequest, SliceRequest


def feasible(pod: PodRequest, node: Node, used: Mapping[str, Use]) -> bool:
    """Whether some assignment breaks no law."""
    asking = [container for container in pod.containers if container.slice is not None]
    every_choice = [list(_card_sets(container.slice, node)) for container in asking if container.slice is not None]
    return any(
        broken_law(pod, node, used, dict(zip(range(len(asking)), choice, strict=True))) is None
        for choice in product(*every_choice)
    )


def broken_law_of(placement: Placement, node: Node, used: Mapping[str, Use]) -> str | None:
    """The law that a placement breaks, None where it breaks none."""
    if placement.node != node.name or len(placement.containers) != len(placement.pod.containers):
        return "the placement is about another node or other containers"
    chosen = {}
    for request, placed in zip(placement.pod.containers, placement.containers, strict=True):
        if request.slice is None:
            if placed.cards:
                return "cards for a container that asks for none"
            continue
        for share in placed.cards:
            told = (share.memory_mib, share.core_percent, share.template)
            if told != (request.slice.memory_mib, request.slice.core_percent, request.slice.template):
                return "a share is not what was asked"
        chosen[len(chosen)] = tuple(share.card for share in placed.cards)
    return broken_law(placement.pod, node, used, chosen)


def broken_law(
    pod: PodRequest, node: Node, used: Mapping[str, Use], chosen: Mapping[int, Sequence[Card]]
) -> str | None:
    """The first law that an assignment breaks: cards per container with an NPU, in the order of the pod."""
    if node.unsafe:
        return "the node is unsafe"
    if pod.terms in node.closed_to:
        return "the node is not for such pods"
    if pod.mode is Mode.SOFT and not node.soft:
        return "soft slices on a hard node"
    words = {container.slice.chip.common_word for container in pod.containers if container.slice is not None}
    if pod.annotations.get("hami.io/node-scheduler-policy") == "mutex" and any(
        card.chip in words and card.uuid in used for card in node.cards
    ):
        return "a node with cards in use"
    running: list[tuple[SliceRequest, Sequence[Card]]] = []
    asking = [container for container in pod.containers if container.slice is not None]
    for position, container in enumerate(asking):
        wanted, cards = container.slice, chosen[position]
        assert wanted is not None
        broken = _bad_set(wanted, cards, node) or next(
            filter(None, (_bad_card(pod, container, card, node, used, running) for card in cards)), None
        )
        if broken:
            return broken
        if container.kind is not ContainerKind.INIT:
            running.append((wanted, cards))
    return None


def _card_sets(wanted: SliceRequest, node: Node) -> Iterator[tuple[Card, ...]]:
    return combinations([card for card in node.cards if card.chip == wanted.chip.common_word], wanted.count)


def _bad_set(wanted: SliceRequest, cards: Sequence[Card], node: Node) -> str | None:
    uuids = {card.uuid for card in cards}
    if len(cards) != wanted.count or len(uuids) != wanted.count:
        return "not as many distinct cards as asked"
    if not uuids <= {card.uuid for card in node.cards}:
        return "a card of another node"
    if wanted.chip.super_pod:
        indices = {card.index for card in cards}
        if any((index ^ 1) not in indices for index in indices):
            return "half a module"
    return None


def _bad_card(
    pod: PodRequest,
    container: ContainerRequest,
    card: Card,
    node: Node,
    used: Mapping[str, Use],
    running: Sequence[tuple[SliceRequest, Sequence[Card]]],
) -> str | None:
    wanted = container.slice
    assert wanted is not None
    word = wanted.chip.common_word
    if card.chip != word or not card.healthy or card.uuid in node.cordoned:
        return "a card of another chip, or out of service"
    only = _listed(pod.annotations.get(f"hami.io/use-{word}-uuid", ""))
    if (only and card.uuid not in only) or card.uuid in _listed(pod.annotations.get(f"hami.io/no-use-{word}-uuid", "")):
        return "a card that the pod leaves out"
    beside = [slice_ for slice_, cards in running if any(other.uuid == card.uuid for other in cards)]
    foreign = used.get(card.uuid)
    slots = len(beside) + (foreign.slots if foreign else 0)
    modes = {slice_.mode for slice_ in beside} | ({foreign.mode} if foreign and foreign.slots else set())
    core_before = sum(slice_.core_percent for slice_ in beside) + (foreign.core_percent if foreign else 0)
    memory = wanted.memory_mib + sum(slice_.memory_mib for slice_ in beside) + (foreign.memory_mib if foreign else 0)
    everyone = [*beside, wanted]
    ai_core = sum(_ai(slice_)[0] for slice_ in everyone) + (foreign.ai_core if foreign else 0)
    ai_cpu = sum(_ai(slice_)[1] for slice_ in everyone) + (foreign.ai_cpu if foreign else 0)
    alone = wanted.core_percent == 100 or "mutex" in pod.annotations.get("hami.io/gpu-scheduler-policy", "")
    laws = {
        "more slices than slots": slots + 1 <= card.slots,
        "soft and hard slices on one card": modes <= {wanted.mode},
        "more memory than the card has": memory <= card.memory_mib,
        "more than 100 percent": core_before + wanted.core_percent <= 100,
        "not alone": not (alone and slots),
        "no core of its own on a full card": not (
            wanted.mode is Mode.SOFT and wanted.core_percent == 0 and core_before == 100
        ),
        "more AI cores than the card has": ai_core <= card.ai_core,
        "more AI CPUs than the card has": ai_cpu <= card.ai_cpu,
    }
    return next((law for law, kept in laws.items() if not kept), None)


def _ai(wanted: SliceRequest) -> tuple[int, int]:
    if wanted.mode is Mode.SOFT:
        return 0, 0
    for template in wanted.chip.templates:
        if template.name == wanted.template:
            return template.ai_core, template.ai_cpu
    return wanted.chip.ai_core, wanted.chip.ai_cpu


def _listed(text: str) -> set[str]:
    return {entry.strip() for entry in text.split(",") if entry.strip()}
