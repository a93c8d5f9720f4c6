"""Each finding of the doctor on a cluster that has just this fault, and on clusters that have none."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import webhook.doctor
from tests.support import doctor
from webhook.doctor.case import Case
from webhook.doctor.checks import CHECKS, examine
from webhook.doctor.finding import Fault, Severity

if TYPE_CHECKING:
    from webhook.doctor.finding import Finding

DOCUMENT = Path(__file__).parents[3] / "docs" / "doctor.md"


def faults() -> dict[str, Fault]:
    """Every fault that any check knows."""
    modules = [
        importlib.import_module(f"webhook.doctor.{module.name}")
        for module in pkgutil.iter_modules(webhook.doctor.__path__)
    ]
    found = [value for module in modules for value in vars(module).values() if isinstance(value, Fault)]
    by_code = {fault.code: fault for fault in found}
    assert len({id(fault) for fault in found}) == len(by_code), "each code is one fault's"
    return by_code


def told(findings: list[Finding]) -> list[dict[str, str]]:
    return [
        {"code": one.code, "severity": one.severity.value, "subject": one.subject, "seen": one.seen}
        for one in findings
        if one.severity is not Severity.OK
    ]


@pytest.mark.parametrize("name", ["kube", "volcano", "hami"])
def test_nothing_is_found_where_all_is_well(name: str) -> None:
    findings = examine(Case(doctor.snapshot(doctor.cluster(name))))
    assert told(findings) == []
    others = {"kube": ("Volcano", "HAMi"), "volcano": ("HAMi", "our scheduler"), "hami": ("Volcano", "our scheduler")}
    looked = [check.title for check in CHECKS if not check.title.startswith(others[name])]
    assert [one.subject for one in findings] == looked


@pytest.mark.parametrize("name", doctor.CASES)
def test_a_fault_is_found_and_nothing_else(name: str) -> None:
    found = examine(doctor.case(doctor.CASES[name]))
    assert told(found) == doctor.expected(doctor.CASES[name])
    for finding in found:
        if finding.severity in (Severity.ERROR, Severity.WARNING, Severity.UNKNOWN):
            assert finding.remedy, "whoever is warned is told what to do"
        assert not re.search(r"[{}]", finding.remedy), "every fact is filled in"


def test_what_is_not_there_is_not_called_well() -> None:
    well = {one.subject for one in examine(doctor.case(doctor.CASES["nothing-installed"])) if not one.remedy}
    assert well == {"other webhooks", "admission, by dry runs", "pods that kubelet refused"}
    empty = examine(Case(doctor.snapshot([], calls={})))
    assert {one.subject for one in empty if one.severity is Severity.OK} == {
        "other webhooks",
        "pods that kubelet refused",
        "pods that wait for a device plugin",
        "schedulers of pods",
    }


@pytest.mark.parametrize(
    ("name", "code", "remedy"),
    [
        ("could-not-look", "could-not-look", "where the API server forbids it, let this account get and list it"),
        ("dry-run-forbidden", "could-not-look", "let this account create pods there"),
        ("nothing-installed", "could-not-look", "see to what is missing"),
        ("not-installed", "not-installed", "name its namespace"),
        ("pod-of-other-scheduler", "pod-of-other-scheduler", "give it no schedulerName"),
        ("pod-of-default-scheduler", "pod-of-other-scheduler", "make it anew"),
    ],
)
def test_a_remedy_is_for_what_was_seen(name: str, code: str, remedy: str) -> None:
    told = [one.remedy for one in examine(doctor.case(doctor.CASES[name])) if one.code == code]
    assert told
    assert all(remedy in one for one in told)


def test_every_fault_has_a_case_and_stands_in_the_document() -> None:
    covered = {one["code"] for path in doctor.CASES.values() for one in doctor.expected(path)}
    assert covered == set(faults())
    listed = re.findall(r"^\| `([a-z0-9-]+)` \| (\w+) \|", DOCUMENT.read_text(), re.MULTILINE)
    assert dict(listed) == {code: fault.severity.value for code, fault in faults().items()}
