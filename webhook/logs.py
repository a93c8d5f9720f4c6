"""Logs: one JSON object a line on standard output, one line a review."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from webhook.log_writer import Writer

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.review import Answer

LOGGER: Final = logging.getLogger("webhook")
_LAST_S: Final = 1.0
"""For the lines that wait when a process ends."""

# ASCII, so that no text of a request can break or fake a line.
_encoded: Final = json.JSONEncoder(ensure_ascii=True, default=str).encode
_writer: Writer | None = None


class JsonFormatter(logging.Formatter):
    """A record as one line: time, level, message, the fields given as ``extra={"fields": {...}}``, and a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        line = _line(record.created, record.levelname.lower(), record.getMessage())
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return _encoded(line)


class _Handler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        _put(self.format(record))


def set_up() -> None:
    """Send every log record of this process, also those of libraries, to standard output as JSON lines."""
    handler = _Handler()
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
    logging.captureWarnings(capture=True)


def start_writer(dropped: Callable[[int], None]) -> None:
    """From now on a thread of this process writes the lines, and nobody else waits for whoever reads them.

    A process that was forked has no such thread and starts its own.

    Args:
        dropped: told how many lines were dropped because nobody took them.
    """

    def lost(lines: int) -> bytes:
        dropped(lines)
        line = _line(time.time(), "warning", "log lines dropped: nobody took them in time")
        return f"{_encoded({**line, 'dropped': lines})}\n".encode()

    global _writer  # noqa: PLW0603 - there is one standard output
    _writer = Writer(sys.stdout.fileno(), lost)


def stop_writer() -> None:
    """Write what waits, and then without a thread again."""
    global _writer
    writer, _writer = _writer, None
    if writer is not None:
        writer.close(_LAST_S)


def log_answer(answer: Answer, milliseconds: float) -> None:
    """One line for one request: who was asked for, what came of it, how long it took; never a value of the object.

    It goes past :mod:`logging`, whose records take longer to make than this line.
    """
    record = answer.record
    line = _line(time.time(), "info" if answer.fault is None else "error", "review")
    line |= {
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
    _put(_encoded(line))


def pass_on(line: bytes) -> None:
    """A line of another process of ours, its end included."""
    _write(line)


def _put(line: str) -> None:
    _write(f"{line}\n".encode())


def _write(data: bytes) -> None:
    if _writer is not None:
        _writer.put(data)
        return
    with suppress(OSError):  # a log that nobody takes is no reason to refuse a pod
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def _line(seconds: float, level: str, message: str) -> dict[str, Any]:
    moment = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return {"time": moment, "level": level, "message": message}


def _places(fault: BaseException) -> str:
    """The traceback with the type of the exception but not its text, which may hold a value of the object."""
    return "".join((*traceback.format_tb(fault.__traceback__), type(fault).__qualname__))


def _forget() -> None:
    global _writer  # noqa: PLW0603 - there is one standard output
    _writer = None


os.register_at_fork(after_in_child=_forget)
