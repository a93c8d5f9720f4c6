"""``hami.io/node-handshake-<chip>``: the talk between device plugin and HAMi's scheduler about whether a node lives.

The plugin writes ``Reported_2006.01.02 15:04:05`` every 30 seconds, the scheduler answers
``Requesting_2006-01-02 15:04:05``. Both write their local time without its zone, and with different dots, so the zone
is for the caller to know; each form is read in either spelling of the date.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from vnpu.annotations.fields import text
from vnpu.errors import AnnotationError

if TYPE_CHECKING:
    from datetime import tzinfo


class Side(StrEnum):
    """Who spoke last: the device plugin (``Reported``) or the scheduler (``Requesting``)."""

    REPORTED = "Reported"
    REQUESTING = "Requesting"


_DATE_MARK: Final = {Side.REPORTED: ".", Side.REQUESTING: "-"}
_GRAMMAR: Final = re.compile(
    r"(?P<side>Reported|Requesting)_(?P<date>\d{4}(?P<mark>[.-])\d{2}(?P=mark)\d{2}) (?P<clock>\d{2}:\d{2}:\d{2})",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Handshake:
    """One turn of the talk.

    Attributes:
        side: who spoke.
        time: when, to the second, with the zone of the one who spoke.
    """

    side: Side
    time: datetime


def decode(value: Any, zone: tzinfo, path: str = "") -> Handshake:
    """The turn in the annotation; spaces around it do not count.

    Args:
        value: the annotation's value.
        zone: the zone in which the writer keeps its clock.
        path: the annotation, for the error.

    Raises:
        AnnotationError: neither form, or no date of the calendar.
    """
    match = _GRAMMAR.fullmatch(text(value, path).strip())
    if match is not None:
        date = match["date"].replace(".", "-")
        try:
            time = datetime.fromisoformat(f"{date}T{match['clock']}").replace(tzinfo=zone)
            return Handshake(Side(match["side"]), time)
        except ValueError:
            pass  # the 31st of February
    raise AnnotationError(
        path, value, "Reported_2006.01.02 15:04:05 or Requesting_2006-01-02 15:04:05 is expected, with the time"
    )


def encode(handshake: Handshake) -> str:
    """The text of the turn, in the spelling of its side."""
    time, mark = handshake.time, _DATE_MARK[handshake.side]
    date, clock = time.replace(tzinfo=None).isoformat(sep=" ", timespec="seconds").split(" ")
    return f"{handshake.side}_{date.replace('-', mark)} {clock}"
