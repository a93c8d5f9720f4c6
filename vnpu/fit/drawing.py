"""Where everything of a plan's picture stands: nodes in columns, cards as bars, slices to scale within them.

A card is two bars: the wide one is its memory, the narrow one below its compute. All memory of a picture has one
scale, so that a card of half the memory is half as long.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from vnpu.fit.occupancy import compute_part, described

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vnpu.fit.occupancy import Holding, Occupied, OccupiedNode

WIDTH: Final = 1240
"""Of a picture: what a laptop shows without scrolling sideways."""

MOST_DRAWN: Final = 4_000
"""Cards of one picture; more than that nobody looks through, and a browser takes seconds to show."""

_PADDING: Final = 10
_GUTTER: Final = 12


@dataclass(frozen=True, slots=True)
class Size:
    """How large things are drawn.

    Attributes:
        bar: length of the longest card.
        memory: height of the bar of memory.
        compute: height of the bar of compute.
        gap: between two cards.
        font: size of the text.
        label: room for the number of a card, left of it.
        told: room for what is held of the card, right of it; 0 for none.
    """

    bar: int
    memory: int
    compute: int
    gap: int
    font: int
    label: int
    told: int = 0

    @property
    def column(self) -> int:
        """Width of a node."""
        return 2 * _PADDING + self.label + self.bar + self.told

    def fits(self, text: str, width: float) -> str:
        """The text, cut where it is longer than that; ``""`` where next to nothing would be left of it."""
        most = int(width / (0.6 * self.font))
        if len(text) <= most:
            return text
        return text[: most - 1] + "…" if most > 3 else ""


_LARGE: Final = Size(bar=850, memory=30, compute=9, gap=10, font=13, label=34, told=320)
_MEDIUM: Final = Size(bar=352, memory=18, compute=6, gap=6, font=12, label=28)
_SMALL: Final = Size(bar=112, memory=9, compute=3, gap=3, font=11, label=20)


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class SliceBox:
    """What one holds of a card: parts of both bars.

    Attributes:
        memory: within the bar of memory.
        compute: within the bar of compute; without width where no compute is held.
        pod: as in :class:`vnpu.fit.occupancy.Holding`.
        number: the same.
        text: what is written into the bar, as far as there is room.
        hint: what is told of it in full.
    """

    memory: Box
    compute: Box
    pod: str | None
    number: int
    text: str
    hint: str


@dataclass(frozen=True, slots=True)
class CardBox:
    """A card: its two bars and the slices in them.

    Attributes:
        memory: the bar of memory.
        compute: the bar of compute.
        occupied: the card.
        slices: from left to right.
        told: what is held in all, where there is room for it.
        hint: what is told of it in full.
    """

    memory: Box
    compute: Box
    occupied: Occupied
    slices: tuple[SliceBox, ...]
    told: str
    hint: str


@dataclass(frozen=True, slots=True)
class NodeBox:
    """A node: its frame, and what stands in it."""

    frame: Box
    title: str
    node: OccupiedNode
    cards: tuple[CardBox, ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """All of it.

    Attributes:
        height: of the picture; it is :data:`WIDTH` wide.
        size: how large things are.
        nodes: those that are drawn.
        left_out: nodes that are not, as there are too many.
        mib_per_unit: the scale of memory.
    """

    height: float
    size: Size
    nodes: tuple[NodeBox, ...]
    left_out: int
    mib_per_unit: float


def draw(nodes: Sequence[OccupiedNode]) -> Picture:
    """Lays a plan out, from the top left corner on. Where there are too many nodes, the first ones are drawn."""
    shown = list(_shown(nodes))
    cards = sum(len(one.cards) for one in shown)
    size = _LARGE if cards <= 16 else _MEDIUM if cards <= 160 else _SMALL
    columns = (WIDTH + _GUTTER) // (size.column + _GUTTER)
    size = replace(size, bar=size.bar + (WIDTH + _GUTTER) // columns - _GUTTER - size.column)
    largest = max((card.card.memory_mib for one in shown for card in one.cards), default=1)
    scale = max(1, largest) / size.bar
    boxes: list[NodeBox] = []
    top = 0.0
    for start in range(0, len(shown), columns):
        row = [
            _node(one, place * (size.column + _GUTTER), top, size, scale)
            for place, one in enumerate(shown[start : start + columns])
        ]
        top = max(box.frame.y + box.frame.height for box in row) + _GUTTER
        boxes += row
    return Picture(max(0.0, top - _GUTTER), size, tuple(boxes), len(nodes) - len(shown), scale)


def _shown(nodes: Sequence[OccupiedNode]) -> Iterator[OccupiedNode]:
    left = MOST_DRAWN
    for one in nodes:
        left -= len(one.cards)
        if left < 0:
            return
        yield one


def _node(one: OccupiedNode, x: float, y: float, size: Size, scale: float) -> NodeBox:
    title_height = size.font + 8
    step = size.memory + size.compute + 1 + size.gap
    cards = tuple(
        _card(card, x + _PADDING + size.label, y + _PADDING + title_height + place * step, size, scale)
        for place, card in enumerate(one.cards)
    )
    height = 2 * _PADDING + title_height + (len(cards) * step - size.gap if cards else 0)
    return NodeBox(Box(x, y, size.column, height), _title(one, size), one, cards)


def _title(one: OccupiedNode, size: Size) -> str:
    node = one.node
    chips = sorted({card.card.chip for card in one.cards})
    full = f"{node.name}: {len(one.cards)} x {', '.join(chips)}" if chips else f"{node.name}: no cards"
    full += "" if node.soft or not chips else ", hard slices only"
    width = size.column - 2 * _PADDING
    return full if size.fits(full, width) == full else size.fits(node.name, width)


def _card(card: Occupied, x: float, y: float, size: Size, scale: float) -> CardBox:
    memory = Box(x, y, card.card.memory_mib / scale, size.memory)
    compute = Box(x, y + size.memory + 1, memory.width, size.compute)
    slices = []
    memory_end, compute_end = memory.x, compute.x
    for holding in card.holdings:
        # A card that is over-booked is full, and not longer than it is.
        wide = min(holding.use.memory_mib / scale, memory.x + memory.width - memory_end)
        long = min(compute_part(card.card, holding.use) * compute.width, compute.x + compute.width - compute_end)
        place = (
            Box(memory_end, y, max(0.0, wide), size.memory),
            Box(compute_end, compute.y, max(0.0, long), size.compute),
        )
        slices.append(_slice(card, holding, *place, size))
        memory_end += place[0].width
        compute_end += place[1].width
    return CardBox(memory, compute, card, tuple(slices), _told(card, size), _hint(card))


def _slice(card: Occupied, holding: Holding, memory: Box, compute: Box, size: Size) -> SliceBox:
    held = described(card.card, holding.use)
    name = holding.pod if holding.pod is not None else "held already"
    count = f", {holding.use.slots} slices" if holding.use.slots > 1 else ""
    room = memory.width - 8
    text = "" if size.memory < size.font + 2 else size.fits(f"{name}  {held}", room)
    if text.endswith("…"):
        text = size.fits(name.rpartition("/")[2], room)
    return SliceBox(memory, compute, holding.pod, holding.number, text, f"{name}: {held}{count}")


def _told(card: Occupied, size: Size) -> str:
    return size.fits(", ".join([_amounts(card), *_notes(card)]), size.told - 12) if size.told else ""


def _hint(card: Occupied) -> str:
    slots = f"{card.status.use.slots} of {card.card.slots} slots"
    named = f"card {card.card.index} ({card.card.uuid}), {card.card.chip}"
    return f"{named}: {', '.join([_amounts(card), slots, *_notes(card)])}"


def _amounts(card: Occupied) -> str:
    use = card.status.use
    return f"{use.memory_mib} of {card.card.memory_mib} MiB, {compute_part(card.card, use) * 100:.0f} % of compute"


def _notes(card: Occupied) -> list[str]:
    notes = ((not card.card.healthy, "unhealthy"), (card.cordoned, "cordoned"))
    return [text for holds, text in notes if holds]
