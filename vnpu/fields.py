"""The fields of a configuration file, read one by one: each fault is an error that names the field.

Device config, settings and inventory share this reader, so that a quoted number or a misspelled key is met with the
same words everywhere.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, Final

from vnpu.errors import ABSENT, ConfigError, key

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_LARGEST: Final = 2**31 - 1


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

    def key(self, field: str) -> str:
        """The path of a field."""
        return key(self.path, field)

    def name(self, field: str, default: str | None = None) -> str:
        """A text that names something; with a default, absent, null and empty stand for it.

        Raises:
            ConfigError: no text, empty, with spaces around it or with characters that cannot be printed.
        """
        value = self.get(field)
        if default is not None and value in (ABSENT, None, ""):
            return default
        if not isinstance(value, str) or not value or value != value.strip() or not value.isprintable():
            raise ConfigError(self.key(field), value, "a non-empty text without surrounding spaces is expected")
        return value

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

    def number(self, field: str, *, low: int, high: int = _LARGEST, default: int | None = None) -> int:
        """A whole number from ``low`` to ``high``; with a default, absent and null stand for it.

        Raises:
            ConfigError: something else, also a number in quotes.
        """
        value = self.get(field)
        if value in (ABSENT, None) and default is not None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
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

    def unknown(self, known: Collection[str]) -> Iterator[tuple[str, str]]:
        """The keys that nobody reads, each with a hint at the known name that is nearest, ``""`` where none is."""
        for field in self._values:
            if field not in known:
                nearest = difflib.get_close_matches(str(field), known, n=1)
                yield str(field), f"; did you mean {nearest[0]}?" if nearest else ""

    def refuse_unknown(self, known: Collection[str]) -> None:
        """Refuse keys that nobody reads.

        Raises:
            ConfigError: the first of them, with the nearest known name.
        """
        for field, hint in self.unknown(known):
            raise ConfigError(self.key(field), self._values[field], f"unknown key{hint}; known are {', '.join(known)}")
