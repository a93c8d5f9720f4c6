"""What vnpu.kube does when the API server fails in each way that the stand-in knows."""

from __future__ import annotations

import json
import socket
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from certs.authority import make_authority, make_serving, write_pair
from tests.support.api_stand_in import ApiStandIn, Fault
from tests.support.odd_servers import dripping, kubeconfig
from vnpu.errors import ConfigError
from vnpu.kube import (
    NODES,
    PODS,
    SECRETS,
    Cluster,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    KubeError,
    NotFound,
    Unreachable,
    connect,
    transport,
)
from vnpu.kube.errors import refusal
from vnpu.kube.retry import pause_s

if TYPE_CHECKING:
    from pathlib import Path

SECRET: dict[str, Any] = {"metadata": {"name": "one", "namespace": "n"}, "data": {}}


class TestReads:
    @pytest.mark.parametrize(
        "fault",
        [
            Fault("GET", status=500),
            Fault("GET", status=503),
            Fault("GET", status=429, retry_after="1"),
            Fault("GET", cut="before"),
            Fault("GET", cut="after"),
            Fault("GET", cut="half"),
        ],
        ids=lambda fault: f"{fault.status or fault.cut}",
    )
    def test_are_repeated(self, api: ApiStandIn, cluster: Cluster, pauses: list[float], fault: Fault) -> None:
        api.put(SECRETS, SECRET)
        fault.times = 2
        api.fail(fault)
        assert cluster.get(SECRETS, "one", "n")["metadata"]["name"] == "one"
        assert len(pauses) == 2
        fault.times = 0

    def test_are_not_repeated_for_ever(self, api: ApiStandIn, cluster: Cluster, pauses: list[float]) -> None:
        api.fail(Fault("GET", status=503, reason="ServiceUnavailable", times=-1))
        with pytest.raises(KubeError, match=r"injected: ServiceUnavailable \(503 ServiceUnavailable\)"):
            cluster.list(PODS)
        assert len(pauses) == len(api.requests) - 1 == 3

    def test_wait_as_long_as_the_server_asks(self, api: ApiStandIn, cluster: Cluster, pauses: list[float]) -> None:
        api.fail(Fault("GET", status=429, retry_after="7"))
        cluster.list(PODS)
        assert pauses == [7.0]

    @pytest.mark.parametrize(("status", "kind"), [(401, Forbidden), (403, Forbidden), (404, NotFound)])
    def test_are_not_repeated_where_it_is_no_use(
        self, api: ApiStandIn, cluster: Cluster, pauses: list[float], status: int, kind: type[KubeError]
    ) -> None:
        api.fail(Fault("GET", status=status, reason="Because"))
        with pytest.raises(kind):
            cluster.list(PODS)
        assert not pauses

    def test_a_slow_answer_is_given_up(self, api: ApiStandIn, tmp_path: Path, pauses: list[float]) -> None:
        hurried = api.cluster(tmp_path, timeout_s=0.5)
        api.fail(Fault("GET", delay_s=2.0))
        hurried.list(PODS)
        assert pauses
        hurried.close()

    def test_an_answer_that_drips_is_given_up(
        self, tmp_path: Path, pauses: list[float], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(transport, "_WHOLE_ANSWER", 1)
        with dripping() as port:
            path = tmp_path / "kubeconfig"
            path.write_text(json.dumps(kubeconfig(f"http://127.0.0.1:{port}")))
            hurried = connect(kubeconfig=str(path), timeout_s=0.5)
            with pytest.raises(Unreachable, match="not complete in time"):
                hurried.read("/version")
        assert len(pauses) == 3

    def test_a_list_that_grows_old_is_read_again(self, api: ApiStandIn, cluster: Cluster) -> None:
        for number in range(501):
            api.put(SECRETS, {"metadata": {"name": f"s{number}", "namespace": "n"}})
        api.fail(Fault("GET", "continue=", act=api.compact))
        assert len(cluster.list(SECRETS).items) == 501
        assert [request.query.get("limit") for request in api.requests] == ["500", "500", "5000"]

    def test_pages_that_grow_old_are_gone(self, api: ApiStandIn, cluster: Cluster) -> None:
        for number in range(3):
            api.put(SECRETS, {"metadata": {"name": f"s{number}", "namespace": "n"}})
        pages = cluster.pages(SECRETS, limit=2)
        next(pages)
        api.compact()
        with pytest.raises(Gone):
            next(pages)

    @pytest.mark.parametrize("content", [b"<html>", b"[]", b"\xff"])
    def test_an_answer_of_another_kind_is_no_object(self, tmp_path: Path, content: bytes) -> None:
        with dripping(content) as port:
            path = tmp_path / "kubeconfig"
            path.write_text(json.dumps(kubeconfig(f"http://127.0.0.1:{port}")))
            with pytest.raises(Unreachable, match="the answer is no JSON"):
                connect(kubeconfig=str(path)).get(NODES, "n")


class TestWrites:
    @pytest.mark.parametrize("cut", ["before", "after", "half"])
    def test_are_never_repeated_when_the_outcome_is_unknown(
        self, api: ApiStandIn, cluster: Cluster, pauses: list[float], cut: str
    ) -> None:
        api.fail(Fault("POST", cut=cut))
        with pytest.raises(Unreachable) as caught:
            cluster.create(SECRETS, SECRET, "n")
        assert caught.value.unknown
        assert not pauses
        assert (api.object(SECRETS, "one", "n") is None) == (cut == "before")

    def test_a_put_is_not_repeated_below_us(self, api: ApiStandIn, cluster: Cluster, pauses: list[float]) -> None:
        made = api.put(SECRETS, SECRET)
        api.fail(Fault("PUT", cut="after"))
        with pytest.raises(Unreachable):
            cluster.replace(SECRETS, made | {"data": {"a": "MQ=="}})
        assert [request.method for request in api.requests] == ["PUT"]
        assert not pauses

    @pytest.mark.parametrize(("status", "retry_after"), [(500, ""), (504, ""), (500, "2"), (504, "2"), (503, "")])
    def test_a_fault_of_the_server_leaves_the_outcome_unknown(
        self, api: ApiStandIn, cluster: Cluster, pauses: list[float], status: int, retry_after: str
    ) -> None:
        api.fail(Fault("POST", status=status, retry_after=retry_after))
        with pytest.raises(KubeError) as caught:
            cluster.create(SECRETS, SECRET, "n")
        assert caught.value.unknown
        assert not pauses

    @pytest.mark.parametrize("status", [429, 503])
    def test_are_repeated_when_the_server_asks_for_it(
        self, api: ApiStandIn, cluster: Cluster, pauses: list[float], status: int
    ) -> None:
        api.fail(Fault("POST", status=status, retry_after="2"))
        cluster.create(SECRETS, SECRET, "n")
        assert pauses == [2.0]

    def test_are_repeated_when_nothing_was_sent(self, tmp_path: Path, pauses: list[float]) -> None:
        path = tmp_path / "kubeconfig"
        with socket.create_server(("127.0.0.1", 0)) as taken:
            path.write_text(json.dumps(kubeconfig(f"http://127.0.0.1:{taken.getsockname()[1]}")))
        with pytest.raises(Unreachable) as caught:
            connect(kubeconfig=str(path)).create(SECRETS, SECRET, "n")
        assert not caught.value.unknown
        assert len(pauses) == 3

    def test_who_was_faster_is_a_conflict(self, api: ApiStandIn, cluster: Cluster) -> None:
        made = api.put(SECRETS, SECRET)
        api.fail(Fault("PUT", act=lambda: api.put(SECRETS, SECRET | {"data": {"theirs": "MQ=="}})))
        with pytest.raises(Conflict):
            cluster.replace(SECRETS, made | {"data": {"ours": "MQ=="}})

    def test_finalizers_are_waited_for(self, api: ApiStandIn, cluster: Cluster) -> None:
        api.put(PODS, {"metadata": {"name": "p", "namespace": "n", "finalizers": ["a/b"]}, "spec": {}})
        cluster.delete(PODS, "p", "n")
        assert cluster.get(PODS, "p", "n")["metadata"]["deletionTimestamp"]
        with pytest.raises(Conflict):
            cluster.bind("n", "p", "node", {}, "")
        cluster.patch(PODS, "p", {"metadata": {"finalizers": None}}, "n", kind="merge")
        assert api.object(PODS, "p", "n") is None

    def test_a_status_is_changed_by_its_subresource_alone(self, api: ApiStandIn, cluster: Cluster) -> None:
        api.put(PODS, {"metadata": {"name": "p", "namespace": "n"}, "spec": {"a": 1}})
        change = {"spec": {"a": 2}, "status": {"phase": "Running"}}
        cluster.patch(PODS, "p", change, "n", kind="merge", subresource="status")
        assert api.objects(PODS)[0]["spec"] == {"a": 1}
        cluster.patch(PODS, "p", change | {"status": None}, "n", kind="merge")
        assert (api.objects(PODS)[0]["spec"], api.objects(PODS)[0]["status"]) == ({"a": 2}, {"phase": "Running"})

    def test_a_json_patch_that_is_none_is_refused(self, api: ApiStandIn, cluster: Cluster) -> None:
        api.put(SECRETS, SECRET)
        with pytest.raises(Invalid):
            cluster.patch(SECRETS, "one", [{"op": "nonsense", "path": "/data"}], "n")


class TestConnecting:
    def test_without_a_configuration(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
        with pytest.raises(ConfigError, match=r"nowhere.*a kubeconfig named by an option or KUBECONFIG, is expected"):
            connect(kubeconfig=str(tmp_path / "nowhere"))

    @pytest.mark.parametrize("content", ["", "[]", "{", "clusters: 3", '{"current-context": "x"}'])
    def test_with_one_that_cannot_be_read(self, tmp_path: Path, content: str) -> None:
        (tmp_path / "kubeconfig").write_text(content)
        with pytest.raises(ConfigError, match="kubeconfig"):
            connect(kubeconfig=str(tmp_path / "kubeconfig"))

    def test_in_a_pod_the_token_is_read_again(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        incluster = pytest.importorskip("kubernetes.config.incluster_config")
        authority = make_authority("test", now=datetime.now(UTC))
        pair = make_serving(authority, dns_names=["localhost"], ip_addresses=["127.0.0.1"], now=datetime.now(UTC))
        files = tmp_path / "tls.crt", tmp_path / "tls.key", tmp_path / "ca.crt"
        write_pair(pair, *files[:2])
        files[2].write_bytes(authority.certificate)
        token = tmp_path / "token"
        token.write_text("first")
        with ApiStandIn(tls=files) as api:
            monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
            monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(api.port))
            monkeypatch.setattr(incluster, "SERVICE_TOKEN_FILENAME", str(token))
            monkeypatch.setattr(incluster, "SERVICE_CERT_FILENAME", str(files[2]))
            cluster = connect(agent="vnpu-certs/1")
            cluster.read("/version")
            token.write_text("second")
            much_later = datetime(2100, 1, 1)  # noqa: DTZ001 - the client's clock has no zone
            later = SimpleNamespace(datetime=SimpleNamespace(now=lambda: much_later), timedelta=timedelta)
            monkeypatch.setattr(incluster, "datetime", later)
            cluster.read("/version")
            cluster.close()
            headers = [request.headers for request in api.requests]
            assert [one["authorization"].split()[-1] for one in headers] == ["first", "second"]
            assert {one["User-Agent"] for one in headers} == {"vnpu-certs/1"}


def test_pauses_grow_and_differ() -> None:
    for attempt in range(1, 40):
        longest = min(5.0, 0.2 * 2 ** (attempt - 1))
        assert longest / 2 <= pause_s(attempt) <= longest
    assert pause_s(1, 9.0) == 9.0
    assert len({pause_s(5) for _ in range(9)}) > 1


@pytest.mark.parametrize(("header", "seconds"), [("3", 3.0), ("999999", 60.0), ("Sun, 29 Nov", None), ("-1", None)])
def test_what_stands_before_the_server_may_refuse_as_well(header: str, seconds: float | None) -> None:
    error = refusal(502, b"<h1>Bad gateway</h1>", header)
    assert (error.status, error.retry_after_s) == (502, seconds)
    assert str(error) == "<h1>Bad gateway</h1> (502)"
