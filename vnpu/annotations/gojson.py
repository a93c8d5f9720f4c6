"""JSON as Go's ``encoding/json`` reads and writes it, since everyone else at these annotations is written in Go.

Names of fields match in any case, unknown ones are ignored, ``null`` is the zero of its field. Written text is compact
and escapes ``< > &`` and the two line separators of Unicode. Stricter than Go in one point: a field that stands twice
is an error, where Go would quietly keep the last.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NoReturn

from vnpu.annotations.fields import NUMBER_ALLOWED, text
from vnpu.errors import AnnotationError, item, key
from vnpu.quantity import is_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_ESCAPES: Final = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def dumps(value: Any) -> str:
    """The text that ``json.Marshal`` writes for the value."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPES)


def objects(value: Any, names: Iterable[str], path: str) -> list[dict[str, Any]]:
    """The objects of a JSON array, each reduced to the fields ``names``, which have their given spelling.

    Args:
        value: the annotation's value.
        names: the fields that are read.
        path: the annotation, for the error.

    Raises:
        AnnotationError: no JSON array of objects, or a field that stands twice.
    """
    raw = text(value, path)
    try:
        document = json.loads(raw, object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise AnnotationError(path, raw, f"a JSON array of objects is expected ({_reason(error)})") from error
    if document is None:
        return []
    if not isinstance(document, list):
        raise AnnotationError(path, raw, "a JSON array of objects is expected")
    spellings = {name.casefold(): name for name in names}
    return [_known_fields(entry, spellings, item(path, index)) for index, entry in enumerate(document)]


def _known_fields(entry: Any, spellings: Mapping[str, str], path: str) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise AnnotationError(path, entry, "an object is expected")
    found: dict[str, Any] = {}
    for spelled, value in entry.items():
        name = spellings.get(spelled.casefold())
        if name is None:
            continue
        if name in found:
            raise AnnotationError(key(path, name), value, "the field stands twice")
        found[name] = value
    return found


def string(fields: Mapping[str, Any], name: str, path: str) -> str:
    """A text, ``""`` where it is absent.

    Raises:
        AnnotationError: another type, or half of a surrogate pair, which no text on the wire can carry.
    """
    value = fields.get(name)
    if value is None:
        return ""
    if not isinstance(value, str) or not _encodable(value):
        raise AnnotationError(key(path, name), value, "a text is expected")
    return value


def whole(fields: Mapping[str, Any], name: str, path: str) -> int:
    """A whole number of 32 bits that is not negative, 0 where it is absent.

    Raises:
        AnnotationError: anything else, also ``8192.0``.
    """
    value = fields.get(name)
    if value is None:
        return 0
    if not is_whole(value):
        raise AnnotationError(key(path, name), value, NUMBER_ALLOWED)
    return value


def boolean(fields: Mapping[str, Any], name: str, path: str) -> bool:
    """A truth value, False where it is absent.

    Raises:
        AnnotationError: anything else.
    """
    value = fields.get(name)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise AnnotationError(key(path, name), value, "true or false is expected")
    return value


def _encodable(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


class _RefusedError(ValueError):
    """What Python's parser would let through."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _RefusedError("a field stands twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise _RefusedError(f"{name} is no number")


def _reason(error: Exception) -> str:
    match error:
        case json.JSONDecodeError():
            return f"{error.msg}, character {error.pos}"
        case _RefusedError():
            return str(error)
        case RecursionError():
            return "nested too deep"
        case _:
            return "a number is too long"
