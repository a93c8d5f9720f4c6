"""A plan as a web page: one HTML file that needs nothing else and runs no script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vnpu.fit import svg
from vnpu.fit.drawing import WIDTH, draw
from vnpu.fit.occupancy import occupancy, totals
from vnpu.fit.table import sections

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vnpu.fit.occupancy import OccupiedNode
    from vnpu.fit.report import Report
    from vnpu.fit.table import Section

_STYLE: Final = """
:root{color-scheme:light dark}
body{margin:0 auto;max-width:1280px;padding:20px;font:14px/1.45 system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',
'DejaVu Sans',sans-serif;background:%(ground)s;color:%(ink)s}
h1{font-size:22px;margin:0 0 12px}h2{font-size:16px;margin:24px 0 8px}
.tiles{display:flex;flex-wrap:wrap;gap:12px;margin:0 0 16px}
.tile{border:1px solid %(frame)s;border-radius:6px;padding:8px 16px;min-width:110px}
.tile b{display:block;font-size:22px}.tile span{color:%(quiet)s}
.problem,.problem b{color:%(bad)s}
svg{display:block;max-width:100%%;height:auto;margin:20px 0}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%%}
th,td{text-align:left;padding:4px 12px 4px 0;vertical-align:top;border-bottom:1px solid %(frame)s}
th{color:%(quiet)s;font-weight:600;white-space:nowrap}
td{overflow-wrap:anywhere}td:not(.n){min-width:13em}td.n,th.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
details{margin:16px 0}summary{cursor:pointer;font-size:16px;font-weight:600}
"""
_DARK: Final = """@media(prefers-color-scheme:dark){body{background:%(ground)s;color:%(ink)s}
.tile,th,td{border-color:%(frame)s}.tile span,th{color:%(quiet)s}.problem,.problem b{color:%(bad)s}}
"""


def write(report: Report) -> Iterator[str]:
    """The page, in pieces: numbers, what is not placed and why, the picture, and the tables behind it."""
    nodes = occupancy(report)
    heading = svg.summary(report)
    yield '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield f"<title>{svg.safe(heading)}</title>\n<style>{_STYLE % svg.LIGHT}{_DARK % svg.DARK}</style>\n"
    yield f"</head>\n<body>\n<h1>{svg.safe(heading)}</h1>\n"
    yield from _tiles(report, nodes)
    tables = list(sections(report))
    for table in tables:
        if table.bad:
            yield f'<h2 class="problem">{svg.safe(table.title)}</h2>\n'
            yield from _table(table)
    yield from _picture(nodes, heading)
    for table in tables:
        if not table.bad:
            yield f"<details><summary>{svg.safe(table.title)}</summary>\n"
            yield from _table(table)
            yield "</details>\n"
    yield "</body>\n</html>\n"


def _tiles(report: Report, nodes: list[OccupiedNode]) -> Iterator[str]:
    memory, compute = totals(nodes)
    left = len(report.plan.unplaced)
    numbers = [
        (str(len(report.plan.placements)), "pods placed", False),
        (str(left), "not placed", left > 0),
        (f"{memory * 100:.0f} %", "of memory held", False),
        (f"{compute * 100:.0f} %", "of compute held", False),
        (str(sum(not card.status.use.slots for one in nodes for card in one.cards)), "cards empty", False),
    ]
    yield '<div class="tiles">\n'
    for number, words, problem in numbers:
        yield f'<div class="tile{" problem" if problem else ""}"><b>{number}</b><span>{words}</span></div>\n'
    yield "</div>\n"


def _picture(nodes: list[OccupiedNode], heading: str) -> Iterator[str]:
    picture = draw(nodes)
    top = 34
    height = top + picture.height + (24 if picture.left_out else 4)
    yield '<div class="wide">\n'
    yield from svg.opened(height, WIDTH, heading)
    yield from svg.legend(picture, nodes, 0, 12)
    yield f'<g transform="translate(0 {top})">\n'
    yield from svg.body(picture)
    yield "</g>\n</svg>\n</div>\n"


def _table(table: Section) -> Iterator[str]:
    yield '<div class="wide"><table>\n'
    looks = [' class="n"' if column.number else "" for column in table.columns]
    if any(column.title for column in table.columns):
        cells = (f"<th{look}>{svg.safe(column.title)}</th>" for look, column in zip(looks, table.columns, strict=True))
        yield f"<tr>{''.join(cells)}</tr>\n"
    for row in table.rows:
        yield "<tr>" + "".join(f"<td{look}>{svg.safe(cell)}</td>" for look, cell in zip(looks, row, strict=True))
        yield "</tr>\n"
    yield "</table></div>\n"
