"""What a call to the API server can end with."""

from __future__ import annotations

import json
from typing import Final

from vnpu.errors import VnpuError

_TOO_MANY: Final = 429
_OVERLOADED: Final = 503
_SERVER_FAULTS: Final = frozenset({500, 502, 503, 504})
_LONGEST_WAIT_S: Final = 60.0
"""Longer than this nobody is made to wait, whatever the server asks."""
_DIGITS: Final = 9


class KubeError(VnpuError):
    """The API server refused a call, or gave no usable answer.

    Attributes:
        status: the HTTP status, 0 where there was no answer.
        reason: the server's word for it, such as ``AlreadyExists``; may be empty.
        message: the server's sentence.
        retry_after_s: how long the server asks to wait before the next try, None where it does not say.
    """

    def __init__(self, status: int, reason: str, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(status, reason, message)
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        return f"{self.message} ({' '.join(filter(None, (str(self.status or ''), self.reason)))})"

    @property
    def unknown(self) -> bool:
        """Whether a write that ended so may have been carried out all the same: look before it is tried again.

        A 503 that asks to wait was turned away at the door. A 500 or 504 that does so may come from behind it: the
        server's ``ServerTimeout`` is one.
        """
        turned_away = self.status == _OVERLOADED and self.retry_after_s is not None
        return self.status in _SERVER_FAULTS and not turned_away

    @property
    def passing(self) -> bool:
        """Whether the same call may well succeed later."""
        return self.status == _TOO_MANY or self.status in _SERVER_FAULTS


class NotFound(KubeError):  # noqa: N818 - the API's own word
    """404: no such object, or no such resource."""


class Conflict(KubeError):  # noqa: N818 - the API's own word
    """409: the object is not what the write took it for, because someone else was faster."""


class AlreadyExists(Conflict):
    """409 on create: an object of that name is there."""


class Gone(KubeError):  # noqa: N818 - the API's own word
    """410: the server no longer has what happened since that resource version: list again."""


class Forbidden(KubeError):  # noqa: N818 - the API's own word
    """401 and 403: who asks is not known, or may not."""


class Invalid(KubeError):  # noqa: N818 - the API's own word
    """422: the object is refused, or a JSON patch does not apply, for example because its ``test`` fails."""


class Unreachable(KubeError):  # noqa: N818 - what the server is
    """No answer, or one that broke off; ``sent`` tells whether the request may have arrived."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(0, "Unreachable", message)
        self.sent = sent

    @property
    def unknown(self) -> bool:
        """Whether a write may have been carried out."""
        return self.sent

    @property
    def passing(self) -> bool:
        """Whether the same call may well succeed later."""
        return True


_ERRORS: Final = {401: Forbidden, 403: Forbidden, 404: NotFound, 409: Conflict, 410: Gone, 422: Invalid}


def refusal(status: int, content: bytes, retry_after: str | None = None) -> KubeError:
    """The error that an answer stands for.

    Args:
        status: its HTTP status, 400 or above.
        content: its body, a ``Status`` object from the API server, anything from what stands before it.
        retry_after: the header of that name.
    """
    try:
        document = json.loads(content)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        document = {"message": content[:200].decode(errors="replace").strip()}
    reason, message = str(document.get("reason") or ""), str(document.get("message") or f"HTTP status {status}")
    kind = AlreadyExists if reason == "AlreadyExists" else _ERRORS.get(status, KubeError)
    return kind(status, reason, message, _seconds(retry_after))


def _seconds(text: str | None) -> float | None:
    if text is None or not (text.isascii() and text.isdigit() and len(text) < _DIGITS):
        return None  # a date is allowed as well, but the API server writes seconds
    return min(float(text), _LONGEST_WAIT_S)
