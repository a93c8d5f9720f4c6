"""The typed errors of vnpu.

Every error that bad input can cause names three things: the path of the field, the value found there and
what is allowed. Each edge (HTTP, command line, log) translates :class:`FieldError` once.

Paths are written as users see them in their manifests: ``spec.containers[0].resources.limits[huawei.com/Ascend910B3]``.
"""

from __future__ import annotations

import difflib
import reprlib
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_VALUE_LIMIT: Final = 120
"""Characters of a bad value that a message repeats: enough to recognise it, never a whole document."""

_BRIEF: Final = reprlib.Repr()
_BRIEF.maxlevel = 3  # a document of a thousand levels would not be shown but end in a RecursionError
_BRIEF.maxstring = _BRIEF.maxother = _VALUE_LIMIT

_NAME_LIMIT: Final = 317
"""The longest name of an annotation, label or resource: a domain of 253 characters, a slash and 63 more."""

_FEW: Final = 3
"""Names of a long list that a message repeats."""

_PLAIN_KEY: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


class VnpuError(ValueError):
    """Any error that vnpu raises for bad input."""


class FieldError(VnpuError):
    """A field holds what it must not hold.

    Attributes:
        path: where the value stands, for example ``metadata.annotations[huawei.com/vnpu-mode]``; ``""`` is the
            document itself.
        value: the offending value, as found.
        allowed: what may stand there and, where there is one, the remedy; one or two sentences without a final stop.
    """

    def __init__(self, path: str, value: Any, allowed: str) -> None:
        super().__init__(path, value, allowed)
        self.path = path
        self.value = value
        self.allowed = allowed

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        return printable(f"{where}{shown(self.value)}: {self.allowed}")

    def under(self, prefix: str) -> Self:
        """The same error seen from further up: ``prefix`` is put before the path."""
        return type(self)(join(prefix, self.path), self.value, self.allowed)


class QuantityError(FieldError):
    """A text that is no Kubernetes quantity, or not one of the whole numbers that are allowed."""


class RequestError(FieldError):
    """A pod asks for an NPU in a way that cannot be served."""


class AnnotationError(FieldError):
    """An annotation whose text cannot be decoded, or says something that is not allowed."""


class ConfigError(FieldError):
    """A device config, settings file or inventory that cannot be used."""


class InputError(FieldError):
    """A document given to the planner or to the webhook that has not the shape it should have."""


class _Absent:
    """The value of a field that is not there."""

    def __repr__(self) -> str:
        return "absent"


ABSENT: Final = _Absent()
"""Marks a missing field, where ``None`` (a JSON null) is something else."""


def shown(value: Any) -> str:
    """The value as a message shows it: text in quotes, long and deep values cut, on one line."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        text = f'"{value}"' if len(value) < _VALUE_LIMIT else f'"{value[:_VALUE_LIMIT]}'
    else:
        try:
            text = _BRIEF.repr(value)
        except ValueError:  # Python converts no whole number of more than some thousand digits
            text = "a number of thousands of digits"
    return _cut(printable(text), _VALUE_LIMIT)


def bare(name: str) -> str:
    """A name as a message shows it within a sentence: on one line, long ones cut, without quotes."""
    return _cut(printable(name[: _NAME_LIMIT + 1]), _NAME_LIMIT)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def printable(text: str) -> str:
    """The text on one line, with what cannot be printed replaced."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a message about a name that nobody knows: the nearest known one, ``""`` where none is near."""
    spelled = {word.lower(): word for word in known}
    nearest = difflib.get_close_matches(name.lower(), list(spelled), n=1)
    return f"; did you mean {spelled[nearest[0]]}?" if nearest else ""


def few(names: Sequence[str]) -> str:
    """``a, b, c and 4 more``: a list that may be long, as a message shows it."""
    more = len(names) - _FEW
    return ", ".join(map(bare, names[:_FEW])) + (f" and {more} more" if more > 0 else "")


def key(path: str, name: str) -> str:
    """The path of member ``name`` below ``path``; names with dots or slashes stand in brackets.

    It is for people: a name longer than Kubernetes' own is cut, and what cannot be printed is replaced.
    """
    shown_name = bare(name)
    if name and _PLAIN_KEY.issuperset(name):
        return f"{path}.{shown_name}" if path else shown_name
    return f"{path}[{shown_name}]"


def item(path: str, index: int) -> str:
    """The path of element ``index`` (from 0) of the list at ``path``."""
    return f"{path}[{index}]"


def path_of(steps: Iterable[str | int]) -> str:
    """The path that leads down these steps: texts are members, whole numbers elements of lists."""
    path = ""
    for step in steps:
        path = item(path, step) if isinstance(step, int) else key(path, step)
    return path


def join(prefix: str, path: str) -> str:
    """The path ``path`` as seen from above ``prefix``."""
    if not prefix or not path:
        return prefix or path
    return f"{prefix}{path}" if path.startswith("[") else f"{prefix}.{path}"


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal; what is nested too deep to be compared is not."""
    try:
        return bool(one == other)
    except RecursionError:
        return False
