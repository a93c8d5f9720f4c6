"""Whose turn it is: kubelet asks for so many slots and says no name, so the pod must be found.

It is the one that the node lock names; else the only bound, pending pod whose next unserved entry has so many cards.
Several pods may stand for each other where everything that any of them still waits for is one and the same: whichever
is taken, each gets its due in the end, also when kubelet gives one of them up half-way. In all other cases there is no
answer: a wrong guess gives one pod the quota of another, a refusal makes one pod start again.

What is served is told by ``-devices-to-allocate``, from which the plugin takes the entry before it answers, and by
kubelet's own list. Pods that are being deleted count: kubelet may be asking for one of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from interceptor.device_plugin.answer import is_ceiling, mode_of
from vnpu import names, quantity
from vnpu.annotations import devices
from vnpu.containers import containers, resources
from vnpu.errors import ABSENT, AnnotationError, FieldError, InputError, QuantityError, VnpuError, few
from vnpu.holdings import cards_by_container
from vnpu.objects import annotation_path, annotations_of, mapping_at

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from vnpu.annotations.allocated import AllocatedCard
    from vnpu.chips import Chip, ChipTable
    from vnpu.containers import Container

_PENDING: Final = "Pending"
_FAILED: Final = "Failed"
_SETTLED: Final = (names.BIND_PHASE_SUCCESS, names.BIND_PHASE_FAILED)


class Shown(NamedTuple):
    """A container that kubelet lists with devices of a resource: it was served."""

    namespace: str
    pod: str
    container: str
    resource: str


@dataclass(frozen=True, slots=True)
class Entry:
    """What one container of a pod is to get of one chip.

    Attributes:
        chip: the chip.
        slot: its place in the device text.
        container: whose it is.
        cards: its cards.
    """

    chip: Chip
    slot: int
    container: Container
    cards: tuple[AllocatedCard, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """The pod, and its entry that is to be served now.

    Attributes:
        pod: the Pod as JSON.
        entry: the entry.
        last: whether nothing of the pod is left to be served afterwards.
    """

    pod: Mapping[str, Any]
    entry: Entry
    last: bool


class NotFoundError(VnpuError):
    """The pod cannot be told.

    Attributes:
        pods: those that it may be, as JSON.
    """

    def __init__(self, message: str, pods: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(message)
        self.pods = pods


def unserved(pod: Mapping[str, Any], chips: Iterable[Chip], shown: Collection[Shown] = ()) -> list[Entry]:
    """The entries of a bound pod that no container got yet, chip by chip, each in kubelet's order.

    Args:
        pod: the Pod as JSON.
        chips: the chips that are looked at.
        shown: what kubelet lists.

    Raises:
        FieldError: the annotations do not tell.
    """
    found: list[Entry] = []
    for chip in chips:
        asking = [container.name for container in containers(pod) if _asked(container, chip)]
        annotations = annotations_of(pod)
        if not asking and names.to_allocate(chip.common_word) not in annotations:
            continue
        waiting = _waiting(pod, annotations, chip)
        found += (entry for entry in waiting if _shown(pod, entry.container.name, chip) not in shown)
    return found


def _waiting(pod: Mapping[str, Any], annotations: Mapping[str, Any], chip: Chip) -> Iterator[Entry]:
    word = chip.common_word
    whole, rest = (_slots(annotations, name) for name in (names.allocated(word), names.to_allocate(word)))
    owners = [(container, cards) for container, cards in cards_by_container(pod, chip) if cards]
    filled = [index for index, slot in enumerate(whole) if slot]
    if len(filled) != len(owners):
        path = annotation_path(names.allocated(word))
        held = f"{len(owners)} containers hold cards, and {len(filled)} slots name some"
        raise AnnotationError(path, annotations[names.allocated(word)], held)
    # Both orders are that of the containers, whichever form the text has.
    for index, (container, cards) in zip(filled, owners, strict=True):
        left = rest[index] if index < len(rest) else ()
        if left and left != whole[index]:
            path = annotation_path(names.to_allocate(word))
            raise AnnotationError(
                path, annotations[names.to_allocate(word)], "it tells other cards than what is booked"
            )
        if left:
            yield Entry(chip, index, container, cards)


def _slots(annotations: Mapping[str, Any], name: str) -> tuple[devices.Slot, ...]:
    path = annotation_path(name)
    if name not in annotations:
        raise AnnotationError(path, ABSENT, "the pod asks for this chip, and no scheduler told which cards it gets")
    return devices.decode(annotations[name], path)


def _asked(container: Container, chip: Chip) -> int:
    """Cards of the chip that a container asks for; what cannot be read counts as one."""
    for named in resources(container):
        if isinstance(named, InputError):
            raise named
        if named.name == chip.resource_name:
            try:
                return quantity.whole(named.value, low=0, high=quantity.INT32_MAX)
            except QuantityError:
                return 1
    return 0


def _shown(pod: Mapping[str, Any], container: str, chip: Chip) -> Shown:
    metadata = mapping_at(pod, "metadata")
    return Shown(metadata.get("namespace", ""), metadata.get("name", ""), container, chip.resource_name)


def is_here(pod: Mapping[str, Any], node: str) -> bool:
    """Whether kubelet on this node may be asking for the pod."""
    return (
        mapping_at(pod, "spec").get("nodeName") == node and mapping_at(pod, "status").get("phase", _PENDING) == _PENDING
    )


def is_settled(pod: Mapping[str, Any], node: str) -> bool:
    """Whether a pod whose lock stands on this node needs it no more: it got all or was refused, or lives elsewhere."""
    bound = mapping_at(pod, "spec").get("nodeName", "")
    return bool(bound) and (not is_here(pod, node) or annotations_of(pod).get(names.BIND_PHASE) in _SETTLED)


def is_given_up(pod: Mapping[str, Any], node: str) -> bool:
    """Whether kubelet on this node gave up a pod that still stands as one that is to be served."""
    here = mapping_at(pod, "spec").get("nodeName") == node and mapping_at(pod, "status").get("phase") == _FAILED
    return here and annotations_of(pod).get(names.BIND_PHASE) == names.BIND_PHASE_ALLOCATING


def of_owner(
    pod: Mapping[str, Any], node: str, chip: Chip, count: int, chips: ChipTable, shown: Collection[Shown] = ()
) -> Found | None:
    """The entry of the pod that the node lock names, None where it cannot be the one that kubelet asks for.

    Raises:
        FieldError: it may be, and its annotations do not tell.
    """
    return _next(unserved(pod, chips, shown), pod, chip, count) if is_here(pod, node) else None


def only(
    pods: Iterable[Mapping[str, Any]],
    node: str,
    chip: Chip,
    count: int,
    chips: ChipTable,
    shown: Collection[Shown] = (),
) -> Found:
    """The entry that kubelet asks for, where no lock names the pod.

    Args:
        pods: Pods as JSON, those of this node among them.
        node: this node.
        chip: the chip whose resource kubelet asks for.
        count: how many cards.
        chips: all chips that the pods may ask for.
        shown: what kubelet lists as served.

    Raises:
        NotFoundError: no pod waits for so many cards, or it may be one of several.
    """
    candidates: list[Found] = []
    shares: set[Any] = set()
    unclear: list[tuple[Mapping[str, Any], FieldError]] = []
    for pod in pods:
        if not is_here(pod, node):
            continue
        try:
            entries = unserved(pod, chips, shown)
            found = _next(entries, pod, chip, count)
            if found is not None:
                shares.update(_share(pod, entry) for entry in entries)
                candidates.append(found)
        except FieldError as error:
            if _may_ask(pod, chip, count, shown):
                unclear.append((pod, error))
    if unclear:
        reasons = few([f"{_label(pod)}: {error}" for pod, error in unclear])
        raise NotFoundError(
            f"kubelet asks for {count} of {chip.resource_name}, and what a waiting pod gets cannot be told: {reasons}",
            [pod for pod, _ in unclear],
        )
    if not candidates:
        raise NotFoundError(f"no pending pod of this node waits for {count} of {chip.resource_name}")
    if len(candidates) > 1 and len(shares) > 1:
        labels = few([_label(found.pod) for found in candidates])
        raise NotFoundError(
            f"kubelet asks for {count} of {chip.resource_name}, several pods wait for different shares of so many "
            f"cards ({labels}), and the node lock names none of them: let the scheduler lock the node",
            [found.pod for found in candidates],
        )
    return candidates[0]


def _next(entries: Sequence[Entry], pod: Mapping[str, Any], chip: Chip, count: int) -> Found | None:
    entry = next((entry for entry in entries if entry.chip == chip), None)
    if entry is None or len(entry.cards) != count:
        return None
    return Found(pod, entry, last=len(entries) == 1)


def _share(pod: Mapping[str, Any], entry: Entry) -> Any:
    """All that decides what the container of an entry gets, to be compared."""
    cards = tuple((card.uuid, card.memory_mib, card.core, card.template) for card in entry.cards)
    return entry.chip.common_word, cards, mode_of(pod, entry.cards, entry.chip), is_ceiling(pod, entry.container)


def _may_ask(pod: Mapping[str, Any], chip: Chip, count: int, shown: Collection[Shown]) -> bool:
    """Whether kubelet may ask for so many cards for a pod whose annotations cannot be read."""
    try:
        return any(
            _asked(container, chip) == count and _shown(pod, container.name, chip) not in shown
            for container in containers(pod)
        )
    except FieldError:
        return True


def _label(pod: Mapping[str, Any]) -> str:
    metadata = mapping_at(pod, "metadata")
    return f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
