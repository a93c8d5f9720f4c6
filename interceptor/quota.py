"""The one parser of quotas and priorities, in Python; ``src/quota.c`` is its twin and holds the grammar.

Both are held to ``tests/interceptor/quota_vectors.tsv``. What does not match is refused; nothing ever means "no limit".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from vnpu.errors import ConfigError

MEMORY_ALLOWED: Final = "a whole number of MiB from 1 to 2147483647 is allowed"
PRIORITY_ALLOWED: Final = "a whole number of percent from 1 to 100 is allowed"
CEILING_ALLOWED: Final = "0 or 1 is allowed"
CARDS_ALLOWED: Final = "1 to 16 card numbers from 0 to 1023 such as 0,1 or 0-3, none twice, are allowed"
FILE_ALLOWED: Final = (
    'an object of memory_mib and, where wanted, priority and fixed_share_ratio is allowed, such as {"memory_mib": 8192}'
)

CARDS: Final = 16
"""The most cards that a container can have: rows of the region."""

_FILE_LIMIT: Final = 4096
_MEMORY_HIGH: Final = 2**31 - 1
_PRIORITY_HIGH: Final = 100
_CARD_HIGH: Final = 1023

_NUMBER: Final = re.compile(r"[1-9][0-9]{0,9}", re.ASCII)
_SPAN: Final = re.compile(r"(0|[1-9][0-9]{0,3})(?:-(0|[1-9][0-9]{0,3}))?", re.ASCII)
_MEMBER: Final = re.compile(
    r'[ \t\r\n]*"(memory_mib|priority|fixed_share_ratio)"[ \t\r\n]*:[ \t\r\n]*([0-9]+|true|false)[ \t\r\n]*', re.ASCII
)
_OBJECT: Final = re.compile(r"[ \t\r\n]*\{(.*)\}[ \t\r\n]*", re.ASCII | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Quota:
    """What a quota file grants of each card: memory in MiB, priority in percent (None: none asked for), ceiling."""

    memory_mib: int
    priority: int | None = None
    ceiling: bool = False


def parse_memory(text: str, path: str = "") -> int:
    """MiB of each card.

    Raises:
        ConfigError: the text is no number of the grammar, or out of range.
    """
    return _whole(text, _MEMORY_HIGH, path, MEMORY_ALLOWED)


def parse_priority(text: str, path: str = "") -> int:
    """Percent of each card.

    Raises:
        ConfigError: the text is no number of the grammar, or out of range.
    """
    return _whole(text, _PRIORITY_HIGH, path, PRIORITY_ALLOWED)


def parse_ceiling(text: str, path: str = "") -> bool:
    """Whether the priority is a ceiling too, also for a container that is alone on its card.

    Raises:
        ConfigError: the text is neither ``0`` nor ``1``.
    """
    if text not in {"0", "1"}:
        raise ConfigError(path, text, CEILING_ALLOWED)
    return text == "1"


def parse_cards(text: str, path: str = "") -> tuple[int, ...]:
    """The numbers of the cards of a container, in order: ``0,3`` or ``0-3``.

    Raises:
        ConfigError: the text is no such list, names a card twice, or more than 16.
    """
    cards: list[int] = []
    for span in text.split(","):
        match = _SPAN.fullmatch(span)
        if match is None:
            raise ConfigError(path, text, CARDS_ALLOWED)
        first = int(match[1])
        last = first if match[2] is None else int(match[2])
        if not first <= last <= _CARD_HIGH:
            raise ConfigError(path, text, CARDS_ALLOWED)
        cards.extend(range(first, last + 1))
    if len(cards) > CARDS or len(set(cards)) < len(cards):
        raise ConfigError(path, text, CARDS_ALLOWED)
    return tuple(cards)


def parse_quota_file(text: str, path: str = "") -> Quota:
    """The content of ``/etc/vnpu/quota.json``.

    Raises:
        ConfigError: the text is not an object of the known members, each at most once, or a value is not allowed.
    """
    outer = _OBJECT.fullmatch(text) if len(text.encode()) <= _FILE_LIMIT else None
    if outer is None:
        raise ConfigError(path, text, FILE_ALLOWED)
    found: dict[str, str] = {}
    for part in outer[1].split(","):
        member = _MEMBER.fullmatch(part)
        if member is None or member[1] in found:
            raise ConfigError(path, text, FILE_ALLOWED)
        found[member[1]] = member[2]
    if "memory_mib" not in found or found.get("fixed_share_ratio", "true") not in {"true", "false"}:
        raise ConfigError(path, text, FILE_ALLOWED)
    return Quota(
        memory_mib=parse_memory(found["memory_mib"], path),
        priority=parse_priority(found["priority"], path) if "priority" in found else None,
        ceiling=found.get("fixed_share_ratio") == "true",
    )


def _whole(text: str, high: int, path: str, allowed: str) -> int:
    if _NUMBER.fullmatch(text) is None or int(text) > high:
        raise ConfigError(path, text, allowed)
    return int(text)
