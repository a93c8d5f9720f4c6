"""The fields of a configuration file, read one by one: each fault is an error that names the field.

Device config, settings and inventory share this reader, so that a quoted number or a misspelled key is met with the
same words everywhere.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from vnpu.errors import ABSENT, ConfigError, did_you_mean, item, key
from vnpu.quantity import INT32_MAX, is_whole

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_SUBDOMAIN: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_SEGMENT: Final = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"


class Form(Enum):
    """What a name must look like for the API server to take it; the value is a pattern, and the same for people.

    A common word is part of annotation keys, which have at most 63 characters behind their slash. The longest is
    ``hami.io/<common word>-devices-to-allocate``. A scheduler's name stands in the events that it writes.
    """

    COMMON_WORD = (
        r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,41}[A-Za-z0-9])?",
        "a word of at most 43 letters, digits, -, _ and . is expected, such as Ascend910B3",
    )
    RESOURCE = (
        rf"(?=[^/]{{1,253}}/){_SUBDOMAIN}/{_SEGMENT}",
        "an extended resource with its domain is expected, such as huawei.com/Ascend910B3",
    )
    SCHEDULER = (
        _SEGMENT,
        "a word of at most 63 letters, digits, -, _ and . is expected, such as hami-scheduler",
    )
    SUBDOMAIN = (
        rf"(?=.{{1,253}}$){_SUBDOMAIN}",
        "at most 253 lower-case letters, digits, - and . are expected, without one of these two at an end",
    )

    def __init__(self, pattern: str, allowed: str) -> None:
        self._pattern = re.compile(pattern, re.ASCII)
        self.allowed = allowed

    def fits(self, name: str) -> bool:
        """Whether the name looks like this."""
        return self._pattern.fullmatch(name) is not None


class Fields:
    """A mapping of a configuration file and the path where it stands."""

    def __init__(self, value: Any, path: str = "") -> None:
        """Take the mapping ``value`` that stands at ``path``.

        Raises:
            ConfigError: it is no mapping.
        """
        if not isinstance(value, dict):
            raise ConfigError(path, value, "a mapping is expected")
        self._values = value
        self.path = path

    def get(self, field: str) -> Any:
        """The value as it stands, ``ABSENT`` where it does not."""
        return self._values.get(field, ABSENT)

    def key(self, field: Any) -> str:
        """The path of a field; whatever stands in place of a name is one of its faults."""
        return key(self.path, str(field))

    def name(self, field: str, default: str | None = None, *, form: Form | None = None) -> str:
        """A text that names something; with a default, absent, null and empty stand for it.

        Raises:
            ConfigError: no text, empty, with spaces around it, with characters that cannot be printed, or not of the
                form.
        """
        value = self.get(field)
        if default is not None and value in (ABSENT, None, ""):
            return default
        name = _name(value, self.key(field))
        if form is not None and not form.fits(name):
            raise ConfigError(self.key(field), name, form.allowed)
        return name

    def names(self, field: str, default: tuple[str, ...]) -> tuple[str, ...]:
        """A list of such texts; absent and null stand for the default.

        Raises:
            ConfigError: no list, or an entry that names nothing.
        """
        value = self._values.get(field)
        if value is None:
            return default
        if not isinstance(value, list):
            raise ConfigError(self.key(field), value, "a list of names is expected")
        return tuple(_name(entry, item(self.key(field), index)) for index, entry in enumerate(value))

    def text(self, field: str) -> str:
        """Any text; absent and null are ``""``.

        Raises:
            ConfigError: something else than a text.
        """
        value = self._values.get(field)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise ConfigError(self.key(field), value, "a text is expected")
        return value

    def number(self, field: str, *, low: int, high: int = INT32_MAX, default: int | None = None) -> int:
        """A whole number from ``low`` to ``high``; with a default, absent and null stand for it.

        Raises:
            ConfigError: something else, also a number in quotes.
        """
        value = self.get(field)
        if value in (ABSENT, None) and default is not None:
            return default
        if not is_whole(value, low=low, high=high):
            raise ConfigError(self.key(field), value, f"a whole number from {low} to {high} is expected")
        return value

    def boolean(self, field: str, *, default: bool = False) -> bool:
        """True or false; absent and null are the default.

        Raises:
            ConfigError: something else, also the word in quotes, for which Volcano drops a whole file in silence.
        """
        value = self._values.get(field)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise ConfigError(self.key(field), value, "true or false is expected, without quotes")
        return value

    def unknown(self, known: Collection[str]) -> Iterator[tuple[Any, str]]:
        """The keys that nobody reads, as they are, each with a hint at the nearest known name, ``""`` where none is."""
        for field in self._values:
            if field not in known:
                yield field, did_you_mean(str(field), known)

    def refuse_unknown(self, known: Collection[str]) -> None:
        """Refuse keys that nobody reads.

        Raises:
            ConfigError: the first of them, with the nearest known name.
        """
        for field, hint in self.unknown(known):
            raise ConfigError(self.key(field), self._values[field], f"unknown key{hint}; known are {', '.join(known)}")


def _name(value: Any, path: str) -> str:
    if not isinstance(value, str) or not value or value != value.strip() or not value.isprintable():
        raise ConfigError(path, value, "a non-empty, printable text without surrounding spaces is expected")
    return value
