"""Prometheus metrics of the extender. It is one process: its numbers are in memory."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

if TYPE_CHECKING:
    from collections.abc import Callable

MEDIA_TYPE: Final = CONTENT_TYPE_LATEST

_SECONDS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
"""A filter takes some milliseconds; a bind may wait for its turn, or for the device plugin."""

# A second series for each counter would say when it began, which nobody asks for.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Verb(StrEnum):
    """What kube-scheduler asks for."""

    FILTER = "filter"
    PRIORITIZE = "prioritize"
    BIND = "bind"


class Outcome(StrEnum):
    """What came of it."""

    DONE = "done"
    REFUSED = "refused"
    UNREADABLE = "unreadable"
    NOT_SYNCED = "not_synced"


class Metrics:
    """The numbers of one extender."""

    def __init__(self) -> None:
        """Start counting at 0."""
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "vnpu_extender_requests",
            "Requests of kube-scheduler, by what came of them.",
            ("verb", "outcome"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "vnpu_extender_request_duration_seconds",
            "Time to answer a request.",
            ("verb",),
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._lost = Counter(
            "vnpu_extender_watch_failures",
            "Lists and watches that failed; they are taken up again.",
            ("kind",),
            registry=self._registry,
        )

    def count(self, verb: Verb, outcome: Outcome, seconds: float) -> None:
        """Count one request and the time that it took."""
        self._requests.labels(verb.value, outcome.value).inc()
        self._seconds.labels(verb.value).observe(seconds)

    def lost(self, kind: str) -> None:
        """Count a list or a watch that failed."""
        self._lost.labels(kind).inc()

    def gauge(self, name: str, text: str, value: Callable[[], float]) -> None:
        """Tell something that is looked up whenever somebody asks."""
        Gauge(f"vnpu_extender_{name}", text, registry=self._registry).set_function(value)

    def exposed(self) -> bytes:
        """All numbers in Prometheus' text format."""
        return generate_latest(self._registry)
