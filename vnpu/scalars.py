"""Plain scalars of YAML, as ``kubectl`` reads them.

``kubectl`` reads manifests with sigs.k8s.io/yaml, whose parser is neither YAML 1.1 nor 1.2: ``12:30`` is a text and
``0o17`` a number as in 1.2, ``on`` and ``yes`` are true and ``017`` is 15 as in 1.1. What the parser makes of a number
then passes through JSON, where ``1.0`` and ``1e3`` become whole. Another reading would judge another manifest than the
one that reaches the cluster.
"""

from __future__ import annotations

import math
import re
from typing import Final, TypeAlias

Scalar: TypeAlias = bool | int | float | str | None

_WORDS: Final[dict[str, bool | None]] = {
    spelling: value
    for value, words in (
        (True, ("y", "yes", "true", "on")),
        (False, ("n", "no", "false", "off")),
        (None, ("null",)),
    )
    for word in words
    for spelling in (word, word.capitalize(), word.upper())
} | {"": None, "~": None}
_NOT_IN_JSON: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_BEGINS_A_NUMBER: Final = frozenset("+-.0123456789")
_WHOLE: Final = re.compile(r"[-+]?(0[bB][01]+|0[oO][0-7]+|0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)")
_DECIMAL: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_BASES: Final = {"b": 2, "o": 8, "x": 16}
_TEN: Final = 10
_LONGEST_WHOLE: Final = 19
"""Decimal digits of a whole number of 64 bits; longer ones are not exact in JSON, and Python reads them slowly."""
_WHOLE_BELOW: Final = 2**63


def read(text: str) -> Scalar:
    """What a scalar without quotes and tag means.

    Raises:
        ValueError: a number that JSON cannot hold.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _BEGINS_A_NUMBER:
        return text
    if _NOT_IN_JSON.fullmatch(text):
        raise ValueError(f"{text} is no number of JSON")
    digits = text.replace("_", "")
    value: float
    whole, decimal = _WHOLE.fullmatch(digits), _DECIMAL.fullmatch(digits)
    if whole is not None:
        base = _BASES.get(whole[1][1:2].lower(), 8 if whole[1][0] == "0" else 10)
        if base != _TEN or len(whole[1]) <= _LONGEST_WHOLE:
            value = int(digits, base)
            if -_WHOLE_BELOW <= value < _WHOLE_BELOW:
                return value
    if decimal is not None:
        value = float(digits)
        return text if whole is None and math.isinf(value) else _as_json(value)
    return text


def number(text: str) -> int | float:
    """What a number of JSON with a point or an exponent means.

    Raises:
        ValueError: larger than any number that JSON's readers hold.
    """
    return _as_json(float(text))


def _as_json(value: float) -> int | float:
    """The number that is read back where Go has written it: JSON does not tell ``1.0`` from ``1``."""
    if not math.isfinite(value):
        raise ValueError("a number beyond all that JSON can hold")
    return int(value) if value.is_integer() and -_WHOLE_BELOW <= value < _WHOLE_BELOW else value
