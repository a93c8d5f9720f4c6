"""The findings, for people and for programs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from vnpu.errors import printable
from webhook.doctor.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.doctor.finding import Finding

_ORDER: Final = tuple(Severity)
_WIDTH: Final = max(map(len, Severity))


def text(findings: Sequence[Finding]) -> Iterator[str]:
    """Lines, the worst first; what is well stands in one line at the end."""
    for severity in _ORDER[:-1]:
        for finding in findings:
            if finding.severity is severity:
                yield printable(f"{severity:<{_WIDTH}}  {finding.subject}: {finding.seen}  [{finding.code}]") + "\n"
                if finding.remedy:
                    yield printable(f"{'':<{_WIDTH}}  -> {finding.remedy}") + "\n"
    well = [finding.subject for finding in findings if finding.severity is Severity.OK]
    if well:
        yield printable(f"{Severity.OK:<{_WIDTH}}  {', '.join(well)}") + "\n"
    yield ", ".join(f"{count} {severity}" for severity, count in counts(findings).items()) + "\n"


def to_json(findings: Sequence[Finding]) -> dict[str, Any]:
    """The same as JSON; its schema is ``doctor.schema.json`` beside this module."""
    return {
        "findings": [
            {
                "code": finding.code,
                "severity": finding.severity.value,
                "subject": finding.subject,
                "seen": finding.seen,
                "remedy": finding.remedy,
            }
            for finding in sorted(findings, key=lambda one: _ORDER.index(one.severity))
        ],
        "summary": {severity.value: count for severity, count in counts(findings).items()},
    }


def counts(findings: Sequence[Finding]) -> dict[Severity, int]:
    """How many there are of each severity."""
    found = Counter(finding.severity for finding in findings)
    return {severity: found[severity] for severity in _ORDER}
