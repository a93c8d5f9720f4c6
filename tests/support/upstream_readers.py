"""How others read what ours writes: models of the readers in HAMi, its device plugin and Volcano.

They are as forgiving as the originals and have their faults.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class Read(NamedTuple):
    """One card, as a reader books it."""

    uuid: str
    chip: str
    memory: int
    core: int


def hami_device_text(text: str) -> list[list[Read]]:
    """HAMi: containers between ``;``, cards between ``:``; what has no comma is dropped, so are further fields."""
    return [[_card(piece) for piece in slot.split(":") if "," in piece] for slot in text.split(";")]


def volcano_device_text(text: str) -> list[Read]:
    """Volcano: cards between ``:`` of the whole text, so that a ``;`` before one becomes part of its UUID."""
    return [_card(piece) for piece in text.split(":") if "," in piece]


def _card(piece: str) -> Read:
    uuid, chip, memory, core = piece.split(",")[:4]
    return Read(uuid, chip, int(memory), int(core))


def plugin_runtime_info(text: str) -> dict[str, tuple[str, int, int]]:
    """HAMi's device plugin: by UUID, the last of several; template, memory and core, empty and 0 where absent."""
    return {one["UUID"]: (one.get("temp", ""), one.get("memory", 0), one.get("core", 0)) for one in _go_objects(text)}


def volcano_register(text: str) -> list[dict[str, Any]]:
    """Volcano and HAMi: a JSON array with at least one card; field names in any case, unknown ones ignored."""
    known = ("id", "index", "count", "devmem", "devcore", "type", "health", "custominfo")
    zero: dict[str, Any] = {"id": "", "index": 0, "count": 0, "devmem": 0, "devcore": 0, "type": "", "health": False}
    found = [
        zero | {name.lower(): value for name, value in one.items() if name.lower() in known}
        for one in _go_objects(text)
    ]
    assert found, "no card is an error to both"
    return found


def plugin_lock_owner(text: str) -> tuple[str, str] | None:
    """HAMi's device plugin: namespace and pod, None where the lock names none."""
    parts = text.split(",")
    return (parts[1], parts[2]) if len(parts) == len(("time", "namespace", "pod")) else None


def _go_objects(text: str) -> list[dict[str, Any]]:
    found = json.loads(text)
    assert isinstance(found, list)
    return found
