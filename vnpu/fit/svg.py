"""A plan as a picture: one SVG that needs nothing else, light or dark as its reader has it."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import escape

from vnpu.errors import printable
from vnpu.fit.drawing import WIDTH, draw
from vnpu.fit.occupancy import occupancy
from vnpu.fit.table import sections

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vnpu.fit.drawing import Box, CardBox, NodeBox, Picture
    from vnpu.fit.occupancy import OccupiedNode
    from vnpu.fit.report import Report

PALETTE: Final = (
    *("#3f91e4", "#dc7012", "#2fa168", "#b56cce", "#e25959", "#239aa4"),
    *("#a98f0e", "#d75ea4", "#589f35", "#7f76e2", "#c1765c", "#6c93a7"),
)
"""Pods take these in turns. Black text on each has a contrast of 4.5 at least, each has 3 on light and dark ground."""

LIGHT: Final = {
    "ground": "#ffffff",
    "ink": "#1a1f26",
    "quiet": "#59626e",
    "frame": "#c8ced6",
    "track": "#e7eaee",
    "bad": "#b3261e",
    "warn": "#8a5700",
}
DARK: Final = {
    "ground": "#12161c",
    "ink": "#e8ebef",
    "quiet": "#a3adb9",
    "frame": "#3b444f",
    "track": "#2a313a",
    "bad": "#ff8a80",
    "warn": "#f0b24a",
}

_MARGIN: Final = 20
_LINE: Final = 18
_MOST_TOLD: Final = 20
"""Lines about refused pods that the picture has; the HTML page lists them all."""

_TEXT_WIDTH: Final = 165
"""Characters of a line over the whole width."""

_BASELINE: Final = 0.35
"""From the middle of a line of text down to its foot, in parts of its size; not every reader of SVG can centre text."""


def _style() -> str:
    pods = "".join(f".p{number}{{fill:{colour}}}" for number, colour in enumerate(PALETTE))
    return (
        "svg{font:13px system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans','DejaVu Sans',sans-serif}"
        ".title{font-size:18px;font-weight:600}.name{font-weight:600}.on{fill:#000}"
        f"{pods}{_colours(LIGHT)}@media(prefers-color-scheme:dark){{{_colours(DARK)}}}"
    )


def _colours(ground: dict[str, str]) -> str:
    return (
        f".ground{{fill:{ground['ground']}}}.ink{{fill:{ground['ink']}}}.quiet{{fill:{ground['quiet']}}}"
        f".frame{{fill:none;stroke:{ground['frame']}}}.track{{fill:{ground['track']}}}"
        f".bad{{fill:{ground['bad']}}}.warn{{fill:{ground['warn']}}}.before{{fill:{ground['quiet']}}}"
        f".edge{{stroke:{ground['ground']};stroke-width:1}}"
        f".closed{{stroke:{ground['bad']};fill:none}}.cordoned{{stroke:{ground['warn']};fill:none}}"
    )


def write(report: Report) -> Iterator[str]:
    """The picture with a heading, a legend and the first refused pods, in pieces."""
    nodes = occupancy(report)
    picture = draw(nodes)
    refused = _refused(report)
    top = _MARGIN + 62
    below = top + picture.height + _MARGIN + (10 if refused else 0)
    height = below + _LINE * len(refused) + (_MARGIN if refused else 0)
    heading = summary(report)
    yield from opened(height, WIDTH + 2 * _MARGIN, heading)
    yield f'<rect class="ground" width="{WIDTH + 2 * _MARGIN}" height="{_number(height)}"/>\n'
    yield text(_MARGIN, _MARGIN + 12, heading, "title ink")
    yield from legend(picture, nodes, _MARGIN, _MARGIN + 36)
    yield f'<g transform="translate({_MARGIN} {top})">\n'
    yield from body(picture)
    yield "</g>\n"
    for number, line in enumerate(refused):
        yield text(_MARGIN, below + _LINE * number + 8, line, "bad" if number == 0 else "ink")
    yield "</svg>\n"


def opened(height: float, width: float, label: str) -> Iterator[str]:
    """The head of an SVG of that size, with its colours."""
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_number(width)} {_number(height)}" '
        f'width="{_number(width)}" height="{_number(height)}" role="img" aria-label="{safe(label)}">\n'
        f"<title>{safe(label)}</title>\n<style>{_style()}</style>\n"
        '<defs><pattern id="before" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<rect class="track" width="5" height="5"/><rect class="before" width="2" height="5"/></pattern></defs>\n'
    )


def summary(report: Report) -> str:
    """The plan in one line."""
    plan = report.plan
    placed, left = len(plan.placements), len(plan.unplaced)
    cards, nodes = len(plan.cards), len(report.cluster.nodes)
    told = f"{placed} of {_counted(placed + left, 'pod')} placed on {_counted(nodes, 'node')} with "
    return told + _counted(cards, "card")


def legend(picture: Picture, nodes: Sequence[OccupiedNode], x: float, y: float) -> Iterator[str]:
    """What the bars mean, on one line, and the scale of memory."""
    cards = [card for one in nodes for card in one.cards]
    pods = any(holding.pod is not None for card in cards for holding in card.holdings)
    before = any(holding.pod is None for card in cards for holding in card.holdings)
    entries: list[tuple[str, str]] = []
    if pods:
        entries.append((f'<rect class="{_class_of(0)}" width="26" height="8"/>', "memory of a pod"))
        entries.append((f'<rect class="{_class_of(0)}" y="9" width="26" height="3"/>', "its compute, below"))
    if before:
        entries.append(('<rect fill="url(#before)" width="26" height="12"/>', "held already"))
    entries.append(('<rect class="track" width="26" height="12"/>', "free"))
    if any(not card.card.healthy for card in cards):
        entries.append(('<rect class="closed" x=".5" y=".5" width="25" height="11"/>', "unhealthy"))
    if any(card.cordoned for card in cards):
        entries.append(('<rect class="cordoned" x=".5" y=".5" width="25" height="11"/>', "cordoned"))
    for mark, words in entries:
        yield f'<g transform="translate({_number(x)} {_number(y - 6)})">{mark}</g>\n'
        yield text(x + 32, y + 4.5, words, "quiet")
        x += 32 + 7.2 * len(words) + 22
    gib = next(gib for gib in (64, 32, 16, 8, 4, 2, 1) if gib * 1024 / picture.mib_per_unit <= 200 or gib == 1)
    length = gib * 1024 / picture.mib_per_unit
    yield f'<rect class="quiet" x="{_number(x)}" y="{_number(y - 1)}" width="{_number(length)}" height="2"/>\n'
    yield text(x + length + 8, y + 4.5, f"{gib} GiB of memory", "quiet")


def body(picture: Picture) -> Iterator[str]:
    """The nodes."""
    for box in picture.nodes:
        yield from _node(box, picture)
    if picture.left_out:
        told = f"and {_counted(picture.left_out, 'more node')}, not drawn"
        yield text(0, picture.height + 14, told, "quiet")


def _node(box: NodeBox, picture: Picture) -> Iterator[str]:
    node = box.node.node
    font = picture.size.font
    hint = f"{node.name}: {'soft' if node.soft else 'hard'} node"
    hint += f", takes no new slices: {node.unsafe}" if node.unsafe else ""
    yield f'<g font-size="{font}"><title>{safe(hint)}</title>\n'
    yield f'<rect class="frame" {_place(box.frame)} rx="4"/>\n'
    yield text(box.frame.x + 10, box.frame.y + 10 + font / 2, box.title, f"name {'bad' if node.unsafe else 'ink'}")
    for card in box.cards:
        yield from _card(card, picture)
    yield "</g>\n"


def _card(card: CardBox, picture: Picture) -> Iterator[str]:
    occupied = card.occupied
    closed = "bad" if not occupied.card.healthy else "warn" if occupied.cordoned else "quiet"
    foot = card.memory.y + card.memory.height / 2 + _BASELINE * picture.size.font
    yield f"<g><title>{safe(card.hint)}</title>"
    yield text(card.memory.x - 7, foot, str(occupied.card.index), closed, end=True).rstrip()
    yield f'<rect class="track" {_place(card.memory)}/><rect class="track" {_place(card.compute)}/>'
    if closed != "quiet":
        mark = "closed" if closed == "bad" else "cordoned"
        yield f'<rect class="{mark}" {_place(card.memory)}/>'
    if card.told:
        yield text(card.memory.x + picture.size.bar + 12, foot, card.told, "quiet").rstrip()
    yield "</g>\n"
    for one in card.slices:
        look = 'fill="url(#before)"' if one.pod is None else f'class="{_class_of(one.number)} edge"'
        yield f"<g><title>{safe(one.hint)}</title><rect {look} {_place(one.memory)}/>"
        if one.compute.width:
            yield f"<rect {look} {_place(one.compute)}/>"
        if one.text and one.pod is not None:
            yield text(one.memory.x + 5, foot, one.text, "on").rstrip()
        yield "</g>\n"


def _class_of(number: int) -> str:
    return f"p{number % len(PALETTE)}"


def _refused(report: Report) -> list[str]:
    lines: list[str] = []
    for table in sections(report, warnings=False):
        if table.bad:
            lines.append(table.title)
            for row in table.rows:
                lines += wrap(f"{row[0]}: {row[-1]}", _TEXT_WIDTH)
    more = len(lines) - _MOST_TOLD
    return [*lines[:_MOST_TOLD], f"and {_counted(more, 'more line')}"] if more > 0 else lines


def text(x: float, y: float, words: str, look: str, *, end: bool = False) -> str:
    """A line of text; ``end`` for text that ends at ``x``."""
    anchor = ' text-anchor="end"' if end else ""
    return f'<text class="{look}" x="{_number(x)}" y="{_number(y)}"{anchor}>{safe(words)}</text>\n'


def safe(words: str) -> str:
    """Text as XML and HTML take it, whatever it is, inside of quotes too."""
    return escape(printable(words), {'"': "&quot;", "'": "&#39;"})


def _place(box: Box) -> str:
    return f'x="{_number(box.x)}" y="{_number(box.y)}" width="{_number(box.width)}" height="{_number(box.height)}"'


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _counted(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"
