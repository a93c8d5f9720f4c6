"""What one pod holds: its allocation annotations, turned into amounts per card.

* Succeeded and Failed pods hold nothing; pods in every other phase do, deleting ones too.
* The ledger is ``hami.io/<chip>-devices-allocated``, else ``huawei.com/<chip>``; where both are there they must agree.
* A bound pod that asks for a chip must have one of them, and it must tell all its cards. A pod that is not bound and
  has neither holds nothing.
* A pod holds the peak of Kubernetes' order rule on each card, for init containers may run again.
* What is unknown is occupied: a slice that does not say its memory holds the whole card, and a hard slice without a
  template holds all of its AI cores.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from vnpu import asked, names
from vnpu.annotations import allocated
from vnpu.annotations.slots import Owner
from vnpu.cards import NO_USE, Use
from vnpu.chips import Chip, ChipTable
from vnpu.containers import ContainerKind, containers, resources
from vnpu.errors import ABSENT, AnnotationError, InputError, bare
from vnpu.mode import Mode
from vnpu.objects import ENDED_PHASES, annotation_path, annotations_of, mapping_at
from vnpu.request import order_rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from vnpu.annotations.allocated import AllocatedCard
    from vnpu.containers import Container

    _Asking: TypeAlias = tuple[Container, frozenset[str]]

_T = TypeVar("_T")
_NOTHING: Final = (0, "0")
"""A quantity of nothing, as the API server spells it."""


class Holding(NamedTuple):
    """What a pod holds of the cards of one chip.

    Attributes:
        chip: the chip.
        uses: what is held of each card, by UUID.
        warnings: sentences about annotations that are legal but odd.
    """

    chip: Chip
    uses: Mapping[str, Use]
    warnings: Sequence[str]


def held(pod: Mapping[str, Any], chips: ChipTable) -> dict[str, Use]:
    """What a pod holds of each card, by UUID; ``{}`` where it holds nothing.

    Args:
        pod: the Pod as JSON.
        chips: the chip table.

    Raises:
        FieldError: it cannot be told.
    """
    merged: dict[str, Use] = {}
    for holding in holdings(pod, chips):
        for uuid, use in holding.uses.items():
            merged[uuid] = merged.get(uuid, NO_USE).plus(use)
    return merged


def holdings(pod: Mapping[str, Any], chips: ChipTable) -> list[Holding]:
    """What a pod holds, chip by chip; only the chips of which it holds something.

    Args:
        pod: the Pod as JSON.
        chips: the chip table.

    Raises:
        FieldError: it cannot be told.
    """
    if mapping_at(pod, "status").get("phase") in ENDED_PHASES:
        return []
    annotations = annotations_of(pod)
    bound = bool(mapping_at(pod, "spec").get("nodeName"))
    described = [
        chip
        for chip in chips
        if names.allocated(chip.common_word) in annotations or names.runtime_info(chip.common_word) in annotations
    ]
    if not bound and not described:
        return []
    asking = _asking(pod, chips)
    found = []
    for chip in described:
        owners = _owners(asking, chip)
        allocation = allocated.read(annotations, owners, chip)
        if allocation.cards:
            uses = _peaks(allocation.cards, owners, chip, _mode(annotations, allocation.cards))
            found.append(Holding(chip, uses, allocation.warnings))
            if bound:
                _check_complete(_cards_asked(asking, chip), len(allocation.cards), chip)
    if bound:
        _check_told(asking, {holding.chip.common_word for holding in found})
    return found


def waits(pod: Mapping[str, Any], chips: ChipTable) -> bool:
    """Whether a pod that holds nothing asks for an NPU, and is not through with it.

    Raises:
        InputError: its containers cannot be read.
    """
    finished = mapping_at(pod, "status").get("phase") in ENDED_PHASES
    return not finished and any(words for _, words in _asking(pod, chips))


def _check_told(asking: Sequence[_Asking], told: set[str]) -> None:
    for container, words in asking:
        for word in sorted(words - told):
            raise AnnotationError(
                annotation_path(names.allocated(word)),
                ABSENT,
                f"the pod is bound and its container {bare(container.name)} asks for {word}, but which cards it "
                "holds is not told",
            )


def _check_complete(wanted: int, told: int, chip: Chip) -> None:
    """Cards that are asked for and not told are held all the same, and nobody knows which."""
    if told < wanted:
        raise AnnotationError(
            annotation_path(names.allocated(chip.common_word)),
            told,
            f"the pod is bound and its app containers ask for {wanted} cards of {chip.common_word}, but fewer are told",
        )


def _cards_asked(asking: Sequence[_Asking], chip: Chip) -> int:
    """Cards of the chip that the app containers ask for; Volcano books nothing for the others."""
    return sum(
        asked.count(asked.find(container, ChipTable((chip,)))) or 1
        for container, words in asking
        if container.kind is ContainerKind.APP and chip.common_word in words
    )


def _asking(pod: Mapping[str, Any], chips: ChipTable) -> list[_Asking]:
    """Each container with the common words of the chips that it asks for."""
    asking = []
    for container in containers(pod):
        words = set()
        for named in resources(container):
            if isinstance(named, InputError):
                raise named
            entry = chips.resource(named.name)
            if entry is not None and named.value not in _NOTHING:
                words.add(entry[0].common_word)
        asking.append((container, frozenset(words)))
    return asking


def _owners(asking: Sequence[_Asking], chip: Chip) -> list[Owner]:
    return [Owner(container.name, container.kind, chip.common_word in words) for container, words in asking]


def _mode(annotations: Mapping[str, Any], cards: Sequence[AllocatedCard]) -> Mode:
    """How the pod's slices run. To schedulers every mark but ``hami-core`` is hard, so it counts as such.

    A pod without a mark (older than our webhook) is soft where a slice has a core of its own and no template, for hard
    slices book none. Else it counts as hard, which keeps more of the card.
    """
    mark = annotations.get(names.MODE)
    if not mark:
        soft = any(card.core for card in cards) and all(card.template is None for card in cards)
        return Mode.SOFT if soft else Mode.HARD
    return Mode.SOFT if mark == Mode.SOFT.value else Mode.HARD


def _peaks(cards: Iterable[AllocatedCard], owners: Sequence[Owner], chip: Chip, mode: Mode) -> dict[str, Use]:
    parts: dict[str, list[tuple[ContainerKind, Use]]] = defaultdict(list)
    for card in cards:
        # Cards of nobody in particular count as held all the time.
        kind = ContainerKind.APP if card.container is None else owners[card.container].kind
        parts[card.uuid].append((kind, _use(card, chip, mode)))
    return {uuid: order_rule(uses)[0] for uuid, uses in parts.items()}


def _use(card: AllocatedCard, chip: Chip, mode: Mode) -> Use:
    # Without a figure the container is held to none: 0 MiB means "no limit" to every limiter.
    memory_mib = card.memory_mib or chip.memory_allocatable_mib
    if mode is Mode.SOFT:
        return Use(1, memory_mib, card.core, 0, 0, mode)
    if card.template is None:
        return Use(1, memory_mib, 0, chip.ai_core, chip.ai_cpu, mode)
    # Volcano has booked less than the template that it then gave.
    memory_mib = max(card.memory_mib or 0, card.template.memory_mib)
    return Use(1, memory_mib, 0, card.template.ai_core, card.template.ai_cpu, mode)


def cards_of(pods: Iterable[Mapping[str, Any]], uid: str, container: str, chip: Chip) -> tuple[AllocatedCard, ...]:
    """The cards of one container, found by the pod's UID and the container's name: never by age.

    Args:
        pods: Pods as JSON.
        uid: of the pod that is meant.
        container: name of the container that is meant.
        chip: which of its chips.

    Raises:
        FieldError: not exactly one pod and container is meant, or its annotations do not tell what is whose.
    """
    pod = _only([pod for pod in pods if mapping_at(pod, "metadata").get("uid") == uid], "metadata.uid", uid)
    found = [cards for one, cards in cards_by_container(pod, chip) if one.name == container]
    return _only(found, "container", container)


def cards_by_container(pod: Mapping[str, Any], chip: Chip) -> list[tuple[Container, tuple[AllocatedCard, ...]]]:
    """Each container of a pod with its own cards of a chip, ``()`` where it has none.

    The annotations are read once, so that a pod of many containers takes no more time than its text is long.

    Raises:
        FieldError: the annotations do not tell what is whose.
    """
    asking = _asking(pod, ChipTable((chip,)))
    cards = allocated.read(annotations_of(pod), _owners(asking, chip), chip).cards
    found = defaultdict(list)
    for card in cards:
        if card.container is None:
            path = annotation_path(names.runtime_info(chip.common_word))
            raise AnnotationError(path, f"{len(cards)} cards", "whose they are is told by device text only")
        found[card.container].append(card)
    return [(container, tuple(found[place])) for place, (container, _) in enumerate(asking)]


def _only(found: Sequence[_T], path: str, value: str) -> _T:
    if len(found) != 1:
        raise InputError(path, value, f"exactly one match is expected, and {len(found)} are there")
    return found[0]
