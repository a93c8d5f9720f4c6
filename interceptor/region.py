"""Reading what the C side shares: the region of a container, the registry of a card, the mirror of a container.

The layouts come from ``include/vnpu/region.h`` itself, whose head explains them. A reader believes nothing: whatever it
reads may be written by a tenant, so a file is copied, its head is judged and every number is kept within its range.
"""

from __future__ import annotations

import os
import stat
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import cffi

from vnpu.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

HEADER: Final = Path(__file__).parent / "include" / "vnpu" / "region.h"
_BEGIN: Final = "/* ---- cdef ---- */"
_END: Final = "/* ---- end of cdef ---- */"
_LONGEST_FILE: Final = 1 << 20


@cache
def ffi() -> cffi.FFI:
    """The layouts of ``region.h``, in ABI mode: nothing is compiled."""
    text = HEADER.read_text(encoding="utf-8")
    layouts = cffi.FFI()
    layouts.cdef(text[text.index(_BEGIN) + len(_BEGIN) : text.index(_END)])
    return layouts


@cache
def constant(name: str) -> int:
    """The value of ``#define VNPU_<name>`` of ``region.h``."""
    value: int = getattr(ffi().dlopen(None), f"VNPU_{name}")
    return value


@dataclass(frozen=True, slots=True)
class Process:
    """A process that uses the NPU: pid and pid namespace as it sees itself, and bytes held of each card."""

    pid: int
    pid_namespace: int
    name: str
    memory: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RegionCard:
    """A container's part of one card. Memory in bytes, waits in microseconds.

    Attributes:
        number: the card in ``ASCEND_VISIBLE_DEVICES``.
        priority: percent, None where none was asked for.
        tenant: index in the card's registry, None until the limiter joined.
    """

    number: int
    priority: int | None
    tenant: int | None
    quota: int
    used: int
    overhead: int
    denials: int
    waits: int
    wait_us: int
    longest_us: int


@dataclass(frozen=True, slots=True)
class Region:
    """What a region says at one moment."""

    generation: int
    ceiling: bool
    cards: tuple[RegionCard, ...]
    processes: tuple[Process, ...]


@dataclass(frozen=True, slots=True)
class Tenant:
    """A container on a card: weight in percent (0: without a priority), the time that it held the card."""

    index: int
    key: int
    weight: int
    ceiling: bool
    wants: bool
    held_us: int
    seen_us: int


@dataclass(frozen=True, slots=True)
class Registry:
    """What a registry says at one moment; ``holder`` is the index of the tenant whose turn it is."""

    card: int
    holder: int | None
    closing: bool
    start_us: int
    tenants: tuple[Tenant, ...]


@dataclass(frozen=True, slots=True)
class MirrorCard:
    """Figures of one card in a mirror; memory in bytes, times in microseconds."""

    number: int
    priority: int | None
    weight: int
    weight_sum: int
    quota: int
    used: int
    overhead: int
    held_us: int
    denials: int
    waits: int
    wait_us: int
    longest_us: int


@dataclass(frozen=True, slots=True)
class Mirror:
    """What a limiter wrote for readers outside: ``written_us`` in microseconds since 1970."""

    written_us: int
    generation: int
    processes: int
    unmanaged: int
    cards: tuple[MirrorCard, ...]


def read_region(path: Path) -> Region:
    """The region at ``path``.

    Raises:
        InputError: it is no region of this version, or not whole.
        OSError: it cannot be read.
    """
    content = _content(path)
    layouts = ffi()
    region = _view(path, content, "vnpu_region", "REGION_MAGIC", layouts.offsetof("struct vnpu_region", "books"))
    count = region.card_count
    size = layouts.offsetof("struct vnpu_region", "books") + count * layouts.sizeof("struct vnpu_books")
    if not (1 <= count <= constant("CARDS")) or region.slot_count != constant("SLOTS") or len(content) != size:
        raise InputError(str(path), len(content), "a whole region is allowed")
    living = tuple(_living(region))
    return Region(
        generation=region.generation,
        ceiling=bool(region.flags & constant("CEILING")),
        cards=tuple(_card(region, index, living) for index in range(count)),
        processes=tuple(_process(region, slot, count) for slot in living),
    )


def read_registry(path: Path) -> Registry:
    """The registry at ``path``.

    Raises:
        InputError: it is no registry of this version, or not whole.
        OSError: it cannot be read.
    """
    registry = _view(path, _content(path), "vnpu_registry", "REGISTRY_MAGIC", ffi().sizeof("struct vnpu_registry"))
    holder = (registry.turn & constant("TURN_HOLDER")) - 1
    return Registry(
        card=registry.id,
        holder=holder if 0 <= holder < constant("TENANTS") else None,
        closing=bool(registry.turn & constant("TURN_CLOSING")),
        start_us=registry.turn >> constant("TURN_START_SHIFT"),
        tenants=tuple(
            Tenant(
                index=index,
                key=tenant.key,
                weight=min(tenant.weight, 100),
                ceiling=bool(tenant.flags & constant("CEILING")),
                wants=bool(tenant.wants),
                held_us=tenant.held_us,
                seen_us=tenant.seen_us,
            )
            for index, tenant in enumerate(registry.tenants)
            if tenant.key
        ),
    )


