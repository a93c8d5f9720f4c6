"""AdmissionReview on the wire: what an HTTP request must look like, its body read, the answer written.

The format is that of admission.k8s.io/v1; v1beta1 has the same fields and is answered in kind. See
https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/ (request and response).
"""

from __future__ import annotations

import base64
import json
from enum import StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.patch import Operation

LARGEST_BODY: Final = 8 * 2**20
"""Bytes. An API server takes objects of up to 3 MiB, and an UPDATE carries two of them."""

_MOST_VALUES: Final = 2**19
"""Of a body. Each takes time and up to 200 bytes of memory: 3 MiB can hold a million empty tolerations. Pods
that people write have some thousand."""
_BEFORE_VALUES: Final = (b",", b"[", b"{")

_VERSIONS: Final = ("admission.k8s.io/v1", "admission.k8s.io/v1beta1")
_KIND: Final = "AdmissionReview"
_OPERATIONS: Final = ("CREATE", "UPDATE", "DELETE", "CONNECT")
_LONGEST_WARNINGS: Final = 4096
_LONGEST_WARNING: Final = 256
"""Characters of all warnings together, and of each where they are more: kube-apiserver passes on no more."""

_MORE: Final = "and further warnings"


class Unreadable(StrEnum):
    """Why an HTTP request is no review."""

    CHUNKED = "chunked"
    LENGTH = "length"
    TOO_LARGE = "too_large"
    MEDIA_TYPE = "media_type"
    NOT_JSON = "not_json"
    NOT_A_REVIEW = "not_a_review"


class UnreadableError(Exception):
    """The HTTP request carries no review that could be answered.

    Attributes:
        status: the HTTP status to answer with.
        reason: the same for metrics and logs.
    """

    def __init__(self, status: HTTPStatus, reason: Unreadable, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


class Request(NamedTuple):
    """What an API server asks.

    Attributes:
        api_version: of the review; the answer has the same.
        uid: of the review; the answer has the same.
        operation: CREATE, UPDATE, DELETE or CONNECT; ``""`` where it is none of them.
        resource: ``(group, resource, subresource)``, for example ``("", "pods", "status")``; all three are ``""``
            where they are not told.
        namespace: of the object. The object itself need not say it.
        name: of the object, or its generateName with nothing behind it.
        username: who asks.
        dry_run: whether nothing will be kept.
        object: the object as it would be, None on DELETE.
        old_object: the object as it is, None on CREATE.
    """

    api_version: str
    uid: str
    operation: str
    resource: tuple[str, str, str]
    namespace: str
    name: str
    username: str
    dry_run: bool
    object: Any
    old_object: Any


def body_length(content_length: str | None, transfer_encoding: str | None) -> int:
    """Bytes of the body, judged by the headers alone, before anything of it is read.

    Raises:
        UnreadableError: 411 without a length (chunked bodies have none), 413 above :data:`LARGEST_BODY`.
    """
    if transfer_encoding:
        raise UnreadableError(
            HTTPStatus.LENGTH_REQUIRED, Unreadable.CHUNKED, "chunked bodies are not read: send a Content-Length"
        )
    if not content_length or not (content_length.isascii() and content_length.isdecimal()):
        raise UnreadableError(HTTPStatus.LENGTH_REQUIRED, Unreadable.LENGTH, "a Content-Length is expected")
    if len(content_length) > len(str(LARGEST_BODY)) or int(content_length) > LARGEST_BODY:
        raise UnreadableError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, Unreadable.TOO_LARGE, f"at most {LARGEST_BODY} bytes are read"
        )
    return int(content_length)


def check_media_type(content_type: str | None, content_encoding: str | None) -> None:
    """Let JSON through, with any parameters.

    Raises:
        UnreadableError: 415 for everything else, and for compressed bodies.
    """
    media_type = (content_type or "").partition(";")[0].strip().lower()
    if media_type != "application/json" or (content_encoding or "identity").lower() != "identity":
        raise UnreadableError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, Unreadable.MEDIA_TYPE, "application/json is expected, not compressed"
        )


