"""What all processes counted, as Prometheus reads it."""

from __future__ import annotations

import os
from http import HTTPStatus

from prometheus_client.parser import text_string_to_metric_families

from webhook.metrics import Late, Metrics, Shed, Watched
from webhook.review import Answer, Decision, Endpoint, Reason, Record


def answer(endpoint: Endpoint) -> Answer:
    return Answer(HTTPStatus.OK, "", b"", Record(endpoint, Decision.ALLOWED, Reason.PATCHED))


def samples(metrics: Metrics) -> dict[tuple[str, ...], float]:
    """Values by name and the values of the labels, which stand in the order of their names."""
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(metrics.exposed().decode())
        for sample in family.samples
    }


def test_reviews_of_two_processes() -> None:
    metrics = Metrics(3)
    for row in (1, 2):
        pid = os.fork()
        if pid == 0:
            metrics.adopt(row)
            metrics.count(answer(Endpoint.MUTATE), 0.0004 * row)
            metrics.count(answer(Endpoint.VALIDATE), 0.02)
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    found = samples(metrics)
    assert found["vnpu_webhook_reviews_total", "allowed", "mutate", "patched"] == 2
    assert found["vnpu_webhook_review_duration_seconds_bucket", "mutate", "0.001"] == 2
    assert found["vnpu_webhook_review_duration_seconds_bucket", "validate", "0.01"] == 0
    assert found["vnpu_webhook_review_duration_seconds_bucket", "validate", "0.02"] == 2, "the bound belongs to it"
    assert found["vnpu_webhook_review_duration_seconds_bucket", "validate", "+Inf"] == 2
    assert found["vnpu_webhook_review_duration_seconds_count", "mutate"] == 2
    assert abs(found["vnpu_webhook_review_duration_seconds_sum", "mutate"] - 0.0012) < 1e-9
    assert found["vnpu_webhook_workers",] == 2


def test_a_review_slower_than_every_bound() -> None:
    metrics = Metrics()
    metrics.count(answer(Endpoint.MUTATE), 60)
    found = samples(metrics)
    assert found["vnpu_webhook_review_duration_seconds_bucket", "mutate", "5.0"] == 0
    assert found["vnpu_webhook_review_duration_seconds_bucket", "mutate", "+Inf"] == 1


def test_what_was_counted_outlives_a_process_and_its_state_does_not() -> None:
    metrics = Metrics(2)
    metrics.adopt(1)
    metrics.connections(7)
    metrics.configured(3)
    metrics.certified(1000)
    metrics.reloaded(Watched.SETTINGS, right=False)
    metrics.shed(Shed.BUSY)
    metrics.late(Late.HEAD)
    metrics.dropped(5)
    found = samples(metrics)
    assert found["vnpu_webhook_connections",] == 7
    assert found["vnpu_webhook_config_generation",] == 3
    assert found["vnpu_webhook_certificate_expiry_timestamp_seconds",] == 1000
    assert found["vnpu_webhook_reload_failed", "settings"] == 1
    assert found["vnpu_webhook_reload_failed", "certificate"] == 0
    metrics.ended(1)
    found = samples(metrics)
    assert found["vnpu_webhook_connections",] == found["vnpu_webhook_workers",] == 0
    assert found["vnpu_webhook_reload_failed", "settings"] == 0
    assert found["vnpu_webhook_reload_failures_total", "settings"] == 1
    assert found["vnpu_webhook_shed_total", "busy"] == 1
    assert found["vnpu_webhook_timeouts_total", "head"] == 1
    assert found["vnpu_log_lines_dropped_total",] == 5


def test_the_worker_that_is_last_tells_generation_and_expiry() -> None:
    metrics = Metrics(3)
    for row, generation in ((1, 5), (2, 4)):
        metrics.adopt(row)
        metrics.configured(generation)
        metrics.certified(1000 + generation)
    found = samples(metrics)
    assert found["vnpu_webhook_config_generation",] == 4
    assert found["vnpu_webhook_certificate_expiry_timestamp_seconds",] == 1004
