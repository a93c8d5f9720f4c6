"""Hypothesis strategies: small nodes, what is held of them, and pods that may or may not fit."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from hypothesis import strategies as st

from tests.support.chips import chip_named
from tests.support.cluster import B3, C, P, card
from vnpu import names
from vnpu.cards import Node, Use
from vnpu.containers import ContainerKind
from vnpu.mode import Mode
from vnpu.request import ContainerRequest, PodRequest, SliceRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vnpu.chips import Chip

_T = TypeVar("_T")
CHIPS = (B3, C, P, chip_named("Ascend910B2"), chip_named("Ascend910B4"), chip_named("Ascend910B4-1"))
CORES = (0, 0, 10, 50, 60, 100)
PARTS = (8, 4, 3, 2, 1)
TERMS = ("red", "blue")
"""What pods may ask of a node beside its cards."""
_SOME_TERMS = st.sets(st.sampled_from(TERMS), max_size=1)


# Hypothesis checks each strategy before its first use, which takes longer than most draws.
@lru_cache(typed=True)
def among(values: tuple[_T, ...]) -> st.SearchStrategy[_T]:
    """One of these."""
    return st.sampled_from(values)


@lru_cache(typed=True)
def _mostly(usual: Any, *, rare: Any) -> st.SearchStrategy[Any]:
    return st.integers(0, 11).map(lambda number: rare if number == 7 else usual)


@st.composite
def nodes(draw: st.DrawFn, of: Chip, name: str = "n") -> Node:
    """A node with cards of the chip, at times one of another chip among them."""
    count = draw(among((1, 2, 3, 3, 4, 4)))
    in_groups = draw(st.booleans())
    cards = []
    for index in range(count):
        other = draw(_mostly(of, rare=chip_named("Ascend910B4-1")))
        cards.append(
            card(
                index,
                other,
                node=name,
                memory_mib=other.memory_allocatable_mib // draw(_mostly(1, rare=2)),
                slots=draw(among((10, 4, 2, 1))),
                healthy=draw(_mostly(usual=True, rare=False)),
                network_id=draw(st.integers(0, 1)) if in_groups else None,
            )
        )
    cordoned = draw(_mostly((), rare=(cards[0].uuid,)))
    return Node(
        name,
        tuple(cards),
        soft=draw(_mostly(usual=True, rare=False)),
        cordoned=frozenset(cordoned),
        closed_to=dict.fromkeys(draw(_SOME_TERMS), "its taint is not tolerated"),
    )


@st.composite
def uses(draw: st.DrawFn, node: Node, usual: Mode = Mode.SOFT) -> dict[str, Use]:
    """What others hold of the node's cards, within what the cards have, mostly in one mode."""
    held = {}
    for entry in node.cards:
        mode = draw(among((None, usual, usual, usual, Mode.SOFT, Mode.HARD)))
        slots = draw(_mostly(1, rare=entry.slots))
        memory_mib = entry.memory_mib // draw(among(PARTS))
        if mode is Mode.SOFT:
            held[entry.uuid] = Use(slots, memory_mib, draw(among(CORES)), 0, 0, mode)
        elif mode is Mode.HARD:
            ai_core, ai_cpu = draw(st.integers(0, entry.ai_core)), draw(st.integers(0, entry.ai_cpu))
            held[entry.uuid] = Use(slots, memory_mib, 0, ai_core, ai_cpu, mode)
    return held


@st.composite
def slices(draw: st.DrawFn, of: Chip, mode: Mode) -> SliceRequest:
    count = draw(among((2, 2, 4) if of.super_pod else (1, 1, 1, 2, 3)))
    if mode is Mode.SOFT:
        memory_mib = of.memory_allocatable_mib // draw(among(PARTS))
        return SliceRequest(of, count, mode, memory_mib, draw(among(CORES)))
    template = draw(among((None, *of.templates)))
    if template is None:
        return SliceRequest(of, count, mode, of.memory_allocatable_mib)
    return SliceRequest(of, count, mode, template.memory_mib, 0, template.name)


@st.composite
def pods(draw: st.DrawFn, of: Chip, uuids: tuple[str, ...] = (), mode: Mode = Mode.SOFT) -> PodRequest:
    """A pod of which at least one container asks for the chip."""
    count = draw(st.integers(1, 3))
    inits = draw(st.integers(0, count - 1))
    asking = draw(st.integers(0, count - 1))
    containers = []
    for position in range(count):
        kind = ContainerKind.APP
        if position < inits:
            kind = draw(among((ContainerKind.INIT, ContainerKind.SIDECAR)))
        wanted = draw(slices(of, mode)) if position == asking or draw(_mostly(usual=True, rare=False)) else None
        containers.append(ContainerRequest(f"c{position}", kind, wanted))
    terms = draw(among((None, None, *TERMS)))
    return PodRequest("default", "pod", mode, tuple(containers), draw(_annotations(of, uuids)), terms)


