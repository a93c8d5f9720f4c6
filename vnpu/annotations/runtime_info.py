"""``huawei.com/<chip>``: what the device plugin gives to the containers, a JSON array with one object per card.

The objects follow the containers in order, without a boundary between them, so two containers on one card have two
objects with one UUID. HAMi 2.10 writes memory and core in every mode, Volcano only ``temp`` in hard mode and nothing
but the UUID for a whole card: every field may be missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from vnpu.annotations import gojson
from vnpu.errors import item

if TYPE_CHECKING:
    from collections.abc import Iterable

_FIELDS: Final = ("UUID", "temp", "memory", "core")


@dataclass(frozen=True, slots=True)
class RuntimeInfo:
    """What one container gets of one card, None where the text does not say.

    As everywhere in this JSON, the zero of a field and its absence are the same.

    Attributes:
        uuid: the card.
        template: the template of a hard slice.
        memory_mib: MiB of the card.
        core: percent of the card's compute.
    """

    uuid: str | None = None
    template: str | None = None
    memory_mib: int | None = None
    core: int | None = None

    def __post_init__(self) -> None:
        for name in self.__slots__:
            object.__setattr__(self, name, getattr(self, name) or None)


def decode(value: Any, path: str = "") -> tuple[RuntimeInfo, ...]:
    """The cards in the text, in its order; ``null``, which HAMi writes for pods of other vendors, has none.

    Args:
        value: the annotation's value.
        path: the annotation, for the error.

    Raises:
        AnnotationError: no JSON array of objects, or a field that holds what it must not hold.
    """
    return tuple(
        RuntimeInfo(
            gojson.string(fields, "UUID", place),
            gojson.string(fields, "temp", place),
            gojson.whole(fields, "memory", place),
            gojson.whole(fields, "core", place),
        )
        for index, fields in enumerate(gojson.objects(value, _FIELDS, path))
        for place in (item(path, index),)
    )


def encode(infos: Iterable[RuntimeInfo]) -> str:
    """The text for these cards, byte for byte as upstream writes it.

    Raises:
        AnnotationError: a text or number that :func:`decode` would refuse.
    """
    entries = []
    for index, info in enumerate(infos):
        values = zip(_FIELDS, (info.uuid, info.template, info.memory_mib, info.core), strict=True)
        fields = {name: value for name, value in values if value is not None}
        for name in ("UUID", "temp"):
            gojson.string(fields, name, item("", index))
        for name in ("memory", "core"):
            gojson.whole(fields, name, item("", index))
        entries.append(fields)
    return gojson.dumps(entries)
