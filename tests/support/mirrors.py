"""Mirrors as limiters write them, with figures that a test chooses."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from interceptor import region
from vnpu import names

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20


def mirror_path(host: Path, uid: str, container: str) -> Path:
    """Where a container's mirror lies below the root of a host."""
    name = names.LOCAL_SHM.rpartition("/")[2]
    return host / names.local_shm_host(uid, container).removeprefix("/") / name


def write_mirror(path: Path, *cards: dict[str, int], ago_s: float = 0, **fields: Any) -> None:
    """A mirror with these cards, written so long ago; ``processes`` are upstream's: (pid, bytes of card 0)."""
    layouts = region.ffi()
    mirror = layouts.new("struct vnpu_mirror *")
    mirror.magic = region.constant("MIRROR_MAGIC")
    mirror.version = region.constant("LAYOUT_VERSION")
    mirror.size = layouts.sizeof("struct vnpu_mirror")
    mirror.written_us = int((time.time() - ago_s) * 1e6)
    mirror.card_count = len(cards)
    mirror.generation = 1
    for index, (pid, memory) in enumerate(fields.pop("processes", ())):
        mirror.processes[index].pid = pid
        mirror.processes[index].active = 1
        mirror.processes[index].memory[0] = memory
    for name, value in fields.items():
        setattr(mirror, name, value)
    for row, card in zip(mirror.cards, cards, strict=False):
        for name, value in card.items():
            setattr(row, name, value)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(layouts.buffer(mirror)))
