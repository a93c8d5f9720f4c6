"""Device text: which cards each container of a pod holds, the form that HAMi and Volcano share.

``uuid,chip,memory,core`` and ``:`` for every card, ``;`` after every container: ``A,Ascend910B3,8192,20:;;`` is one
card for the first container and none for the second. Memory is MiB and core percent, both per card. HAMi writes a slot
for each container of the pod, Volcano one for each container that asks (:mod:`vnpu.annotations.slots` tells them
apart). Read with tolerance for what is legal but odd; text that says nothing certain is an error, never an empty slot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from vnpu.annotations.fields import CHIP_ALLOWED, NUMBER_ALLOWED, UUID_ALLOWED, is_word, number, text
from vnpu.errors import AnnotationError, item
from vnpu.quantity import INT32_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_CARD_END: Final = ":"
_SLOT_END: Final = ";"
_FIELDS: Final = 4


@dataclass(frozen=True, slots=True)
class DeviceEntry:
    """One card of one container.

    Attributes:
        uuid: the card.
        chip: the chip's common word.
        memory_mib: MiB of the card, 0 where the writer booked none.
        core: percent of the card's compute, 0 for none of its own and in hard mode.
    """

    uuid: str
    chip: str
    memory_mib: int
    core: int


Slot = tuple[DeviceEntry, ...]
"""The cards of one container, ``()`` for none."""


def decode(value: Any, path: str = "") -> tuple[Slot, ...]:
    """The slots of a device text, in its order; ``""`` has none.

    Exactly one empty piece at the end belongs to the last ``;`` and is no slot. Spaces around items, a missing
    separator at the end, empty pieces between ``:`` and fields after the fourth are let through, as upstream does.

    Args:
        value: the annotation's value.
        path: the annotation, for the error.

    Raises:
        AnnotationError: a card without its four fields, an impossible UUID, a number that is negative or above 32 bits.
    """
    pieces = text(value, path).split(_SLOT_END)
    if not pieces[-1].strip():
        pieces.pop()
    return tuple(_decode_slot(piece, item(path, index)) for index, piece in enumerate(pieces))


def _decode_slot(piece: str, path: str) -> Slot:
    cards = enumerate(piece.split(_CARD_END))
    return tuple(_decode_card(card, item(path, index)) for index, card in cards if card.strip())


def _decode_card(card: str, path: str) -> DeviceEntry:
    fields = [field.strip() for field in card.split(",")]
    if len(fields) < _FIELDS:
        raise AnnotationError(path, card, "uuid,chip,memory,core is expected")
    uuid, chip, memory, core = fields[:_FIELDS]
    if not is_word(uuid):
        raise AnnotationError(path, card, UUID_ALLOWED)
    if not is_word(chip):
        raise AnnotationError(path, card, CHIP_ALLOWED)
    return DeviceEntry(uuid, chip, number(memory, path), number(core, path))


def encode(containers: Iterable[Sequence[DeviceEntry]]) -> str:
    """The device text of these containers, byte for byte as upstream writes it.

    Raises:
        AnnotationError: a UUID or chip that the text cannot carry, or a number outside of 32 bits.
    """
    return "".join(
        "".join(_encode_card(entry, item("", index)) for entry in entries) + _SLOT_END
        for index, entries in enumerate(containers)
    )


def _encode_card(entry: DeviceEntry, path: str) -> str:
    if not is_word(entry.uuid):
        raise AnnotationError(path, entry.uuid, UUID_ALLOWED)
    if not is_word(entry.chip):
        raise AnnotationError(path, entry.chip, CHIP_ALLOWED)
    for amount in (entry.memory_mib, entry.core):
        if not 0 <= amount <= INT32_MAX:
            raise AnnotationError(path, amount, NUMBER_ALLOWED)
    return f"{entry.uuid},{entry.chip},{entry.memory_mib},{entry.core}{_CARD_END}"
