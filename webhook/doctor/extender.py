"""Our own scheduler: what its kube-scheduler is told about the extender beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from vnpu import names
from vnpu.chips import ResourceKind
from vnpu.errors import FieldError, few, shown
from webhook.doctor.case import content
from webhook.doctor.finding import Fault, Severity
from webhook.doctor.snapshot import items, label

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.doctor.case import Case
    from webhook.doctor.finding import Finding

UNREADABLE: Final = Fault("scheduler-configuration-unreadable", Severity.ERROR, "helm upgrade puts it back")
OTHER_NAME: Final = Fault(
    "scheduler-name-differs",
    Severity.ERROR,
    "let both say the same: scheduler.name of the chart sets both; until then such pods wait for a scheduler that is "
    "not there",
)
NO_EXTENDER: Final = Fault(
    "extender-missing",
    Severity.ERROR,
    "helm upgrade puts it back: without it cards are not looked at, and pods not bound",
)
NOT_MANAGED: Final = Fault(
    "extender-resource-missing",
    Severity.ERROR,
    "name every resource of the device config under managedResources; helm upgrade does",
)
COUNTED_TWICE: Final = Fault(
    "extender-resource-counted",
    Severity.ERROR,
    "set ignoredByScheduler: true for memory and core: they are per card, and nodes advertise their sum",
)
IGNORABLE: Final = Fault(
    "extender-ignorable",
    Severity.ERROR,
    "set ignorable: false: pods that are bound without the extender hold no cards and never start",
)

_VERBS: Final = ("filterVerb", "bindVerb")


def configuration(case: Case) -> Iterator[Finding]:
    """The KubeSchedulerConfiguration, where pods are placed by our scheduler."""
    config_map = case.own_config_map(names.SCHEDULER_CONFIGURATION_KEY)
    subject = label(config_map)
    try:
        document = content(config_map, names.SCHEDULER_CONFIGURATION_KEY)
    except FieldError as error:
        yield UNREADABLE.at(subject, str(error))
        return
    found: dict[str, Any] = document if isinstance(document, dict) else {}
    served = [str(profile.get("schedulerName")) for profile in items(found.get("profiles"))]
    if case.settings.scheduler_name not in served:
        seen = (
            f"it serves {few(served) or 'nobody'}, and admission writes {shown(case.settings.scheduler_name)} into pods"
        )
        yield OTHER_NAME.at(subject, seen)
    extenders = [one for one in items(found.get("extenders")) if all(one.get(verb) for verb in _VERBS)]
    if not extenders:
        yield NO_EXTENDER.at(subject, "no extender filters and binds")
    for extender in extenders[:1]:
        if extender.get("ignorable"):
            yield IGNORABLE.at(subject, "the extender is ignorable")
        yield from _resources(case, subject, extender)


def _resources(case: Case, subject: str, extender: Any) -> Iterator[Finding]:
    managed = {
        str(one.get("name")): bool(one.get("ignoredByScheduler")) for one in items(extender.get("managedResources"))
    }
    missing = [name for name in case.chips.resource_names if name not in managed]
    if missing:
        yield NOT_MANAGED.at(subject, f"pods that name only {few(missing)} are placed without the extender")
    counted = [
        name
        for chip in case.chips
        for kind in (ResourceKind.MEMORY, ResourceKind.CORE)
        if managed.get(name := chip.resource(kind)) is False
    ]
    if counted:
        yield COUNTED_TWICE.at(subject, f"kube-scheduler counts {few(counted)} itself")
