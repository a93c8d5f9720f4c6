"""What the annotations of one pod say that it holds of one chip: device text and JSON, read together.

The device text is the ledger and knows the containers; the JSON knows the templates. Where both are there, they must
agree on the cards and, where the JSON says them, on memory and core.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vnpu import names
from vnpu.annotations import devices, runtime_info, slots
from vnpu.annotations.fields import UUID_ALLOWED, is_word
from vnpu.errors import AnnotationError, bare, item, key
from vnpu.objects import annotation_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vnpu.annotations.devices import DeviceEntry, Slot
    from vnpu.annotations.runtime_info import RuntimeInfo
    from vnpu.annotations.slots import Owner
    from vnpu.chips import Chip, Template


@dataclass(frozen=True, slots=True)
class AllocatedCard:
    """One card of one container.

    Attributes:
        uuid: the card.
        container: the container's place in the pod, init containers first; None where the annotations do not tell.
        memory_mib: MiB of the card, None where they do not tell.
        core: percent of the card's compute, 0 for none of its own.
        template: the template of a hard slice, None for a whole card and for soft slices.
    """

    uuid: str
    container: int | None
    memory_mib: int | None
    core: int
    template: Template | None


@dataclass(frozen=True, slots=True)
class Allocation:
    """What a pod holds of a chip.

    Attributes:
        cards: card by card, in the order of the containers; a card stands once for each container that holds it.
        warnings: sentences about what is legal but odd.
    """

    cards: tuple[AllocatedCard, ...]
    warnings: tuple[str, ...] = ()


def read(annotations: Mapping[str, Any], owners: Sequence[Owner], chip: Chip) -> Allocation:
    """What the pod holds of the chip; no cards where it has no allocation annotation of the chip.

    Args:
        annotations: the pod's annotations.
        owners: the pod's containers, init containers first, and which of them ask for this chip.
        chip: the chip.

    Raises:
        AnnotationError: a text that cannot be decoded, that names another chip or an unknown template, whose slots fit
            no container, or texts that disagree.
    """
    word = chip.common_word
    text_name, info_name = names.allocated(word), names.runtime_info(word)
    infos: tuple[RuntimeInfo, ...] | None = None
    if info_name in annotations:
        infos = runtime_info.decode(annotations[info_name], annotation_path(info_name))
    if text_name in annotations:
        path = annotation_path(text_name)
        decoded = devices.decode(annotations[text_name], path)
        _check_chip(decoded, word, path)
        matched = slots.match(owners, decoded, path)
        return Allocation(_from_text(matched.containers, infos, chip), matched.warnings)
    return Allocation(_from_json(infos or (), owners, chip))


def _check_chip(decoded: Sequence[Slot], word: str, path: str) -> None:
    for index, slot in enumerate(decoded):
        for place, entry in enumerate(slot):
            if entry.chip != word:
                raise AnnotationError(item(item(path, index), place), entry.chip, f"{word} is expected in its own text")


def _from_text(
    containers: Sequence[Slot], infos: Sequence[RuntimeInfo] | None, chip: Chip
) -> tuple[AllocatedCard, ...]:
    entries = [(container, entry) for container, slot in enumerate(containers) for entry in slot]
    templates: Sequence[Template | None] = [None] * len(entries)
    if infos is not None:
        templates = _agreed([entry for _, entry in entries], infos, chip)
    return tuple(
        AllocatedCard(entry.uuid, container, entry.memory_mib, entry.core, template)
        for (container, entry), template in zip(entries, templates, strict=True)
    )


def _agreed(entries: Sequence[DeviceEntry], infos: Sequence[RuntimeInfo], chip: Chip) -> list[Template | None]:
    """The templates of the entries, from the JSON that must speak of the same cards.

    A card that several containers hold has its objects in the order of the containers.
    """
    path = annotation_path(names.runtime_info(chip.common_word))
    text = names.allocated(chip.common_word)
    waiting: dict[str | None, list[int]] = defaultdict(list)
    for index in reversed(range(len(infos))):
        waiting[infos[index].uuid].append(index)
    templates = []
    for entry in entries:
        if not waiting[entry.uuid]:
            raise AnnotationError(path, entry.uuid, f"{text} holds this card once more than this annotation")
        index = waiting[entry.uuid].pop()
        place, info = item(path, index), infos[index]
        for name, said, booked in (("memory", info.memory_mib, entry.memory_mib), ("core", info.core, entry.core)):
            if said is not None and said != booked:
                raise AnnotationError(key(place, name), said, f"{text} says {booked} for card {bare(entry.uuid)}")
        templates.append(_template(info, chip, place))
    for uuid, left in waiting.items():
        if left:
            raise AnnotationError(item(path, left[-1]), uuid, f"{text} does not hold this card, or not so often")
    return templates


def _from_json(infos: Sequence[RuntimeInfo], owners: Sequence[Owner], chip: Chip) -> tuple[AllocatedCard, ...]:
    """The cards of a pod without device text. Only with one container that asks is it plain whose they are."""
    path = annotation_path(names.runtime_info(chip.common_word))
    askers = [index for index, owner in enumerate(owners) if owner.asks]
    container = askers[0] if len(askers) == 1 else None
    cards = []
    for index, info in enumerate(infos):
        place = item(path, index)
        if info.uuid is None or not is_word(info.uuid):
            raise AnnotationError(key(place, "UUID"), info.uuid, UUID_ALLOWED)
        cards.append(AllocatedCard(info.uuid, container, info.memory_mib, info.core or 0, _template(info, chip, place)))
    return tuple(cards)


def _template(info: RuntimeInfo, chip: Chip, path: str) -> Template | None:
    if info.template is None:
        return None
    template = chip.template_named(info.template)
    if template is None:
        known = ", ".join(template.name for template in chip.templates) or "no templates"
        raise AnnotationError(key(path, "temp"), info.template, f"{chip.common_word} has {known}")
    return template
