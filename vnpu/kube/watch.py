"""Lists and watches: the objects as they are, and what happens to them from then on."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vnpu.kube.errors import Forbidden, Gone, KubeError, Unreachable, refusal
from vnpu.kube.retry import pause_s

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vnpu.kube.resources import Object
    from vnpu.kube.transport import Stream

_SLOW_S: Final = 30.0
"""Between two tries of what is forbidden."""
_SHORT_S: Final = 1.0
"""A watch that lasts no longer is no use."""


@dataclass(frozen=True, slots=True)
class Page:
    """A list or a part of it: the objects as they were at a resource version."""

    items: list[Object]
    resource_version: str


Listing = Page
"""A whole list."""


@dataclass(frozen=True, slots=True)
class Event:
    """What a watch saw: ``ADDED``, ``MODIFIED``, ``DELETED`` or ``BOOKMARK``, and the object after it.

    The object of a bookmark carries a resource version and little else.
    """

    type: str
    object: Object

    @property
    def resource_version(self) -> str:
        """Where to go on watching after this event."""
        return str(self.object["metadata"]["resourceVersion"])


@dataclass(frozen=True, slots=True)
class Lost:
    """For now the objects cannot be followed: what was seen last may be old. Another try comes by itself."""

    error: KubeError


class Watch:
    """The events of one watch call; :meth:`close` may be called by another thread and ends it."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[Event]:
        return map(_event, self._stream.lines())

    def close(self) -> None:
        """End the iteration, also while it waits."""
        self._stream.close()


class Follower:
    """All objects of a kind, kept up with for as long as it is iterated.

    Yields a :class:`Listing` whenever all that was known is to be forgotten (first of all, and where the server no
    longer knows what happened since), an :class:`Event` for each change, bookmarks left out, and :class:`Lost` when a
    call failed. A watch that ends, breaks or falls silent is taken up where it stood.
    """

    def __init__(self, listed: Callable[[], Listing], watched: Callable[[str], Watch]) -> None:
        self._listed = listed
        self._watched = watched
        self._closed = threading.Event()
        self._watch: Watch | None = None

    def close(self) -> None:
        """End the iteration, also while it waits; may be called by another thread."""
        self._closed.set()
        if self._watch is not None:
            self._watch.close()

    def __iter__(self) -> Iterator[Listing | Event | Lost]:
        version, failures, pause = "", 0, 0.0
        while not self._closed.wait(pause):
            begun = time.monotonic()
            try:
                if not version:
                    listing = self._listed()
                    version = listing.resource_version
                    yield listing
                for event in self._events(version):
                    version, failures = event.resource_version, 0
                    if event.type != "BOOKMARK":
                        yield event
            except Gone:
                version, failures = "", failures + 1
                pause = pause_s(failures)
            except KubeError as error:
                failures += 1
                pause = _SLOW_S if isinstance(error, Forbidden) else pause_s(failures, error.retry_after_s)
                yield Lost(error)
            else:
                failures = failures + 1 if time.monotonic() - begun < _SHORT_S else 0
                pause = pause_s(failures) if failures else 0.0

    def _events(self, version: str) -> Iterator[Event]:
        self._watch = self._watched(version)
        if self._closed.is_set():  # closed between the two
            self._watch.close()
        return iter(self._watch)


def _event(line: bytes) -> Event:
    try:
        document = json.loads(line)
        event = Event(document["type"], document["object"])
        if event.type == "ERROR":
            code = int(event.object["code"])
        else:
            _ = event.resource_version
    except (ValueError, TypeError, KeyError) as error:
        raise Unreachable(f"watch: a line that is no event: {error}", sent=True) from error
    if event.type == "ERROR":
        raise refusal(code, json.dumps(event.object).encode())
    return event
