"""The table of values in the chart's README, made from the comments in values.yaml.

``python -m tests.support.chart_readme`` writes it anew, below the line that says so; a test compares.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tests.support import helm

if TYPE_CHECKING:
    from collections.abc import Iterator

README: Final = helm.CHART / "README.md"
_MARK: Final = "<!-- Below: made from values.yaml by `make chart-readme`. -->\n"
_KEY: Final = re.compile(r"(?P<indent> *)(?P<key>[A-Za-z0-9]+):(?P<value>.*)")
_LONGEST: Final = 60


@dataclass(frozen=True)
class Value:
    """A value that a comment stands above."""

    path: str
    default: Any
    comment: str


def commented() -> Iterator[Value]:
    """The values in the order of the file; items of lists are part of their list."""
    comment: list[str] = []
    parents: list[tuple[int, str]] = []
    whole = helm.values()
    for line in (helm.CHART / "values.yaml").read_text().splitlines():
        text = line.strip()
        found = _KEY.fullmatch(line)
        if text.startswith("#"):
            comment.append(text.removeprefix("#").removeprefix(" "))
            continue
        if found:
            indent = len(found["indent"])
            parents = [entry for entry in parents if entry[0] < indent] + [(indent, found["key"])]
            path = [key for _, key in parents]
            if comment:
                yield Value(".".join(path), _at(whole, path), _paragraphs(comment))
        comment = []


def _at(values: Any, path: list[str]) -> Any:
    for key in path:
        values = values[key]
    return values


def _paragraphs(lines: list[str]) -> str:
    return "<br>".join(part.replace("\n", " ") for part in "\n".join(lines).split("\n\n"))


def table() -> str:
    """The table, in Markdown."""
    rows = ["| value | default | |", "|---|---|---|"]
    for value in commented():
        default = json.dumps(value.default, ensure_ascii=False)
        shown = f"`{default}`" if len(default) <= _LONGEST else "see values.yaml"
        rows.append(f"| `{value.path}` | {shown} | {value.comment.replace('<', '&lt;')} |")
    return "\n".join(rows) + "\n"


def document() -> str:
    """The README as it should be: what stands above the line, and the table below it."""
    return README.read_text().partition(_MARK)[0] + _MARK + "\n" + table()


if __name__ == "__main__":
    README.write_text(document())
