"""Logs: one JSON object a line on standard output, one line a review."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from webhook.review import Answer

LOGGER: Final = logging.getLogger("webhook")


class JsonFormatter(logging.Formatter):
    """A record as one line: time, level, message, the fields given as ``extra={"fields": {...}}``, and a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end; ASCII, so that no text of a request can break or fake a line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        line.update(getattr(record, "fields", {}))
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def set_up() -> None:
    """Send every log record of this process, also those of libraries, to standard output as JSON lines."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
    logging.captureWarnings(capture=True)


def log_answer(answer: Answer, milliseconds: float) -> None:
    """One line for one request: who was asked for, what came of it, how long it took; never a value of the object."""
    record = answer.record
    fields = {
        "endpoint": record.endpoint.value,
        "uid": record.uid,
        "operation": record.operation,
        "namespace": record.namespace,
        "name": record.name,
        "dryRun": record.dry_run,
        "decision": record.decision.value,
        "reason": record.reason.value,
        "ms": round(milliseconds, 3),
    }
    if answer.fault is None:
        LOGGER.info("review", extra={"fields": fields})
    else:
        LOGGER.error("review", extra={"fields": fields}, exc_info=answer.fault)
