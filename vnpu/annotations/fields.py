"""The small parts that all annotation texts are made of: card UUIDs and whole numbers."""

from __future__ import annotations

from typing import Any, Final

from vnpu.errors import AnnotationError
from vnpu.quantity import INT32_MAX

_SEPARATORS: Final = frozenset(",:;")
_LONGEST_NUMBER: Final = 32
"""Digits; more than any 32-bit number has, leading zeros included."""

UUID_ALLOWED: Final = "a card UUID is expected: printable, without spaces and without , : ;"
CHIP_ALLOWED: Final = "the common word of a chip is expected, such as Ascend910B3"
NUMBER_ALLOWED: Final = f"a whole number from 0 to {INT32_MAX} is expected"


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
