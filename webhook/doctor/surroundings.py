"""What settings name and others must have made: RuntimeClasses, and accounts that write allocations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vnpu.errors import few
from vnpu.kube import RUNTIME_CLASSES
from webhook.doctor.finding import Fault, Severity
from webhook.doctor.programs import Role
from webhook.doctor.snapshot import items, label

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.doctor.case import Case
    from webhook.doctor.finding import Finding

NO_RUNTIME_CLASS: Final = Fault(
    "runtime-class-missing",
    Severity.ERROR,
    "make it (runtimeClass.create), or take its name out: the API server refuses every pod that gets it",
)
NOT_ALLOCATOR: Final = Fault(
    "account-not-an-allocator",
    Severity.ERROR,
    "add {account} to allocators in the chart's values: what it writes is refused, and pods stay where they are",
)
NOT_IN_CONDITION: Final = Fault(
    "account-not-in-condition",
    Severity.WARNING,
    "helm upgrade writes one list for both: while the webhook is away, what {account} writes is refused",
)

WRITERS: Final = (Role.SCHEDULER, Role.NODE, Role.VOLCANO, Role.HAMI, Role.HAMI_NODE, Role.HAMI_GPU)
_CONDITION: Final = "not-an-allocator"


def runtime_classes(case: Case) -> Iterator[Finding]:
    """Those that admission writes into pods."""
    there = {one["metadata"]["name"] for one in case.snapshot.of(RUNTIME_CLASSES)}
    wanted = {case.settings.runtime_class_name: "settings"}
    for chip in case.chips:
        wanted.setdefault(chip.runtime_class_name, f"device config, {chip.common_word}")
    for name, where in sorted(wanted.items()):
        if name and name not in there:
            yield NO_RUNTIME_CLASS.at(f"RuntimeClass {name}", f"it is not there, and is named by the {where}")


def accounts(case: Case) -> Iterator[Finding]:
    """Those of schedulers and device plugins against the list that may write allocations."""
    conditions = [
        (label(configuration), str(one.get("expression")))
        for configuration in case.validating
        for webhook in items(configuration.get("webhooks"))
        for one in items(webhook.get("matchConditions"))
        if one.get("name") == _CONDITION
    ]
    for program in case.running(*WRITERS):
        if program.account not in case.settings.allocators:
            seen = f"it runs as {program.account}, which is not among the allocators of the settings"
            yield NOT_ALLOCATOR.at(program.label, seen, account=program.account)
            continue
        silent = [where for where, expression in conditions if f'"{program.account}"' not in expression]
        if silent:
            seen = f"{program.account} is not in the condition {_CONDITION} of {few(silent)}"
            yield NOT_IN_CONDITION.at(program.label, seen, account=program.account)
