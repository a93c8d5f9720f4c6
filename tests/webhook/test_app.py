"""The application through Flask's test client: statuses, limits, logs and metrics."""

from __future__ import annotations

import errno
import io
import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.reviews import body_of, encoded, recorded
from vnpu.admission import rules
from vnpu.admission.settings import Settings
from vnpu.chips import DEFAULT_CHIPS
from webhook import wire
from webhook.app import create_app
from webhook.metrics import Metrics
from webhook.review import Context

if TYPE_CHECKING:
    from flask.testing import FlaskClient

SOFT = body_of("mutate-create-pods-soft-910b3.json")
JSON = "application/json"


@pytest.fixture
def client() -> FlaskClient:
    metrics = Metrics()
    metrics.configured(1)
    return create_app(lambda: Context(Settings(), DEFAULT_CHIPS), metrics).test_client()


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


class TestReviews:
    @pytest.mark.parametrize("media_type", [JSON, "application/json; charset=utf-8", "APPLICATION/JSON"])
    def test_an_api_server_asks(self, client: FlaskClient, media_type: str) -> None:
        response = client.post("/mutate?timeout=3s", data=SOFT, content_type=media_type)
        assert (response.status_code, response.content_type) == (200, JSON)
        assert response.get_json()["response"]["allowed"] is True
        assert response.content_length == len(response.data)

    def test_the_endpoints_differ(self, client: FlaskClient) -> None:
        response = client.post("/validate", data=SOFT, content_type=JSON)
        assert response.get_json()["response"]["allowed"] is False

    @pytest.mark.parametrize("path", ["/mutate", "/validate"])
    @pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"])
    def test_another_method(self, client: FlaskClient, path: str, method: str) -> None:
        response = client.open(path, method=method)
        assert (response.status_code, response.headers["Allow"]) == (405, "POST")
        assert response.content_type.startswith("text/plain")

    @pytest.mark.parametrize("path", ["/", "/mutate/", "/mutate/x", "/Mutate", "/static/x", "/metrics/"])
    def test_another_path(self, client: FlaskClient, path: str) -> None:
        response = client.post(path, data=SOFT, content_type=JSON)
        assert response.status_code == 404
        assert response.content_type.startswith("text/plain")
        assert b"<" not in response.data


class Untouchable(io.RawIOBase):
    """A body of which nothing may be read."""

    def readable(self) -> bool:
        return True

    def readinto(self, _buffer: Any) -> int:
        raise AssertionError("the body was read")


class TestRefusedBodies:
    @pytest.mark.parametrize(
        ("head", "status"),
        [
            ({"CONTENT_LENGTH": str(wire.LARGEST_BODY + 1)}, 413),
            ({"CONTENT_LENGTH": "9" * 30}, 413),
            ({"HTTP_TRANSFER_ENCODING": "chunked"}, 411),
            ({}, 411),
        ],
    )
    def test_by_their_head_alone(self, client: FlaskClient, head: dict[str, str], status: int) -> None:
        environ = {"wsgi.input": Untouchable(), **head}
        response = client.post("/mutate", content_type=JSON, environ_overrides=environ)
        assert response.status_code == status
        assert response.content_type.startswith("text/plain")

    def test_the_largest_body_is_read(self, client: FlaskClient) -> None:
        body = SOFT.ljust(wire.LARGEST_BODY)
        assert client.post("/mutate", data=body, content_type=JSON).status_code == 200
        assert client.post("/mutate", data=body + b" ", content_type=JSON).status_code == 413

    @pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded", "", "application/yaml"])
    def test_another_media_type(self, client: FlaskClient, media_type: str) -> None:
        assert client.post("/validate", data=SOFT, content_type=media_type).status_code == 415

    def test_a_compressed_body(self, client: FlaskClient) -> None:
        response = client.post("/mutate", data=SOFT, content_type=JSON, headers={"Content-Encoding": "gzip"})
        assert response.status_code == 415

    @pytest.mark.parametrize("body", [b" ", b"[]", b"{", b"\xff", b'{"a":' * 100_000, b"[" * 100_000])
    def test_what_is_no_review(self, client: FlaskClient, body: bytes) -> None:
        response = client.post("/mutate", data=body, content_type=JSON)
        assert response.status_code == 400
        assert b"Traceback" not in response.data


