"""Pods that are stuck, failed, or run without what holds them to their slices."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from vnpu import names
from vnpu.admission import hook
from vnpu.admission.settings import Hook
from vnpu.containers import ContainerKind, containers, resources
from vnpu.errors import FieldError, InputError, few, shown
from vnpu.mode import Mode
from webhook.doctor.finding import Fault, Severity
from webhook.doctor.snapshot import dig, items, label, moment, span, unix

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vnpu.containers import Container
    from webhook.doctor.case import Case
    from webhook.doctor.finding import Finding

STUCK: Final = Fault(
    "pod-stuck-allocating",
    Severity.WARNING,
    "look at the device plugin of node {node}, and at the events of the pod (kubectl vnpu explain {pod}); its "
    "controller makes it anew where it is deleted",
)
FAILED: Final = Fault(
    "pod-allocation-failed",
    Severity.ERROR,
    "read the events of the pod and the log of the device plugin on node {node}; delete the pod, its share is held "
    "until then",
)
REFUSED: Final = Fault(
    "pods-refused-by-kubelet",
    Severity.INFO,
    "their controllers made others; kubectl delete pods --field-selector status.phase=Failed takes them away",
)
NO_LIMITER: Final = Fault(
    "pod-without-limiter",
    Severity.ERROR,
    "make it anew where admission looks at it: nothing holds the container to its slice now",
)
OTHER_LIMITER: Final = Fault(
    "pod-with-other-limiter",
    Severity.WARNING,
    "make it anew, unless its node has the limiter there: the setting limiter.path is another one now",
)
NO_QUOTA: Final = Fault(
    "pod-without-quota",
    Severity.ERROR,
    "make it anew where admission looks at it: to every limiter no quota means no limit",
)
SCHEDULER: Final = Fault(
    "pod-of-other-scheduler",
    Severity.WARNING,
    "{remedy}, or name that scheduler in knownSchedulers where it books NPUs",
)
TWO_SCHEDULERS: Final = Fault(
    "two-schedulers-on-a-node",
    Severity.ERROR,
    "keep each scheduler to nodes of its own (nodeSelector, taints): each keeps its own books of the same cards",
)

_LONG: Final = timedelta(minutes=5)


def binding(case: Case) -> Iterator[Finding]:
    """Pods that are bound, and whose device plugin has not served them."""
    for pod in case.npu_pods:
        node = str(dig(pod, "spec", "nodeName") or "")
        if not node or dig(pod, "status", "phase") != "Pending":
            continue
        annotations = dig(pod, "metadata", "annotations") or {}
        phase = annotations.get(names.BIND_PHASE)
        if phase == names.BIND_PHASE_FAILED:
            yield FAILED.at(label(pod), f"{names.BIND_PHASE} is {phase}", node=node)
        elif phase == names.BIND_PHASE_ALLOCATING:
            since = unix(annotations.get(names.BIND_TIME)) or moment(dig(pod, "metadata", "creationTimestamp"))
            if since is not None and case.snapshot.now - since > _LONG:
                seen = f"{names.BIND_PHASE} has been {phase} for {span(case.snapshot.now - since)} on node {node}"
                yield STUCK.at(label(pod), seen, node=node, pod=pod["metadata"]["name"])


def refused(case: Case) -> Iterator[Finding]:
    """Pods that kubelet could not admit, and that nobody took away."""
    found = [label(pod) for pod in case.snapshot.pods if dig(pod, "status", "reason") == "UnexpectedAdmissionError"]
    if found:
        yield REFUSED.at("kubelet", f"failed with UnexpectedAdmissionError: {few(found)}")


def limits(case: Case) -> Iterator[Finding]:
    """Soft slices that nothing holds."""
    limiter = case.settings.limiter
    for pod in case.npu_pods:
        if (dig(pod, "metadata", "annotations") or {}).get(names.MODE) != Mode.SOFT.value:
            continue
        asking = [container for container in containers(pod) if _asks(case, container)]
        unlimited, other = [], set()
        for container in asking if limiter.hook is not Hook.NONE else ():
            command = dig(container.raw, "lifecycle", "postStart", "exec", "command")
            if container.kind is ContainerKind.INIT or _needs_hook(case, container):
                unlimited.append(container.name)
            elif limiter.hook is Hook.NATIVE and dig(command, 0) != limiter.path:
                other.add(str(dig(command, 0)))
        if unlimited:
            yield NO_LIMITER.at(label(pod), f"no hook starts the limiter in {few(unlimited)}")
        if other:
            seen = f"its hook starts {few(sorted(other))}, and the setting limiter.path is {shown(limiter.path)}"
            yield OTHER_LIMITER.at(label(pod), seen)
        free = [container.name for container in asking if names.ENV_MEMORY not in _env(container)]
        if free:
            yield NO_QUOTA.at(label(pod), f"{names.ENV_MEMORY} is not in the environment of {few(free)}")


def schedulers(case: Case) -> Iterator[Finding]:
    """Whose books the pods are in."""
    strangers: dict[str, list[str]] = defaultdict(list)
    placed: dict[str, set[str]] = defaultdict(set)
    for pod in case.npu_pods:
        name = str(dig(pod, "spec", "schedulerName") or names.SCHEDULER_DEFAULT)
        if name not in case.settings.accepted_schedulers:
            strangers[name].append(label(pod))
        if node := dig(pod, "spec", "nodeName"):
            placed[node].add(name)
    for name, pods in sorted(strangers.items()):
        own = "give it no schedulerName"
        remedy = "make it anew where admission looks at it" if name == names.SCHEDULER_DEFAULT else own
        yield SCHEDULER.at(f"scheduler {name}", f"admission does not know it, and it places {few(pods)}", remedy=remedy)
    for node, found in sorted(placed.items()):
        if len(found) > 1:
            yield TWO_SCHEDULERS.at(f"Node {node}", f"pods of {few(sorted(found))} hold its cards")


def _asks(case: Case, container: Container) -> bool:
    return any(
        not isinstance(one, InputError) and case.chips.resource(one.name) is not None for one in resources(container)
    )


def _needs_hook(case: Case, container: Container) -> bool:
    try:
        return hook.start(container, case.settings.limiter) is not None
    except FieldError:
        return True


def _env(container: Container) -> set[Any]:
    return {entry.get("name") for entry in items(container.raw.get("env"))}
