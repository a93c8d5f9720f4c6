"""The hooks of libvnpu.so as a page for people, made from the table that they are compiled from.

``python -m interceptor.hooks > docs/hooks.md`` writes it.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vnpu.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

TABLE = Path(__file__).parent / "src" / "hooks.def"

_ROW = re.compile(r"VNPU_([A-Z]+)\(([A-Z_]+), (\w+)")
_SECTION = re.compile(r"/\* (.*) \*/")
_UNIT = re.compile(r"(hooks_\w+\.c)$")
_LIBRARIES = {
    "ACL": "AscendCL",
    "OP_COMPILER": "operator compiler",
    "RT": "runtime",
    "HAL": "driver",
    "DCMI": "DCMI",
    "DSMI": "DSMI",
    "DVPP": "DVPP",
    "DVPP_MPI": "DVPP (MPI)",
}
_DEEDS = {
    "ALLOCATE": "is charged to the quota before the device is asked",
    "FREE": "gives back what the allocation took",
    "LAUNCH": "waits for the turn of its container",
    "OWN": "as told above",
}
_ALLOWED = "VNPU_<kind>(<library>, <name>, ...) below a comment is allowed"
_COLUMNS = ("| function | of | |", "|---|---|---|")
_HEAD = """\
# Hooks

What libvnpu.so does with each function that it stands in for. This page is made from `interceptor/src/hooks.def` by
`python -m interceptor.hooks`. Only the outermost call of a thread counts, whichever of them it comes in by. A function
that the installed CANN lacks is not found by `dlsym`; called all the same, it says that it is not supported."""


@dataclass(frozen=True)
class Hook:
    """One function: its section in the table, what kind of hook it has, and the library that it belongs to."""

    section: str
    kind: str
    library: str
    name: str


def hooks(table: str) -> Iterator[Hook]:
    """The rows of the table.

    Raises:
        InputError: a row is none, or stands before the first section.
    """
    section = ""
    for number, line in enumerate(table.splitlines(), start=1):
        if title := _SECTION.fullmatch(line):
            section = _UNIT.sub(r"Written in `interceptor/src/\1`.", title[1])
        elif line.startswith("VNPU_"):
            row = _ROW.match(line)
            if row is None or row[1] not in _DEEDS or row[2] not in _LIBRARIES or not section:
                raise InputError(
                    f"line {number}", line, "VNPU_<kind>(<library>, <name>, ...) below a comment is allowed"
                )
            yield Hook(section, row[1], row[2], row[3])


def page(table: str) -> str:
    """The page: a list for each section.

    Raises:
        InputError: the table is malformed.
    """
    lines = [_HEAD]
    section = ""
    for hook in hooks(table):
        if hook.section != section:
            section = hook.section
            title, _, text = section.partition(". ")
            lines += [f"\n## {title.rstrip('.')}\n", *([f"{text}\n"] if text else []), *_COLUMNS]
        lines.append(f"| `{hook.name}` | {_LIBRARIES[hook.library]} | {_DEEDS[hook.kind]} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page(TABLE.read_text()))
