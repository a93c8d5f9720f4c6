"""Webhook configurations: ours, and those of others that touch the same pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from vnpu.errors import few
from vnpu.kube import MUTATING, NAMESPACES, VALIDATING
from webhook.doctor.case import SchedulerKind, own_webhook
from webhook.doctor.finding import Fault, Severity
from webhook.doctor.selectors import selects
from webhook.doctor.snapshot import UnseenError, dig, items, label

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vnpu.kube import Object
    from webhook.doctor.case import Case
    from webhook.doctor.finding import Finding

NOT_INSTALLED: Final = Fault(
    "not-installed", Severity.ERROR, "install the chart (docs/install.md), or name its namespace with --namespace"
)
SEVERAL: Final = Fault(
    "several-installations",
    Severity.ERROR,
    "uninstall all but one: each completes the same pods, by settings of its own",
)
NO_CONFIGURATION: Final = Fault(
    "configuration-missing",
    Severity.ERROR,
    "helm upgrade makes it again; until then such pods are created as they are written, without limits",
)
NOT_CALLED_LAST: Final = Fault(
    "configuration-not-last",
    Severity.WARNING,
    "give the other configuration a name that sorts before ours, or check that what it adds needs no completing: the "
    "API server calls mutating webhooks in the order of their names",
)
FAIL_OPEN: Final = Fault(
    "failure-policy-ignore",
    Severity.WARNING,
    "set webhook.failurePolicy: Fail, or live with pods that start without limits while the webhook is away",
)
SYSTEM_INCLUDED: Final = Fault(
    "system-namespace-included",
    Severity.ERROR,
    "helm upgrade puts the selector back: a webhook that the cluster's own pods need may never start after an outage",
)
OPTED_OUT: Final = Fault(
    "namespace-opted-out",
    Severity.INFO,
    "nothing, where that is meant; else take its label hami.io/webhook away",
)
OPTED_OUT_IN_USE: Final = Fault(
    "namespace-opted-out-in-use",
    Severity.WARNING,
    "take the namespace's label hami.io/webhook away and make the pods anew: their slices have no limits and no checks",
)
HAMI_MOVES: Final = Fault(
    "hami-webhook-moves-pods",
    Severity.ERROR,
    "switch HAMi's webhook ({name}) off, or narrow its namespaceSelector to those where HAMi places: it sends pods "
    "that leave the choice open to hami-scheduler, whose books are not those of {kind}",
)
HAMI_BESIDE: Final = Fault(
    "hami-webhook-beside", Severity.INFO, "nothing: it is called first, ours completes and checks"
)
VOLCANO_PODS: Final = Fault(
    "volcano-webhook-replaces",
    Severity.WARNING,
    "leave /pods/mutate out of Volcano's enabled admissions unless resource groups are used: it replaces whole node "
    "selectors and tolerations by what it saw",
)

_HAMI_WEBHOOK: Final = "vgpu.hami.io"
_VOLCANO_PATH: Final = "/pods/mutate"
_SYSTEM: Final = ("kube-system", "kube-node-lease")
_PODS: Final = ("pods", "*", "*/*", "pods/*")
_NAME_LABEL: Final = "kubernetes.io/metadata.name"


def installation(case: Case) -> Iterator[Finding]:
    """Whether there is one installation, with both configurations."""
    found = case.namespaces
    if len(found) > 1:
        yield SEVERAL.at("cluster", f"there are installations in {few(found)}")
    try:
        _ = case.namespace
    except UnseenError as error:
        yield NOT_INSTALLED.at(error.what, error.why)
        return
    for kind, configurations in ((MUTATING.kind, case.mutating), (VALIDATING.kind, case.validating)):
        if not configurations:
            yield NO_CONFIGURATION.at(kind, "there is none of this installation")


def configurations(case: Case) -> Iterator[Finding]:
    """What ours say, and where they stand among the others."""
    for configuration in (*case.mutating, *case.validating):
        for webhook in _of_pods(configuration):
            subject = f"{label(configuration)}, {webhook['name']}"
            if webhook.get("failurePolicy") == "Ignore":
                yield FAIL_OPEN.at(subject, "failurePolicy is Ignore")
            taken = [name for name in _SYSTEM if selects(webhook.get("namespaceSelector"), {_NAME_LABEL: name})]
            if taken:
                yield SYSTEM_INCLUDED.at(subject, f"pods in {few(taken)} are asked about")
    ours = {one["metadata"]["name"] for one in case.mutating}
    for configuration in case.snapshot.of(MUTATING):
        name = configuration["metadata"]["name"]
        others = [webhook for webhook in _of_pods(configuration) if not own_webhook(webhook)]
        if ours and others and name > max(ours):
            seen = f"it is called after {max(ours)} and may change what admission completed and checked"
            yield NOT_CALLED_LAST.at(label(configuration), seen)


def opt_outs(case: Case) -> Iterator[Finding]:
    """Namespaces that are not looked at beside those that never are."""
    webhooks = [webhook for configuration in case.mutating for webhook in _of_pods(configuration)]
    if not webhooks:
        return
    selector = webhooks[0].get("namespaceSelector")
    out = {
        name
        for namespace in case.snapshot.of(NAMESPACES)
        if (name := namespace["metadata"]["name"]) not in (*_SYSTEM, case.namespace)
        and not selects(selector, {_NAME_LABEL: name, **(namespace["metadata"].get("labels") or {})})
    }
    busy = {pod["metadata"]["namespace"] for pod in case.npu_pods}
    for name in sorted(out):
        if name in busy:
            count = sum(pod["metadata"]["namespace"] == name for pod in case.npu_pods)
            yield OPTED_OUT_IN_USE.at(
                f"Namespace {name}", f"admission does not look at it; pods there that use NPUs: {count}"
            )
        else:
            yield OPTED_OUT.at(f"Namespace {name}", "admission does not look at it")


def others(case: Case) -> Iterator[Finding]:
    """HAMi's and Volcano's webhooks beside ours."""
    for configuration in case.snapshot.of(MUTATING):
        for webhook in _of_pods(configuration):
            subject = f"{label(configuration)}, {webhook['name']}"
            if webhook["name"] == _HAMI_WEBHOOK and case.kind in (SchedulerKind.HAMI, SchedulerKind.OTHER):
                yield HAMI_BESIDE.at(subject, "HAMi's webhook is on as well")
            elif webhook["name"] == _HAMI_WEBHOOK:
                seen = f"HAMi's webhook is on, and pods are placed by another scheduler ({case.kind})"
                yield HAMI_MOVES.at(subject, seen, name=configuration["metadata"]["name"], kind=case.kind)
            elif dig(webhook, "clientConfig", "service", "path") == _VOLCANO_PATH:
                yield VOLCANO_PODS.at(subject, "Volcano's webhook changes pods at their creation")


def _of_pods(configuration: Object) -> list[dict[str, Any]]:
    """The webhooks of a configuration that are asked about pods."""
    return [
        webhook
        for webhook in items(configuration.get("webhooks"))
        if any(
            ("" in (rule.get("apiGroups") or ()) or "*" in (rule.get("apiGroups") or ()))
            and any(name in _PODS for name in rule.get("resources") or ())
            for rule in items(webhook.get("rules"))
        )
    ]