def read(body: bytes) -> Request:
    """The review in a body.

    Raises:
        UnreadableError: 400 for what is no JSON, or no review with a uid: it could not be answered; 413 for more values
            than :data:`_MOST_VALUES`.
    """
    if len(body) > _MOST_VALUES and sum(map(body.count, _BEFORE_VALUES)) > _MOST_VALUES:
        raise UnreadableError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, Unreadable.TOO_LARGE, f"at most {_MOST_VALUES} values are read"
        )
    try:
        document = _DECODER.decode(body.decode())
    # ValueError: not UTF-8, not JSON, NaN, or a number of more digits than Python reads.
    except (ValueError, RecursionError) as error:
        raise UnreadableError(HTTPStatus.BAD_REQUEST, Unreadable.NOT_JSON, "JSON in UTF-8 is expected") from error
    if not isinstance(document, dict) or document.get("kind") != _KIND or document.get("apiVersion") not in _VERSIONS:
        raise _no_review(f"an {_KIND} of {' or '.join(_VERSIONS)} is expected")
    request = document.get("request")
    uid = request.get("uid") if isinstance(request, dict) else None
    if not isinstance(request, dict) or not isinstance(uid, str) or not uid:
        raise _no_review("a request with a uid is expected")
    operation = request.get("operation")
    target = request.get("object")
    return Request(
        api_version=document["apiVersion"],
        uid=uid,
        operation=operation if operation in _OPERATIONS else "",
        resource=_resource(request.get("resource"), request.get("subResource")),
        namespace=_text(request.get("namespace")),
        name=_text(request.get("name")) or _own_name(target),
        username=_member(request.get("userInfo"), "username"),
        dry_run=request.get("dryRun") is True,
        object=target,
        old_object=request.get("oldObject"),
    )


def answer(
    request: Request,
    *,
    allowed: bool,
    code: HTTPStatus,
    message: str,
    warnings: Sequence[str] = (),
    patch: Sequence[Operation] = (),
) -> bytes:
    """The body that answers a review.

    Args:
        request: the review.
        allowed: the decision.
        code: of the status; an API server hands it on to the user when the object is refused.
        message: of the status, for people.
        warnings: for people; shortened to what an API server passes on.
        patch: operations; none of it is written where it is empty.
    """
    response: dict[str, Any] = {
        "uid": request.uid,
        "allowed": allowed,
        "status": {"code": code.value, "message": message},
    }
    if warnings:
        response["warnings"] = shortened(warnings)
    if patch:
        # Both or none: an API server refuses a patchType without a patch.
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(_encoded(patch)).decode()
    return _encoded({"kind": _KIND, "apiVersion": request.api_version, "response": response})


def shortened(warnings: Sequence[str]) -> list[str]:
    """Warnings as an API server passes them on: none twice, and cut where they are too long together."""
    texts = list(dict.fromkeys(warnings))
    if sum(map(len, texts)) <= _LONGEST_WARNINGS:
        return texts
    left = _LONGEST_WARNINGS - len(_MORE)
    kept: list[str] = []
    for text in texts:
        cut = text if len(text) <= _LONGEST_WARNING else text[: _LONGEST_WARNING - 1] + "…"
        left -= len(cut)
        if left < 0:
            return [*kept, _MORE]
        kept.append(cut)
    return kept


def _no_review(message: str) -> UnreadableError:
    return UnreadableError(HTTPStatus.BAD_REQUEST, Unreadable.NOT_A_REVIEW, message)


def _resource(resource: Any, subresource: Any) -> tuple[str, str, str]:
    if isinstance(resource, dict):
        group, name, below = resource.get("group") or "", resource.get("resource"), subresource or ""
        if isinstance(group, str) and isinstance(name, str) and isinstance(below, str):
            return group, name, below
    return "", "", ""


def _own_name(target: Any) -> str:
    metadata = target.get("metadata") if isinstance(target, dict) else None
    return _member(metadata, "name") or _member(metadata, "generateName")


def _member(mapping: Any, name: str) -> str:
    return _text(mapping.get(name)) if isinstance(mapping, dict) else ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant)
# ASCII with escapes: the only form that carries a lone surrogate of the request back to where it came from.
_ENCODER: Final = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def _encoded(document: Mapping[str, Any] | Sequence[Operation]) -> bytes:
    return _ENCODER.encode(document).encode()