def read_upstream(path: Path) -> tuple[int, ...]:
    """Bytes that are used of each card, from a file of upstream's library; ours begins with the same layout.

    Raises:
        InputError: it is too short to be one.
        OSError: it cannot be read.
    """
    content = _content(path)
    size = ffi().offsetof("struct vnpu_mirror", "magic")
    if len(content) < size:
        raise InputError(str(path), len(content), f"a file of at least {size} bytes is allowed")
    view = ffi().from_buffer("struct vnpu_mirror *", content.ljust(ffi().sizeof("struct vnpu_mirror"), b"\0"))
    active = [process for process in view.processes if process.active]
    return tuple(sum(process.memory[card] for process in active) for card in range(constant("UPSTREAM_CARDS")))


def read_mirror(path: Path) -> Mirror:
    """The mirror at ``path``: the part that follows upstream's.

    Raises:
        InputError: it is no mirror of this version, not whole, or was being written at each of three looks.
        OSError: it cannot be read.
    """
    size = ffi().sizeof("struct vnpu_mirror")
    place = ffi().offsetof("struct vnpu_mirror", "sequence")
    with _opened(path) as descriptor:
        for _ in range(3):
            mirror = _view(path, _copy(path, descriptor), "vnpu_mirror", "MIRROR_MAGIC", size)
            # The number is even and the same afterwards: nothing was written while the copy was made.
            again = int.from_bytes(os.pread(descriptor, 4, place), sys.byteorder)
            if mirror.sequence % 2 == 0 and mirror.sequence == again:
                break
        else:
            raise InputError(str(path), mirror.sequence, "a mirror that is not being written is allowed")
    return Mirror(
        written_us=mirror.written_us,
        generation=mirror.generation,
        processes=mirror.process_count,
        unmanaged=mirror.unmanaged_count,
        cards=tuple(_mirror_card(mirror.cards[index]) for index in range(min(mirror.card_count, constant("CARDS")))),
    )


def _content(path: Path) -> bytes:
    with _opened(path) as descriptor:
        return _copy(path, descriptor)


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """The file, which may be anything: no link is followed and no fifo waited for."""
    # To open a device or a directory is to do something already, so the place is looked at first and opened from there.
    place = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        if not stat.S_ISREG(os.fstat(place).st_mode):
            raise InputError(str(path), "", "a regular file is allowed")
        # Without waiting: its owner may hold a lease.
        descriptor = os.open(f"/proc/self/fd/{place}", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    finally:
        os.close(place)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _copy(path: Path, descriptor: int) -> bytes:
    size = os.fstat(descriptor).st_size
    if size > _LONGEST_FILE:
        raise InputError(str(path), size, f"a file of at most {_LONGEST_FILE} bytes is allowed")
    return os.pread(descriptor, size, 0)


def _view(path: Path, content: bytes, layout: str, magic: str, least: int) -> Any:
    layouts = ffi()
    whole = content.ljust(layouts.sizeof(f"struct {layout}"), b"\0")
    view = layouts.from_buffer(f"struct {layout} *", whole)
    if len(content) < least or view.magic != constant(magic) or view.version != constant("LAYOUT_VERSION"):
        raise InputError(str(path), content[:16], f"a {layout.removeprefix('vnpu_')} of this version is allowed")
    return view


def _living(region: Any) -> Iterator[int]:
    not_living = constant("OWNER_DIED") | constant("OWNER_SETTLING")
    for index in range(min(region.slots_used, constant("SLOTS"))):
        owner = region.slots[index].owner
        if owner & constant("OWNER_TID") and not owner & not_living:
            yield index


def _held(book: Any) -> int:
    return int(book.charge >> constant("CHARGE_HELD_SHIFT")) * constant("PAGE")


def _card(region: Any, index: int, living: tuple[int, ...]) -> RegionCard:
    card = region.cards[index]
    books = region.books[index].slots
    return RegionCard(
        number=card.id,
        priority=min(card.priority, 100) or None,
        tenant=card.tenant if card.tenant < constant("TENANTS") else None,
        quota=card.quota_pages * constant("PAGE"),
        used=sum(_held(books[slot]) for slot in living),
        overhead=sum(books[slot].overhead * constant("PAGE") for slot in living),
        denials=card.denials,
        waits=card.waits,
        wait_us=card.wait_us,
        longest_us=card.longest_us,
    )


def _process(region: Any, slot: int, card_count: int) -> Process:
    owner = region.slots[slot]
    books = (region.books[card].slots[slot] for card in range(card_count))
    return Process(
        pid=owner.pid,
        pid_namespace=owner.pid_namespace,
        name=ffi().string(owner.name).decode(errors="replace"),
        memory=tuple(_held(book) + book.overhead * constant("PAGE") for book in books),
    )


def _mirror_card(card: Any) -> MirrorCard:
    return MirrorCard(
        number=card.id,
        priority=min(card.priority, 100) or None,
        weight=min(card.weight, 100),
        weight_sum=card.weight_sum,
        quota=card.quota,
        used=card.used,
        overhead=card.overhead,
        held_us=card.held_us,
        denials=card.denials,
        waits=card.waits,
        wait_us=card.wait_us,
        longest_us=card.longest_us,
    )
