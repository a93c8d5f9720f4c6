"""The small parts that all annotation texts are made of: where they stand, card UUIDs, whole numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from vnpu.errors import AnnotationError, InputError, key
from vnpu.quantity import INT32_MAX

if TYPE_CHECKING:
    from collections.abc import Mapping

_SEPARATORS: Final = frozenset(",:;")
_LONGEST_NUMBER: Final = 32
"""Digits; more than any 32-bit number has, leading zeros included."""

UUID_ALLOWED: Final = "a card UUID is expected: printable, without spaces and without , : ;"
CHIP_ALLOWED: Final = "the common word of a chip is expected, such as Ascend910B3"
NUMBER_ALLOWED: Final = f"a whole number from 0 to {INT32_MAX} is expected"


def annotation_path(name: str) -> str:
    """Where the annotation ``name`` of a pod or node stands, for errors."""
    return key("metadata.annotations", name)


def mapping_at(document: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """The mapping at ``document[names[0]][names[1]]...``, empty where it or one on the way is absent.

    Raises:
        InputError: one of them is no mapping.
    """
    path = ""
    for name in names:
        path = key(path, name)
        value = document.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise InputError(path, value, "a mapping is expected")
        document = value
    return document


def annotations_of(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The annotations of a pod or node, empty where there are none.

    Raises:
        InputError: the metadata or its annotations are no mappings.
    """
    return mapping_at(document, "metadata", "annotations")


def text(value: Any, path: str) -> str:
    """The value of an annotation, which is always a text.

    Raises:
        AnnotationError: it is not.
    """
    if not isinstance(value, str):
        raise AnnotationError(path, value, "a text is expected")
    return value


def is_word(value: str) -> bool:
    """Whether a card or chip can be called so: device text separates by ``, : ;``, trims spaces and has no escapes."""
    return bool(value) and value.isprintable() and " " not in value and _SEPARATORS.isdisjoint(value)


def number(digits: str, path: str) -> int:
    """A whole number of 32 bits, as Go's ``ParseInt`` reads it, but never a negative one (that would free memory).

    Raises:
        AnnotationError: anything else.
    """
    plain = digits.removeprefix("+")
    if plain.isascii() and plain.isdigit() and len(plain) <= _LONGEST_NUMBER:
        value = int(plain)
        if value <= INT32_MAX:
            return value
    raise AnnotationError(path, digits, NUMBER_ALLOWED)
