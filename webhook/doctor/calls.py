"""The proof from end to end: pods that the API server is asked for, dry. Nothing is created."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from vnpu import names
from vnpu.chips import ResourceKind
from vnpu.mode import Mode
from webhook.doctor.finding import Fault, Severity
from webhook.doctor.snapshot import UnseenError, dig

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vnpu.chips import Chip
    from vnpu.kube import Object
    from webhook.doctor.case import Case
    from webhook.doctor.finding import Finding
    from webhook.doctor.snapshot import Call

SLICE: Final = "a slice"
FAULTY: Final = "101 percent of a card"
PLAIN: Final = "no NPU"

NOT_CALLED: Final = Fault(
    "dry-run-not-completed",
    Severity.ERROR,
    "look at the configuration's namespaceSelector, rules and matchConditions; helm upgrade puts them back",
)
NOT_REFUSED: Final = Fault(
    "dry-run-not-refused",
    Severity.ERROR,
    "look at the validating configuration; helm upgrade puts it back",
)
FAILED_CALL: Final = Fault(
    "webhook-call-fails",
    Severity.ERROR,
    "x509: see the certificates above; connection refused or no endpoints: the Deployment's pods; deadline exceeded: a "
    "firewall between control plane and nodes, or a webhook that hangs (docs/runbook.md)",
)
FOREIGN_FAILS: Final = Fault(
    "foreign-webhook-call-fails", Severity.ERROR, "ask whoever runs that webhook; ours is not the reason"
)
PLAIN_FAILS: Final = Fault(
    "plain-pods-are-called",
    Severity.ERROR,
    "helm upgrade puts the matchConditions back: a pod without NPUs must not depend on this webhook",
)
NO_RUNTIME_CLASS: Final = Fault(
    "dry-run-runtime-class",
    Severity.ERROR,
    "make that RuntimeClass (runtimeClass.create), or take its name out of settings.runtimeClassName or the device "
    "config",
)

_ELSEWHERE: Final = (
    "name a namespace that takes such pods (--dry-run-namespace), and where the API server forbids it, let this "
    "account create pods there"
)
_FAILED: Final = re.compile(r'failed calling webhook "([^"]+)"')
_DENIED: Final = re.compile(r'admission webhook "([^"]+)" denied the request')
_RUNTIME_CLASS: Final = re.compile(r"RuntimeClass .*not found", re.IGNORECASE | re.DOTALL)


def pods(chip: Chip) -> Mapping[str, Object]:
    """What the API server is asked for, by what each asks for."""
    core, memory = chip.resource(ResourceKind.CORE), chip.resource(ResourceKind.MEMORY)
    count = {chip.resource(ResourceKind.COUNT): "2" if chip.super_pod else "1"}
    return {
        PLAIN: _pod({}),
        SLICE: _pod({**count, memory: "1", core: "10"}),
        FAULTY: _pod({**count, memory: "1", core: "101"}),
    }


def _pod(limits: Mapping[str, str]) -> Object:
    container: dict[str, Any] = {"name": "main", "image": "none"}
    if limits:
        container["resources"] = {"limits": dict(limits)}
    metadata = {"generateName": "vnpu-doctor-"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


def calls(case: Case) -> Iterator[Finding]:
    """What the API server answered."""
    found = case.snapshot.calls
    if not found:
        raise UnseenError("dry run", "no pod was asked for", "leave --no-dry-run away, once the chart is installed")
    yield from _plain(found[PLAIN])
    if SLICE in found:
        yield from _slice(found[SLICE])
        yield from _faulty(found[FAULTY])


def _plain(call: Call) -> Iterator[Finding]:
    failing = _FAILED.search(call.message)
    if failing is not None:
        fault = PLAIN_FAILS if names.WEBHOOK_MARK in failing[1] else FOREIGN_FAILS
        yield fault.at(f"webhook {failing[1]}", f"a pod without NPUs was refused: {call.message}")
    elif call.pod is None:
        raise UnseenError("dry run", f"a pod without NPUs was refused for another reason: {call.message}", _ELSEWHERE)


def _slice(call: Call) -> Iterator[Finding]:
    if call.pod is not None:
        if dig(call.pod, "metadata", "annotations", names.MODE) != Mode.SOFT.value:
            yield NOT_CALLED.at(
                "admission", "a pod that asks for a slice came back as it was: no webhook of ours saw it"
            )
        return
    failing = _FAILED.search(call.message)
    if failing is not None:
        fault = FAILED_CALL if names.WEBHOOK_MARK in failing[1] else FOREIGN_FAILS
        yield fault.at(f"webhook {failing[1]}", call.message)
    elif _RUNTIME_CLASS.search(call.message):
        yield NO_RUNTIME_CLASS.at("admission", call.message)
    else:
        raise UnseenError("dry run", f"a pod that asks for a slice was refused: {call.message}", _ELSEWHERE)


def _faulty(call: Call) -> Iterator[Finding]:
    denied = _DENIED.search(call.message)
    if call.pod is not None:
        yield NOT_REFUSED.at("admission", "a pod that asks for 101 percent of a card was let through")
    elif denied is None and not _FAILED.search(call.message):  # a call that fails is told already
        raise UnseenError("dry run", f"a faulty pod was refused for another reason: {call.message}", _ELSEWHERE)
