"""Prometheus metrics of the webhook.

One worker keeps its numbers in memory. With several, each keeps them in files of a shared folder, which
``prometheus_client`` looks up in its environment variable when this module is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.multiprocess import MultiProcessCollector

if TYPE_CHECKING:
    from webhook.review import Answer, Endpoint

MEDIA_TYPE: Final = CONTENT_TYPE_LATEST

_SECONDS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""A review takes some tenths of a millisecond; an API server gives up after 3 s."""

# A second series for each counter would say when it began, which nobody asks for.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """The numbers of one server."""

    def __init__(self, *, shared: bool = False) -> None:
        """Start counting; ``shared`` where several workers count into one folder."""
        self._shared = shared
        self._registry = CollectorRegistry()
        self._reviews = Counter(
            "vnpu_webhook_reviews",
            "Requests to the admission endpoints, by what came of them.",
            ("endpoint", "decision", "reason"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "vnpu_webhook_review_duration_seconds",
            "Time from the headers of a request to its answer.",
            ("endpoint",),
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._generation = Gauge(
            "vnpu_webhook_config_generation",
            "How often settings and device config were loaded since the start.",
            registry=self._registry,
            multiprocess_mode="max",
        )
        # Finding a child by its labels costs more than counting, and the combinations are few.
        self._counters: dict[tuple[str, str, str], Counter] = {}
        self._histograms: dict[Endpoint, Histogram] = {}

    def count(self, answer: Answer, seconds: float) -> None:
        """Count one answer and the time that it took."""
        record = answer.record
        labels = (record.endpoint.value, record.decision.value, record.reason.value)
        counter = self._counters.get(labels)
        if counter is None:
            counter = self._counters[labels] = self._reviews.labels(*labels)
        counter.inc()
        histogram = self._histograms.get(record.endpoint)
        if histogram is None:
            histogram = self._histograms[record.endpoint] = self._seconds.labels(record.endpoint.value)
        histogram.observe(seconds)

    def configured(self, generation: int) -> None:
        """Tell which configuration is in use, counted from 1."""
        self._generation.set(generation)

    def exposed(self) -> bytes:
        """All numbers of all workers in Prometheus' text format."""
        registry = self._registry
        if self._shared:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)
