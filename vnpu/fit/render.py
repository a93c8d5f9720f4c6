"""Writing a report: tables on a terminal or as plain text, JSON, YAML, a web page, a picture."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TextIO

from vnpu.errors import VnpuError, printable
from vnpu.fit import page, svg
from vnpu.fit.arguments import Output
from vnpu.fit.json_form import to_json
from vnpu.fit.table import sections

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from vnpu.fit.report import Report
    from vnpu.fit.table import Section


class MissingLibraryError(VnpuError):
    """What was asked for needs a library that is not installed."""


def write(report: Report, output: Output, stream: TextIO, *, warnings: bool = True) -> None:
    """Writes the report.

    Args:
        report: what to write.
        output: in which form.
        stream: where to; tables have colours and rules only where it is a terminal and rich is installed.
        warnings: whether tables show them; the other forms always have them.

    Raises:
        MissingLibraryError: YAML without PyYAML.
    """
    if output is Output.JSON:
        encoder = json.JSONEncoder(indent=2, default=dict)
        stream.writelines(encoder.iterencode(to_json(report, texts=lambda texts: texts)))
        stream.write("\n")
    elif output is Output.YAML:
        stream.write(_yaml(report))
    elif output is Output.HTML:
        stream.writelines(page.write(report))
    elif output is Output.SVG:
        stream.writelines(svg.write(report))
    else:
        show(list(sections(report, warnings=warnings)), stream)


def show(tables: Sequence[Section], stream: TextIO) -> None:
    """Writes tables: with colours and rules where the stream is a terminal and rich is installed, else as text."""
    if not (stream.isatty() and _drawn(tables, stream)):
        stream.write(plain(tables))


def _yaml(report: Report) -> str:
    try:
        import yaml  # noqa: PLC0415 - the planner works without it
    except ImportError as error:
        raise MissingLibraryError("-o yaml needs PyYAML: pip install 'ascend-vnpu[cli]'") from error
    text: str = yaml.dump(to_json(report), Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), sort_keys=False)
    return text


def plain(tables: Iterable[Section]) -> str:
    """Tables as aligned text, two spaces between columns; what cannot be printed is replaced."""
    return "\n".join(map(_plain_table, tables))


def _plain_table(table: Section) -> str:
    titles = tuple(column.title for column in table.columns)
    rows = [*([titles] if any(titles) else []), *(tuple(map(printable, row)) for row in table.rows)]
    widths = [max(map(len, texts)) for texts in zip(*rows, strict=True)]
    lines = [printable(table.title)]
    for row in rows:
        cells = [
            text.rjust(width) if column.number else text.ljust(width)
            for text, width, column in zip(row, widths, table.columns, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines) + "\n"


def _drawn(tables: Iterable[Section], stream: TextIO) -> bool:
    """Draws the tables with rich, which knows the terminal's width and ``NO_COLOR``; whether it is installed."""
    try:
        from rich import box  # noqa: PLC0415 - only where a terminal is
        from rich.console import Console  # noqa: PLC0415
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415
    except ImportError:
        return False
    console = Console(file=stream)
    for table in tables:
        named = any(column.title for column in table.columns)
        console.print(Text(printable(table.title), style="bold red" if table.bad else "bold"))
        drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_header=named)
        for column in table.columns:
            drawn.add_column(
                column.title, justify="right" if column.number else "left", no_wrap=column.number, overflow="fold"
            )
        for row in table.rows:
            drawn.add_row(*(Text(printable(text)) for text in row))
        console.print(drawn)
    return True