@st.composite
def _annotations(draw: st.DrawFn, of: Chip, uuids: tuple[str, ...]) -> dict[str, str]:
    annotations = {}
    policy = draw(among((None, None, None, "binpack", "binpack", "spread", "mutex,binpack")))
    if policy is not None:
        annotations[names.CARD_POLICY] = policy
    if draw(_mostly(usual=False, rare=True)):
        annotations[names.NODE_POLICY] = "mutex"
    if uuids and draw(_mostly(usual=False, rare=True)):
        chosen = draw(st.lists(st.sampled_from(uuids), min_size=1, unique=True))
        key = draw(among((names.use_uuid, names.no_use_uuid)))
        annotations[key(of.common_word)] = ",".join(chosen)
    return annotations


@st.composite
def cases(draw: st.DrawFn) -> tuple[PodRequest, Node, Mapping[str, Use]]:
    """A pod, a node, and what is held of it."""
    of = draw(among(CHIPS))
    mode = draw(among((Mode.SOFT, Mode.SOFT, Mode.HARD)))
    node = draw(nodes(of))
    held = draw(uses(node, mode))
    return draw(pods(of, tuple(entry.uuid for entry in node.cards), mode)), node, held


@st.composite
def grouped_cases(draw: st.DrawFn) -> tuple[PodRequest, Node, Mapping[str, Use]]:
    """A pod that asks for several of eight cards in groups, of which some are taken."""
    cards = tuple(card(index, network_id=draw(st.integers(0, 2))) for index in range(8))
    taken = draw(st.sets(st.sampled_from([entry.uuid for entry in cards]), max_size=4))
    wanted = SliceRequest(B3, draw(st.integers(2, 5)), Mode.SOFT, B3.memory_allocatable_mib // 2, 10)
    held = {uuid: Use(1, B3.memory_allocatable_mib // draw(among((1, 2))), 50, 0, 0, Mode.SOFT) for uuid in taken}
    policy = draw(among(("binpack", "spread")))
    pod = PodRequest(
        "default",
        "pod",
        Mode.SOFT,
        (ContainerRequest("main", ContainerKind.APP, wanted),),
        {names.CARD_POLICY: policy},
    )
    return pod, Node("n", cards, soft=True), held


@st.composite
def riddles(draw: st.DrawFn) -> tuple[PodRequest, Node, Mapping[str, Use]]:
    """Containers that hardly fit together: sizes and free memory are eighths of a card."""
    of = draw(among((B3, P, C)))
    eighth = of.memory_allocatable_mib // 8
    count = draw(among((2, 4) if of.super_pod else (2, 3, 4)))
    node = Node("n", tuple(card(index, of) for index in range(count)), soft=True)
    held = {
        entry.uuid: Use(1, eighth * eighths, draw(among((0, 20, 40))), 0, 0, Mode.SOFT)
        for entry in node.cards
        if (eighths := draw(st.integers(0, 6)))
    }
    containers = []
    for position in range(draw(st.integers(2, 4))):
        kind = draw(among((ContainerKind.APP, ContainerKind.APP, ContainerKind.INIT, ContainerKind.SIDECAR)))
        cards = draw(among((2,) if of.super_pod else (1, 1, 1, 2)))
        wanted = SliceRequest(of, cards, Mode.SOFT, eighth * draw(st.integers(1, 6)), draw(among((0, 20, 40, 60, 100))))
        containers.append(ContainerRequest(f"c{position}", kind, wanted))
    order = [ContainerKind.INIT, ContainerKind.SIDECAR]
    containers.sort(key=lambda entry: entry.kind not in order)  # init containers and sidecars come first, mixed
    policy = draw(among(("binpack", "spread")))
    return PodRequest("default", "pod", Mode.SOFT, tuple(containers), {names.CARD_POLICY: policy}), node, held


@st.composite
def clusters(draw: st.DrawFn) -> tuple[Chip, tuple[Node, ...], Mapping[str, Use]]:
    """Nodes with cards of one chip, and what is held of them."""
    of = draw(among(CHIPS))
    found = tuple(draw(nodes(of, f"n{number}")) for number in range(draw(st.integers(1, 4))))
    held: dict[str, Use] = {}
    for node in found:
        held |= draw(uses(node))
    return of, found, held


def smaller(draw: Any, pod: PodRequest) -> PodRequest:
    """The pod with one of its demands made smaller."""
    position = draw(st.sampled_from([index for index, entry in enumerate(pod.containers) if entry.slice is not None]))
    wanted = pod.containers[position].slice
    assert wanted is not None
    step = 2 if wanted.chip.super_pod else 1
    less = [replace(wanted, memory_mib=draw(st.integers(1, wanted.memory_mib)), template=wanted.template)]
    if wanted.mode is Mode.SOFT:
        less.append(replace(wanted, core_percent=draw(st.integers(0, wanted.core_percent))))
    if wanted.count > step:
        less.append(replace(wanted, count=wanted.count - step))
    if sum(entry.slice is not None for entry in pod.containers) > 1:
        less.append(None)
    containers = list(pod.containers)
    containers[position] = replace(containers[position], slice=draw(st.sampled_from(less)))
    return replace(pod, containers=tuple(containers))
