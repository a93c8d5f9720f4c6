"""Prometheus metrics of the webhook: what all its processes counted together, in the text format."""

from __future__ import annotations

from bisect import bisect_left
from enum import StrEnum, auto
from itertools import accumulate, product
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from webhook.board import Board
from webhook.review import Decision, Endpoint, Reason
from webhook.wire import Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.metrics_core import Metric

    from webhook.review import Answer

MEDIA_TYPE: Final = CONTENT_TYPE_LATEST

_SECONDS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""A review takes some tenths of a millisecond; an API server gives up after 3 s."""


class Shed(StrEnum):
    """Why a connection or a request was turned away."""

    BUSY = "busy"
    CONNECTIONS = "connections"
    MEMORY = "memory"


class Late(StrEnum):
    """What a connection did not bring in time, and was closed for."""

    HANDSHAKE = "handshake"
    HEAD = "head"
    BODY = "body"
    READING = "reading"


class Watched(StrEnum):
    """What is read again while the server runs."""

    SETTINGS = "settings"
    CERTIFICATE = "certificate"


class _Of(StrEnum):
    """What is counted for each endpoint or each thing that is watched: the first word of its columns."""

    BUCKET = auto()
    SECONDS = auto()
    FAILURES = auto()
    STALE = auto()


_REVIEWS: Final = tuple(product(Endpoint, Decision, (*Reason, *Unreadable)))
_RUNNING, _OPEN, _GENERATION, _NOT_AFTER, _DROPPED = "running", "open", "generation", "not after", "dropped"
_COLUMNS: Final = (
    *_REVIEWS,
    *product((_Of.BUCKET,), Endpoint, range(len(_SECONDS) + 1)),
    *product((_Of.SECONDS,), Endpoint),
    *product((_Of.FAILURES, _Of.STALE), Watched),
    *Shed,
    *Late,
    *(_RUNNING, _OPEN, _GENERATION, _NOT_AFTER, _DROPPED),
)
_STATES: Final = (_RUNNING, _OPEN, _GENERATION, _NOT_AFTER, *product((_Of.STALE,), Watched))
"""What is true of a living process only; everything else is counted and stays."""


class Metrics(Collector):
    """The numbers of one server, made by its master before it forks workers."""

    def __init__(self, rows: int = 1) -> None:
        """Start counting at 0, in at most ``rows`` processes at a time."""
        self._board = Board(_COLUMNS, rows)
        self._registry = CollectorRegistry()
        self._registry.register(self)

    # ---- Processes

    def adopt(self, row: int) -> None:
        """This process, a worker, counts into the given row from now on; the one that made the metrics has row 0."""
        self._board.adopt(row)
        self._board.put(_RUNNING, 1)

    def ended(self, row: int) -> None:
        """The process of a row is gone: what it counted stays, what was true of it is not true any more."""
        for state in _STATES:
            self._board.put_in(row, state, 0)

    # ---- What happens

    def count(self, answer: Answer, seconds: float) -> None:
        """Count one answer and the time that it took."""
        record = answer.record
        self._board.add((record.endpoint, record.decision, record.reason))
        self._board.add((_Of.BUCKET, record.endpoint, bisect_left(_SECONDS, seconds)))
        self._board.add((_Of.SECONDS, record.endpoint), seconds)

    def shed(self, why: Shed) -> None:
        """Count what was turned away."""
        self._board.add(why)

    def late(self, what: Late) -> None:
        """Count a connection that was closed because it was too slow."""
        self._board.add(what)

    def dropped(self, lines: int) -> None:
        """Count log lines that nobody took in time."""
        self._board.add(_DROPPED, lines)

    def connections(self, number: int) -> None:
        """Tell how many connections this process holds."""
        self._board.put(_OPEN, number)

    def configured(self, generation: int) -> None:
        """Tell which configuration this process judges by, counted from 1."""
        self._board.put(_GENERATION, generation)

    def certified(self, not_after: float) -> None:
        """Tell when the certificate expires that this process serves, in seconds since 1970."""
        self._board.put(_NOT_AFTER, not_after)

    def reloaded(self, watched: Watched, *, right: bool) -> None:
        """Tell that changed files were read again, and whether they could be used."""
        self._board.put((_Of.STALE, watched), not right)
        if not right:
            self._board.add((_Of.FAILURES, watched))

    # ---- What is told

    def exposed(self) -> bytes:
        """All numbers of all processes in Prometheus' text format."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """The numbers as prometheus_client takes them."""
        board = self._board
        reviews = CounterMetricFamily(
            "vnpu_webhook_reviews",
            "Requests to the admission endpoints, by what came of them.",
            labels=("endpoint", "decision", "reason"),
        )
        for labels in _REVIEWS:
            if number := board.total(labels):
                reviews.add_metric(labels, number)
        yield reviews
        seconds = HistogramMetricFamily(
            "vnpu_webhook_review_duration_seconds", "Time to judge and answer a request.", labels=("endpoint",)
        )
        for endpoint in Endpoint:
            counts = accumulate(board.total((_Of.BUCKET, endpoint, place)) for place in range(len(_SECONDS) + 1))
            buckets = list(zip((*map(str, _SECONDS), "+Inf"), counts, strict=True))
            seconds.add_metric((endpoint,), buckets, board.total((_Of.SECONDS, endpoint)))
        yield seconds
        yield self._by(Shed, "vnpu_webhook_shed", "Connections and requests turned away, by reason.", "reason")
        yield self._by(Late, "vnpu_webhook_timeouts", "Connections closed, by what did not come in time.", "what")
        failures = CounterMetricFamily(
            "vnpu_webhook_reload_failures", "Changed files that could not be used.", labels=("what",)
        )
        stale = GaugeMetricFamily(
            "vnpu_webhook_reload_failed", "1 while the files are not those that are in use.", labels=("what",)
        )
        for watched in Watched:
            failures.add_metric((watched,), board.total((_Of.FAILURES, watched)))
            stale.add_metric((watched,), max(board.values((_Of.STALE, watched))))
        yield failures
        yield stale
        yield CounterMetricFamily("vnpu_log_lines_dropped", "Log lines that nobody took.", board.total(_DROPPED))
        yield from self._gauges()

    def _by(self, words: type[StrEnum], name: str, text: str, label: str) -> Metric:
        family = CounterMetricFamily(name, text, labels=(label,))
        for word in words:
            family.add_metric((word,), self._board.total(word))
        return family

    def _gauges(self) -> Iterator[Metric]:
        board = self._board
        yield GaugeMetricFamily("vnpu_webhook_workers", "Processes that serve.", board.total(_RUNNING))
        yield GaugeMetricFamily("vnpu_webhook_connections", "Connections that are open.", board.total(_OPEN))
        yield GaugeMetricFamily(
            "vnpu_webhook_config_generation",
            "How often settings and device config were loaded since the start, in the worker that is last.",
            min(filter(None, board.values(_GENERATION)), default=0),
        )
        yield GaugeMetricFamily(
            "vnpu_webhook_certificate_expiry_timestamp_seconds",
            "When the certificate expires that is served: the first one, should workers differ.",
            min(filter(None, board.values(_NOT_AFTER)), default=0),
        )