class TestOtherEndpoints:
    @pytest.mark.parametrize("path", ["/healthz", "/readyz"])
    def test_health(self, client: FlaskClient, path: str) -> None:
        response = client.get(path)
        assert (response.status_code, response.data) == (200, b"ok\n")

    @pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
    def test_they_are_read_only(self, client: FlaskClient, path: str) -> None:
        response = client.post(path)
        assert response.status_code == 405
        assert "GET" in response.headers["Allow"]
        assert response.content_type.startswith("text/plain")

    def test_a_fault_behind_them_is_a_line_of_text(
        self, client: FlaskClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setattr(Metrics, "exposed", lambda _: 1 / 0)
        response = client.get("/metrics")
        assert response.status_code == 500
        assert b"ZeroDivisionError" not in response.data
        assert caplog.records[-1].exc_info is not None


def numbers(client: FlaskClient) -> dict[tuple[str, ...], float]:
    """Counted requests by endpoint, decision and reason."""
    text = client.get("/metrics").text
    return {
        (sample.labels["endpoint"], sample.labels["decision"], sample.labels["reason"]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "vnpu_webhook_reviews_total"
    }


class TestMetrics:
    def test_reviews_are_counted_by_what_came_of_them(
        self, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        client.post("/mutate", data=SOFT, content_type=JSON)
        client.post("/mutate", data=SOFT, content_type=JSON)
        client.post("/validate", data=SOFT, content_type=JSON)
        client.post("/validate", data=b"[]", content_type=JSON)
        client.post("/mutate", data=b"x", content_type="text/plain")
        monkeypatch.setattr(rules, "mutate_pod", lambda *_: 1 / 0)
        client.post("/mutate", data=SOFT, content_type=JSON)
        assert numbers(client) == {
            ("mutate", "allowed", "patched"): 2,
            ("validate", "denied", "request"): 1,
            ("validate", "unreadable", "not_a_review"): 1,
            ("mutate", "unreadable", "media_type"): 1,
            ("mutate", "fault", "fault"): 1,
        }

    def test_latency_and_generation(self, client: FlaskClient) -> None:
        client.post("/mutate", data=SOFT, content_type=JSON)
        text = client.get("/metrics").text
        samples = {
            (sample.name, *sample.labels.values()): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
        assert samples["vnpu_webhook_review_duration_seconds_count", "mutate"] == 1
        assert 0 < samples["vnpu_webhook_review_duration_seconds_sum", "mutate"] < 3
        assert ("vnpu_webhook_review_duration_seconds_bucket", "mutate", "0.001") in samples
        assert samples["vnpu_webhook_config_generation",] == 1


class FullDisk(io.BytesIO):
    """An output that takes nothing."""

    def write(self, _: Any) -> int:
        raise OSError(errno.ENOSPC, "no space left")


class TestLogs:
    def test_one_line_a_review(self, client: FlaskClient, capsys: pytest.CaptureFixture[str]) -> None:
        client.post("/mutate", data=SOFT, content_type=JSON)
        (line,) = lines(capsys)
        assert line["ms"] > 0
        del line["ms"], line["time"]
        assert line == {
            "level": "info",
            "message": "review",
            "endpoint": "mutate",
            "uid": recorded()["request"]["uid"],
            "operation": "CREATE",
            "namespace": "npu-team",
            "name": "soft-910b3",
            "dryRun": False,
            "decision": "allowed",
            "reason": "patched",
        }

    def test_a_pod_of_a_controller_has_its_generate_name(
        self, client: FlaskClient, capsys: pytest.CaptureFixture[str]
    ) -> None:
        client.post("/mutate", data=body_of("mutate-create-pods-infer.json"), content_type=JSON)
        assert lines(capsys)[0]["name"].startswith("infer-")

    def test_what_is_no_review_is_told_as_well(self, client: FlaskClient, capsys: pytest.CaptureFixture[str]) -> None:
        client.post("/validate", data=b"{", content_type=JSON)
        (line,) = lines(capsys)
        assert (line["endpoint"], line["decision"], line["reason"]) == ("validate", "unreadable", "not_json")

    def test_a_fault_of_ours_has_a_traceback(
        self, client: FlaskClient, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        value = "hunter" + str(2)
        nothing: dict[str, Any] = {}
        monkeypatch.setattr(rules, "mutate_pod", lambda *_: nothing[value])
        client.post("/mutate", data=SOFT, content_type=JSON)
        (line,) = lines(capsys)
        assert (line["level"], line["reason"]) == ("error", "fault")
        assert "review.py" in line["traceback"]
        assert line["traceback"].endswith("KeyError")
        assert "hunter2" not in line["traceback"]

    @pytest.mark.parametrize("name", ["mutate-create-pods-reserved-env.json", "mutate-create-pods-soft-910b3.json"])
    @pytest.mark.parametrize("path", ["/mutate", "/validate"])
    def test_never_a_value_of_the_environment(
        self, client: FlaskClient, capsys: pytest.CaptureFixture[str], path: str, name: str
    ) -> None:
        review = recorded(name)
        container = review["request"]["object"]["spec"]["containers"][0]
        container["env"] = [{"name": "NPU_MEM_QUOTA", "value": "hunter2"}, {"name": "TOKEN", "value": "hunter2"}]
        client.post(path, data=encoded(review), content_type=JSON)
        assert "hunter2" not in capsys.readouterr().out

    def test_no_text_of_a_request_breaks_a_line(self, client: FlaskClient, capsys: pytest.CaptureFixture[str]) -> None:
        name = 'x\n{"level": "info"}\u2028\ud800\x00'
        client.post("/mutate", data=encoded(recorded(name=name)), content_type=JSON)
        (line,) = lines(capsys)
        assert line["name"] == name

    def test_a_log_that_nobody_takes_refuses_no_pod(self, client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
        with monkeypatch.context() as patched:
            patched.setattr("sys.stdout", SimpleNamespace(buffer=FullDisk()))
            response = client.post("/mutate", data=SOFT, content_type=JSON)
        assert response.get_json()["response"]["allowed"] is True
