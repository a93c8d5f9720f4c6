"""Logs: one JSON object a line on standard output, one line a review."""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from collections import deque
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from webhook.review import Answer

LOGGER: Final = logging.getLogger("webhook")

# ASCII, so that no text of a request can break or fake a line.
_encoded: Final = json.JSONEncoder(ensure_ascii=True, default=str).encode
_waiting: Final[deque[bytes]] = deque()
_deferred = False


class JsonFormatter(logging.Formatter):
    """A record as one line: time, level, message, the fields given as ``extra={"fields": {...}}``, and a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        line = {
            "time": _moment(record.created),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return _encoded(line)


def set_up() -> None:
    """Send every log record of this process, also those of libraries, to standard output as JSON lines."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
    logging.captureWarnings(capture=True)


def log_answer(answer: Answer, milliseconds: float) -> None:
    """One line for one request: who was asked for, what came of it, how long it took; never a value of the object.

    It goes past :mod:`logging`, whose records take longer to make than this line.
    """
    record = answer.record
    line = {
        "time": _moment(time.time()),
        "level": "info" if answer.fault is None else "error",
        "message": "review",
        "endpoint": record.endpoint,
        "uid": record.uid,
        "operation": record.operation,
        "namespace": record.namespace,
        "name": record.name,
        "dryRun": record.dry_run,
        "decision": record.decision,
        "reason": record.reason,
        "ms": round(milliseconds, 3),
    }
    if answer.fault is not None:
        line["traceback"] = _places(answer.fault)
    _waiting.append(f"{_encoded(line)}\n".encode())
    if not _deferred:
        write_out()


def defer() -> None:
    """From now on, leave the lines of reviews to whoever calls :func:`write_out`.

    Each write lets go of the interpreter, and under load another thread takes it. So threads that answer requests had
    better not write.
    """
    global _deferred  # noqa: PLW0603 - there is one standard output
    _deferred = True


def write_out() -> None:
    """Write the lines that wait. A log that nobody takes is no reason to refuse a pod."""
    lines = bytearray()
    with suppress(IndexError):
        while True:
            lines += _waiting.popleft()
    if lines:
        with suppress(OSError):
            sys.stdout.buffer.write(lines)
            sys.stdout.buffer.flush()


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def _places(fault: BaseException) -> str:
    """The traceback with the type of the exception but not its text, which may hold a value of the object."""
    return "".join((*traceback.format_tb(fault.__traceback__), type(fault).__qualname__))
