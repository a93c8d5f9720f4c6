"""Kubernetes quantities, read exactly.

One parser for every number that a pod, a quota or a node can carry, in every legal spelling
(k8s.io/apimachinery/pkg/api/resource: ``8192``, ``"10k"``, ``"8192000m"``, ``"10e3"``, ``"8Ki"``). The API server
hands numbers back in its own canonical spelling, so ``10000`` arrives as ``"10k"``. There is no float on the way:
a value is exact or refused, never rounded, cut or clamped.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, TypeGuard

from vnpu.errors import QuantityError

INT32_MAX: Final = 2**31 - 1
"""The largest count, MiB or percent: HAMi, Volcano and the device plugin keep them in 32 bits."""

MIB: Final = 2**20
"""Bytes."""
_LONGEST_TEXT: Final = 64
_LARGEST_EXPONENT: Final = 40
"""Above every number that Kubernetes can hold (it stops at 2**63); a larger exponent would only cost time."""
_LARGEST_WHOLE: Final = 10**_LARGEST_EXPONENT

_GRAMMAR: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
    r"(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exponent>[+-]?[0-9]+))?",
    re.ASCII,
)
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_NOT_A_QUANTITY: Final = 'not a Kubernetes quantity; write a whole number such as 8192 or "10k"'


def parse(value: Any, path: str = "") -> Fraction:
    """The exact value of a quantity.

    Args:
        value: a text, or a number as JSON and YAML give it. A float stands for the decimal that was written, as long as
            a float holds that exactly; booleans are no numbers here.
        path: the field that the value was read from, for the error.

    Raises:
        QuantityError: the value is no quantity.
    """
    if isinstance(value, str):
        return _parse_text(value, path)
    if isinstance(value, bool):
        raise QuantityError(path, value, _NOT_A_QUANTITY)
    if isinstance(value, int) and abs(value) < _LARGEST_WHOLE:
        return Fraction(value)
    if isinstance(value, float) and abs(value) < 2**53:
        return Fraction(repr(value))
    raise QuantityError(path, value, _NOT_A_QUANTITY)


def _parse_text(text: str, path: str) -> Fraction:
    number = _value(text) if len(text) <= _LONGEST_TEXT else None
    if number is None:
        raise QuantityError(path, text, _NOT_A_QUANTITY)
    return number


@lru_cache(maxsize=1024)
def _value(text: str) -> Fraction | None:
    """What a text is worth, None for none. One pod spells its few numbers many times over."""
    match = _GRAMMAR.fullmatch(text)
    if match is None:
        return None
    whole, part = match["whole"], match["part"] or ""
    exponent = int(match["exponent"] or _DECIMAL.get(match["suffix"] or "", 0))
    if not (whole or part) or abs(exponent) > _LARGEST_EXPONENT:
        return None
    number = Fraction(int(whole + part) << _BINARY.get(match["suffix"] or "", 0), 10 ** len(part))
    number *= Fraction(10**exponent) if exponent >= 0 else Fraction(1, 10**-exponent)
    return -number if match["sign"] == "-" else number


def whole(value: Any, path: str = "", *, low: int, high: int, unit: str = "") -> int:
    """A whole number from ``low`` to ``high``, both included.

    Args:
        value: as in :func:`parse`.
        path: the field, for the error.
        low: the smallest number that is allowed.
        high: the largest number that is allowed.
        unit: what the number counts, for the error, for example ``"MiB"``.

    Raises:
        QuantityError: not a quantity, not whole, or out of the range.
    """
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        plain = int(value)  # the spelling of nearly every request, without the cost of a fraction
        if low <= plain <= high:
            return plain
    number = parse(value, path)
    if number.denominator == 1 and low <= number <= high:
        return int(number)
    unit_text = f" {unit}" if unit else ""
    allowed = f"a whole number from {low} to {high}{unit_text} is allowed"
    if number.denominator == 1 and str(value) != str(number) and number < MIB:
        allowed += f"; {value} is {number}"  # the API server spells 70000 as 70k
    raise QuantityError(path, value, allowed)


def is_whole(value: Any, *, low: int = 0, high: int = INT32_MAX) -> TypeGuard[int]:
    """Whether a JSON value that is no quantity is a whole number in this range; true and false are no numbers here."""
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def equal(one: Any, other: Any) -> bool:
    """Whether two quantities have the same value, however they are spelled. What cannot be read equals nothing."""
    if isinstance(one, str) and one == other and one.isascii() and one.isdigit():
        return True
    try:
        return parse(one) == parse(other)
    except QuantityError:
        return False
