"""The table of checks, and how they are run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from webhook.doctor import (
    admission,
    calls,
    certificates,
    extender,
    hami,
    nodes,
    plugins,
    pods,
    surroundings,
    tables,
    volcano,
    workloads,
)
from webhook.doctor.case import SchedulerKind
from webhook.doctor.finding import Fault, Finding, Severity
from webhook.doctor.programs import Role
from webhook.doctor.snapshot import UnseenError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from webhook.doctor.case import Case

UNSEEN: Final = Fault("could-not-look", Severity.UNKNOWN, "{remedy}; until then this is not known to be well")
_WELL: Final = "ok"


@dataclass(frozen=True, slots=True)
class Check:
    """One look at one subject.

    Attributes:
        title: what is looked at.
        run: gives the findings; :class:`UnseenError` ends it.
        applies: whether there is anything to look at; nothing is said where there is not.
    """

    title: str
    run: Callable[[Case], Iterator[Finding]]
    applies: Callable[[Case], bool] = lambda _: True


def _placed_by(kind: SchedulerKind) -> Callable[[Case], bool]:
    return lambda case: case.kind is kind


def _configured(case: Case) -> bool:
    return bool(case.mutating or case.validating)


def _any_node(case: Case) -> bool:
    return bool(case.node_readings)


def _with(*roles: Role) -> Callable[[Case], bool]:
    return lambda case: bool(case.running(*roles))


CHECKS: Final = (
    Check("installation", admission.installation),
    Check("webhook configurations", admission.configurations, _configured),
    Check("other webhooks", admission.others),
    Check("namespaces", admission.opt_outs, lambda case: bool(case.mutating)),
    Check("certificates", certificates.certificates, _with(Role.WEBHOOK)),
    Check("admission, by dry runs", calls.calls),
    Check("Deployments and DaemonSets", workloads.ready),
    Check("Service", workloads.service, _configured),
    Check("versions", workloads.versions, _with(Role.WEBHOOK, Role.SCHEDULER, Role.NODE)),
    Check("settings", tables.settings),
    Check("device config", tables.own),
    Check("our scheduler", extender.configuration, _placed_by(SchedulerKind.KUBE)),
    Check("Volcano's scheduler", volcano.scheduler, _placed_by(SchedulerKind.VOLCANO)),
    Check("Volcano's configuration", volcano.configuration, _placed_by(SchedulerKind.VOLCANO)),
    Check("HAMi's scheduler", hami.scheduler, _placed_by(SchedulerKind.HAMI)),
    Check("HAMi and the nodes", hami.nodes, _placed_by(SchedulerKind.HAMI)),
    Check("HAMi's device config", hami.device_config, _with(Role.HAMI, Role.HAMI_NODE)),
    Check("device plugins on nodes", plugins.nodes, _any_node),
    Check("what settings say of device plugins", plugins.settings),
    Check("HAMi's device plugin", plugins.hami, _with(Role.HAMI_NODE)),
    Check("registrations", nodes.registrations),
    Check("handshakes", nodes.handshakes, _any_node),
    Check("node locks", nodes.locks, _any_node),
    Check("books", nodes.books, _any_node),
    Check("pods that wait for a device plugin", pods.binding),
    Check("pods that kubelet refused", pods.refused),
    Check("limits of soft slices", pods.limits),
    Check("schedulers of pods", pods.schedulers),
    Check("RuntimeClasses", surroundings.runtime_classes),
    Check("allocators", surroundings.accounts, _with(*surroundings.WRITERS)),
)


def examine(case: Case) -> list[Finding]:
    """Run every check.

    One that looked and found nothing says so; what keeps several of them from looking is told once.
    """
    found: list[Finding] = []
    unseen: dict[tuple[str, str, str], list[str]] = {}
    for check in CHECKS:
        before = len(found)
        try:
            if not check.applies(case):
                continue
            for finding in check.run(case):
                found.append(finding)  # noqa: PERF402 - what was found before it ended is kept
        except UnseenError as error:
            unseen.setdefault((error.what, error.why, error.remedy), []).append(check.title)
        else:
            if len(found) == before:
                found.append(Finding(_WELL, Severity.OK, check.title, "nothing to complain about"))
    found += (
        UNSEEN.at(what, f"{why}; so not looked at: {', '.join(titles)}", remedy=remedy)
        for (what, why, remedy), titles in unseen.items()
    )
    return found
