"""``hami.io/mutex.lock``: one pod at a time goes through Allocate on a node.

HAMi writes ``<RFC 3339 time>,<namespace>,<pod>``, Volcano the bare time. Only a lock that names its pod lets a device
plugin find that pod; nobody is found by age.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from vnpu.annotations.fields import text
from vnpu.errors import AnnotationError

EXPIRY: Final = timedelta(minutes=5)
"""HAMi's and Volcano's: the owner of an older lock is taken for dead."""

_RFC3339: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})",
    re.ASCII,
)
_ALLOWED: Final = "<RFC 3339 time>,<namespace>,<pod> is expected, such as 2026-08-21T10:00:00Z,team,app-0"


@dataclass(frozen=True, slots=True)
class NodeLock:
    """The lock on a node.

    Attributes:
        time: since when, with its zone.
        namespace: of the pod that holds the lock, ``""`` where the lock does not say.
        pod: its name, ``""`` where the lock does not say.
    """

    time: datetime
    namespace: str = ""
    pod: str = ""

    def expired(self, now: datetime, after: timedelta = EXPIRY) -> bool:
        """Whether the lock is older than ``after`` at ``now`` (a time with its zone)."""
        return now - self.time > after


def decode(value: Any, path: str = "") -> NodeLock:
    """The lock in the annotation; spaces around its parts and one comma at the end do not count.

    Args:
        value: the annotation's value.
        path: the annotation, for the error.

    Raises:
        AnnotationError: no RFC 3339 time, or one of namespace and pod is missing.
    """
    time, *owner = (part.strip() for part in text(value, path).split(","))
    if owner and not owner[-1]:
        owner.pop()
    if not _RFC3339.fullmatch(time) or not (owner == [] or (len(owner) == 2 and all(owner))):
        raise AnnotationError(path, value, _ALLOWED)
    try:
        return NodeLock(datetime.fromisoformat(time), *owner)
    except ValueError:  # the 31st of February
        raise AnnotationError(path, value, _ALLOWED) from None


def encode(lock: NodeLock) -> str:
    """The text of the lock, byte for byte as HAMi writes it; the bare time where it names no pod.

    Raises:
        AnnotationError: a time without zone, one of namespace and pod without the other, or a comma or spaces around
            them.
    """
    offset = lock.time.utcoffset()
    owner = [part for part in (lock.namespace, lock.pod) if part]
    if offset is None or len(owner) == 1 or any("," in part or part != part.strip() for part in owner):
        raise AnnotationError("", f"{lock.time}, {lock.namespace}, {lock.pod}", _ALLOWED)
    # An offset with seconds (local mean time) has no spelling in RFC 3339.
    time = lock.time.astimezone(UTC) if offset % timedelta(minutes=1) else lock.time
    return ",".join([time.isoformat().removesuffix("+00:00") + ("" if time.utcoffset() else "Z"), *owner])
