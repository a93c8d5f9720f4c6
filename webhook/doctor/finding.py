"""What the doctor says: findings, and the faults that they are instances of."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How bad a finding is, the worst first.

    ``unknown`` is what could not be looked at: it may be anything, and is never taken for well.
    """

    ERROR = "error"
    WARNING = "warning"
    UNKNOWN = "unknown"
    INFO = "info"
    OK = "ok"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was seen.

    Attributes:
        code: names the kind of finding for programs and for docs/doctor.md.
        severity: how bad it is.
        subject: kind and name of the object that it is about.
        seen: what was seen, one sentence without a final stop.
        remedy: what to do, ``""`` where nothing is to be done.
    """

    code: str
    severity: Severity
    subject: str
    seen: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Fault:
    """A kind of finding.

    Attributes:
        code: as in :class:`Finding`.
        severity: the same.
        remedy: the same; facts about the case stand in braces.
    """

    code: str
    severity: Severity
    remedy: str = ""

    def at(self, subject: str, seen: str, **facts: object) -> Finding:
        """The finding about a subject; the facts are put into the remedy."""
        return Finding(self.code, self.severity, subject, seen, self.remedy.format(**facts))
