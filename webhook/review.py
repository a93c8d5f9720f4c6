"""One review in, one answer out: a pure function around :mod:`vnpu.admission`.

What is judged is told by resource and subresource, never by the kind alone: a binding, an eviction or an ephemeral
container of a pod carries other objects and has nothing to say about NPUs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from vnpu.admission import rules
from vnpu.errors import ABSENT, AnnotationError, ConfigError, FieldError, InputError, QuantityError, RequestError
from webhook import wire
from webhook.patch import operations

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from vnpu.admission.settings import Settings
    from vnpu.chips import ChipTable
    from webhook.patch import Operation

    _Rule = Callable[[], rules.Outcome]


class Endpoint(StrEnum):
    """The two things that an API server asks for."""

    MUTATE = "mutate"
    VALIDATE = "validate"


class Decision(StrEnum):
    """What came of a request."""

    ALLOWED = "allowed"
    DENIED = "denied"
    FAULT = "fault"
    UNREADABLE = "unreadable"


class Reason(StrEnum):
    """Why; beside these, the members of :class:`webhook.wire.Unreadable`. Few, because each is a time series."""

    NOT_JUDGED = "not_judged"
    UNCHANGED = "unchanged"
    PATCHED = "patched"
    VALID = "valid"
    QUANTITY = "quantity"
    REQUEST = "request"
    ANNOTATION = "annotation"
    CONFIG = "config"
    INPUT = "input"
    FIELD = "field"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Context:
    """What reviews are judged by."""

    settings: Settings
    chips: ChipTable


class Record(NamedTuple):
    """What logs and metrics tell of a request; never a value of its object.

    Attributes:
        endpoint: which of the two.
        decision: what came of it.
        reason: why, one of a fixed set of words.
        uid: of the review, ``""`` where it could not be read; so with the next three.
        operation: CREATE, UPDATE, DELETE or CONNECT.
        namespace: of the object.
        name: of the object, or its generateName.
        dry_run: whether nothing was to be kept.
    """

    endpoint: Endpoint
    decision: Decision
    reason: Reason | wire.Unreadable
    uid: str = ""
    operation: str = ""
    namespace: str = ""
    name: str = ""
    dry_run: bool = False


class Answer(NamedTuple):
    """The answer to a request.

    Attributes:
        status: the HTTP status; 200 for every review that can be read.
        media_type: of the body.
        body: an AdmissionReview, or one line of text where the request held none.
        record: for logs and metrics.
        fault: the exception where our own code is at fault; it belongs in the log.
    """

    status: HTTPStatus
    media_type: str
    body: bytes
    record: Record
    fault: Exception | None = None


class _Verdict(NamedTuple):
    decision: Decision
    reason: Reason
    message: str
    warnings: Sequence[str] = ()
    patch: Sequence[Operation] = ()


_LONGEST_LABEL: Final = 256
"""Characters of a uid, namespace or name that are told on; those of Kubernetes are shorter."""

_PODS: Final = ("", "pods", "")
_POD_STATUS: Final = ("", "pods", "status")
_VOLCANO_JOBS: Final = ("batch.volcano.sh", "jobs", "")
_WORKLOADS: Final = {
    ("apps", "deployments", ""): "Deployment",
    ("apps", "statefulsets", ""): "StatefulSet",
    ("apps", "daemonsets", ""): "DaemonSet",
    ("apps", "replicasets", ""): "ReplicaSet",
    ("batch", "jobs", ""): "Job",
    ("batch", "cronjobs", ""): "CronJob",
    _VOLCANO_JOBS: "Job",
}
_REASONS: Final[Mapping[type[FieldError], Reason]] = {
    QuantityError: Reason.QUANTITY,
    RequestError: Reason.REQUEST,
    AnnotationError: Reason.ANNOTATION,
    ConfigError: Reason.CONFIG,
    InputError: Reason.INPUT,
}
_CODES: Final = {
    Decision.ALLOWED: HTTPStatus.OK,
    Decision.DENIED: HTTPStatus.FORBIDDEN,
    Decision.FAULT: HTTPStatus.INTERNAL_SERVER_ERROR,
}
_NOT_JUDGED: Final = _Verdict(Decision.ALLOWED, Reason.NOT_JUDGED, "not judged here")
_FAULT: Final = _Verdict(
    Decision.FAULT,
    Reason.FAULT,
    "the vNPU webhook failed on this object and refuses it to be safe; its log tells the cause beside this uid",
)


def review(body: bytes, endpoint: Endpoint, context: Context) -> Answer:
    """Answer the review in the body of a request. Never raises, whatever the bytes are.

    Args:
        body: as it came; its length and media type are checked already.
        endpoint: where it came to.
        context: what to judge by.
    """
    try:
        request = wire.read(body)
    except wire.UnreadableError as error:
        return unreadable(endpoint, error)
    fault = None
    try:
        verdict = _judge(request, endpoint, context)
        answer = _written(request, verdict)
    except Exception as error:  # noqa: BLE001 - a fault of ours refuses one object and is told; it ends no server
        fault = error
        verdict = _FAULT
        answer = _written(request, verdict)
    record = Record(
        endpoint,
        verdict.decision,
        verdict.reason,
        request.uid[:_LONGEST_LABEL],
        request.operation,
        request.namespace[:_LONGEST_LABEL],
        request.name[:_LONGEST_LABEL],
        request.dry_run,
    )
    return Answer(HTTPStatus.OK, "application/json", answer, record, fault)


def unreadable(endpoint: Endpoint, error: wire.UnreadableError) -> Answer:
    """The answer to a request that holds no review."""
    record = Record(endpoint, Decision.UNREADABLE, error.reason)
    return Answer(error.status, "text/plain; charset=utf-8", f"{error}\n".encode(), record)


def _written(request: wire.Request, verdict: _Verdict) -> bytes:
    return wire.answer(
        request,
        allowed=verdict.decision is Decision.ALLOWED,
        code=_CODES[verdict.decision],
        message=verdict.message,
        warnings=verdict.warnings,
        patch=verdict.patch,
    )


def _judge(request: wire.Request, endpoint: Endpoint, context: Context) -> _Verdict:
    try:
        _check_head(request)
        rule = (_mutation if endpoint is Endpoint.MUTATE else _validation)(request, context)
    except InputError as error:  # the object has not even the shape to find fault with
        return _refusal((error,), str(error))
    if rule is None:
        return _NOT_JUDGED
    outcome = rule()
    if not outcome.allowed:
        return _refusal(outcome.refusals, outcome.message, outcome.warnings)
    if endpoint is Endpoint.VALIDATE:
        return _Verdict(Decision.ALLOWED, Reason.VALID, "valid", outcome.warnings)
    patch = operations(request.object, outcome.sets)
    if not patch:
        return _Verdict(Decision.ALLOWED, Reason.UNCHANGED, "nothing to complete", outcome.warnings)
    return _Verdict(Decision.ALLOWED, Reason.PATCHED, "completed", outcome.warnings, patch)


def _check_head(request: wire.Request) -> None:
    if not request.operation:
        raise InputError("request.operation", ABSENT, "CREATE, UPDATE, DELETE or CONNECT is expected")
    if not request.resource[1]:
        raise InputError("request.resource", ABSENT, "group and resource are expected")


def _mutation(request: wire.Request, context: Context) -> _Rule | None:
    """The rule that completes the object, None for what is not judged."""
    if request.operation != "CREATE" or request.resource not in (_PODS, _VOLCANO_JOBS):
        return None
    judge = rules.mutate_pod if request.resource == _PODS else rules.mutate_volcano_job
    return partial(judge, _object(request.object, "object"), context.settings, context.chips)


def _validation(request: wire.Request, context: Context) -> _Rule | None:
    """The rule that checks the object, None for what is not judged."""
    settings, chips = context.settings, context.chips
    if request.operation == "CREATE" and request.resource == _PODS:
        return partial(rules.validate_pod, _object(request.object, "object"), settings, chips)
    if request.operation == "UPDATE" and request.resource in (_PODS, _POD_STATUS):
        target, old = _object(request.object, "object"), _object(request.old_object, "oldObject")
        return partial(rules.validate_pod_update, target, old, request.username, settings, chips)
    if request.operation in ("CREATE", "UPDATE") and (kind := _WORKLOADS.get(request.resource)):
        target = _object(request.object, "object")
        if target.get("kind") != kind:
            raise InputError("kind", target.get("kind", ABSENT), f"{kind} is expected for this resource")
        before = _object(request.old_object, "oldObject") if request.operation == "UPDATE" else None
        return partial(rules.validate_workload, target, before, settings, chips)
    return None


def _object(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"request.{name}", ABSENT if value is None else value, "an object is expected")
    return value


def _refusal(refusals: Sequence[FieldError], message: str, warnings: Sequence[str] = ()) -> _Verdict:
    return _Verdict(Decision.DENIED, _REASONS.get(type(refusals[0]), Reason.FIELD), message, warnings)
