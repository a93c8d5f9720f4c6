"""Our own Deployments and DaemonSets: are they there, ready, reached, and of one version."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from vnpu.errors import few
from vnpu.kube import ENDPOINT_SLICES, SERVICES
from webhook.doctor.finding import Fault, Severity
from webhook.doctor.programs import Role
from webhook.doctor.selectors import selects
from webhook.doctor.snapshot import dig, items, named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.doctor.case import Case
    from webhook.doctor.finding import Finding
    from webhook.doctor.programs import Program

NO_WEBHOOK: Final = Fault("webhook-missing", Severity.ERROR, "helm upgrade makes the Deployment again")
DOWN: Final = Fault(
    "deployment-down",
    Severity.ERROR,
    "kubectl -n {namespace} describe pod: an image that cannot be pulled, no node with room, a probe that fails",
)
NOT_READY: Final = Fault(
    "deployment-not-ready", Severity.WARNING, "kubectl -n {namespace} get pods: see why a replica is not ready"
)
NO_SERVICE: Final = Fault("service-missing", Severity.ERROR, "helm upgrade makes it again")
NO_ENDPOINTS: Final = Fault(
    "service-without-endpoints",
    Severity.ERROR,
    "its selector {selector} must match ready pods of the webhook; helm upgrade puts it back",
)
SKEW: Final = Fault(
    "version-skew",
    Severity.WARNING,
    "finish the upgrade: first the nodes, then the webhook (docs/upgrade.md); a hook that an older limiter does not "
    "know keeps containers from starting",
)
NODE_PARTS: Final = Fault(
    "node-parts-not-ready",
    Severity.WARNING,
    "kubectl -n {namespace} get pods -o wide: pods for those nodes wait until their device plugin is back",
)
NO_NODES: Final = Fault("node-parts-nowhere", Severity.INFO, "label a node for the pool: {selector}")


def ready(case: Case) -> Iterator[Finding]:
    """Deployments and DaemonSets."""
    if not case.running(Role.WEBHOOK):
        yield NO_WEBHOOK.at(f"Namespace {case.namespace}", "it has no Deployment of the webhook")
    for program in case.running(Role.WEBHOOK, Role.SCHEDULER):
        wanted, available = dig(program.owner, "spec", "replicas"), dig(program.owner, "status", "readyReplicas") or 0
        wanted = 1 if wanted is None else wanted
        if not available:
            yield DOWN.at(program.label, f"ready replicas: 0 of {wanted}", namespace=program.namespace)
        elif available < wanted:
            yield NOT_READY.at(program.label, f"ready replicas: {available} of {wanted}", namespace=program.namespace)
    for program in case.running(Role.NODE):
        status = dig(program.owner, "status") or {}
        wanted, available = status.get("desiredNumberScheduled", 0), status.get("numberReady", 0)
        if not wanted:
            selector = ", ".join(f"{key}={value}" for key, value in (program.spec.get("nodeSelector") or {}).items())
            yield NO_NODES.at(program.label, "no node is labelled for it", selector=selector or "it takes every node")
        elif available < wanted:
            yield NODE_PARTS.at(
                program.label, f"nodes that are served: {available} of {wanted}", namespace=program.namespace
            )


def service(case: Case) -> Iterator[Finding]:
    """Whether the API server finds a pod behind the name that it calls."""
    for name in case.services:
        subject = named(SERVICES, name, case.namespace)
        found = case.snapshot.find(SERVICES, name, case.namespace)
        if found is None:
            yield NO_SERVICE.at(subject, "webhook configurations name it, and it is not there")
            continue
        if dig(found, "spec", "type") == "ExternalName":
            continue
        slices = [
            one
            for one in case.snapshot.of(ENDPOINT_SLICES)
            if one["metadata"]["namespace"] == case.namespace
            and selects({"matchLabels": {"kubernetes.io/service-name": name}}, one["metadata"].get("labels") or {})
        ]
        addresses = [
            address
            for one in slices
            for endpoint in items(one.get("endpoints"))
            if dig(endpoint, "conditions", "ready") is not False
            for address in endpoint.get("addresses") or ()
        ]
        if not addresses:
            selector = ", ".join(f"{key}={value}" for key, value in (dig(found, "spec", "selector") or {}).items())
            yield NO_ENDPOINTS.at(subject, "it leads to no ready pod", selector=selector)


def versions(case: Case) -> Iterator[Finding]:
    """Whether all of ours are of one image."""
    images: dict[str, list[Program]] = defaultdict(list)
    for program in case.running(Role.WEBHOOK, Role.SCHEDULER, Role.NODE):
        images[program.image].append(program)
    if len(images) > 1:
        told = [f"{few([one.label for one in users])}: {image}" for image, users in sorted(images.items())]
        yield SKEW.at(f"Namespace {case.namespace}", "; ".join(told))
