"""The commands, against the stand-in, and with `make test-cluster` against a real API server."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import threading
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from certs.__main__ import main
from certs.authority import AUTHORITY_LIFETIME, SERVING_LIFETIME, make_authority
from certs.check import check
from certs.keep import Log, Replica
from certs.publish import Place
from certs.rotation import Step
from certs.trust import Trust, read_trust
from tests.support.certs_process import keeping, wait_for
from vnpu.kube import MUTATING, SECRETS, VALIDATING
from vnpu.names import CERTIFICATES_OWNER, OWNER_LABEL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.clusters import AnyCluster
    from vnpu.kube import Object, Resource

pytestmark = pytest.mark.timeout(180)

SECRET, SERVICE = "webhook-certs", "webhook"


def webhook(name: str) -> Object:
    return {
        "name": f"{name}.admission.vnpu.test",
        "clientConfig": {"service": {"name": SERVICE, "namespace": "nowhere", "path": "/x", "port": 443}},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        "namespaceSelector": {"matchLabels": {"vnpu-test": "never"}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Ignore",
    }


@pytest.fixture
def configured(any_cluster: AnyCluster) -> Iterator[AnyCluster]:
    """With both webhook configurations, as the chart leaves them: without a caBundle."""
    kinds = ((MUTATING, ["mutate"]), (VALIDATING, ["create", "update"]))
    for resource, names in kinds:
        any_cluster.cluster.create(
            resource,
            {
                "apiVersion": resource.api_version,
                "kind": resource.kind,
                "metadata": {"name": any_cluster.prefix},
                "webhooks": [webhook(name) for name in names],
            },
        )
    yield any_cluster
    for resource, _ in kinds:
        any_cluster.cluster.delete(resource, any_cluster.prefix)


def arguments(at: AnyCluster) -> list[str]:
    return [
        *("--kubeconfig", at.kubeconfig, "--namespace", at.namespace, "--service", SERVICE, "--secret", SECRET),
        *("--webhook-configurations", at.prefix),
    ]


def replica(at: AnyCluster, folder: Path | None = None, **options: Any) -> Replica:
    place = Place(at.namespace, SERVICE, SECRET, (at.prefix,))
    made = Replica(at.cluster, place, folder, Log(), propagation=timedelta(0), **options)
    made.start()
    return made


def settle(one: Replica) -> list[Step | None]:
    steps: list[Step | None] = []
    while Step.SETTLED not in steps:
        steps.append(one.turn()[0])
        assert len(steps) < 30, steps
    return steps


def trust(at: AnyCluster) -> Trust:
    data = at.cluster.get(SECRETS, SECRET, at.namespace)["data"]
    return read_trust({name: base64.b64decode(value) for name, value in data.items()}, datetime.now(UTC))


def bundles(at: AnyCluster) -> set[bytes]:
    return {
        base64.b64decode(one["clientConfig"].get("caBundle", ""))
        for resource in (MUTATING, VALIDATING)
        for one in at.cluster.get(resource, at.prefix)["webhooks"]
    }


def set_bundle(at: AnyCluster, resource: Resource, bundle: bytes) -> None:
    value = base64.b64encode(bundle).decode()
    count = len(at.cluster.get(resource, at.prefix)["webhooks"])
    path = "/webhooks/{}/clientConfig/caBundle"
    at.cluster.patch(
        resource, at.prefix, [{"op": "add", "path": path.format(index), "value": value} for index in range(count)]
    )


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """A TLS server with the pair in a folder; its address."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    ended = threading.Event()

    def accept(listener: socket.socket) -> None:
        while not ended.is_set():
            try:
                connection, _ = listener.accept()
                with context.wrap_socket(connection, server_side=True) as encrypted:
                    encrypted.recv(1)
            except OSError:
                continue

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=accept, args=(listener,))
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            ended.set()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


class TestKeep:
    def test_three_at_once_agree_on_one_ca(self, configured: AnyCluster, tmp_path: Path) -> None:
        with ExitStack() as stack:
            keepers = [
                stack.enter_context(keeping(arguments(configured), tmp_path / str(number))) for number in range(3)
            ]
            wait_for(lambda: all(one.served is not None for one in keepers), "all serve something")
            wait_for(lambda: bundles(configured) == {trust(configured).bundle}, "the caBundles are published")
            held = trust(configured)
            assert len(held.authorities) == 1
            assert held.serving is not None
            wait_for(lambda: {one.served.pair for one in keepers if one.served} == {held.serving.pair}, "all serve it")
            made = [line for one in keepers for line in one.log if line["message"] == Step.FOUND.value]
            assert len(made) == 1
            assert all(not one.log or set(one.log[0]) >= {"time", "level", "message"} for one in keepers)

    def test_what_it_left_is_taken_up_by_the_next_one(self, configured: AnyCluster, tmp_path: Path) -> None:
        settle(replica(configured, tmp_path))
        before = (tmp_path / "tls.crt").resolve()
        settle(replica(configured, tmp_path))
        assert (tmp_path / "tls.crt").resolve() == before, "nothing changed, so nothing was written"


class TestFaults:
    def test_a_deleted_secret_is_made_anew_and_the_old_ca_stays_trusted(self, configured: AnyCluster) -> None:
        one = replica(configured)
        settle(one)
        before = trust(configured)
        configured.cluster.delete(SECRETS, SECRET, configured.namespace)
        assert settle(one)[0] is Step.FOUND
        after = trust(configured)
        assert after.signer != before.signer
        assert after.authorities[1:] == before.authorities
        assert bundles(configured) == {after.bundle}

    @pytest.mark.parametrize("key", ["tls.crt", "tls.key", "ca.crt", "ca.key", "state.json"])
    def test_rubbish_in_the_secret_is_replaced(self, configured: AnyCluster, key: str) -> None:
        one = replica(configured)
        settle(one)
        rubbish = base64.b64encode(b"rubbish").decode()
        configured.cluster.patch(SECRETS, SECRET, {"data": {key: rubbish}}, configured.namespace, kind="merge")
        settle(one)
        held = trust(configured)
        assert held.signer is not None
        assert held.cleared
        assert held.serving is not None
        assert held.signer.certificate.signed(held.serving.certificate)
        assert bundles(configured) == {held.bundle}

    @pytest.mark.parametrize("resource", [MUTATING, VALIDATING], ids=lambda one: one.kind)
    @pytest.mark.parametrize("bundle", [b"", b"# no CA\n"], ids=["empty", "none"])
    def test_an_emptied_bundle_is_filled(self, configured: AnyCluster, resource: Resource, bundle: bytes) -> None:
        one = replica(configured)
        settle(one)
        set_bundle(configured, resource, bundle)
        assert one.turn()[0] is Step.PUBLISH
        assert bundles(configured) == {trust(configured).bundle}

    def test_a_new_webhook_is_noticed(self, configured: AnyCluster) -> None:
        one = replica(configured)
        settle(one)
        add = {"op": "add", "path": "/webhooks/-", "value": webhook("new")}
        configured.cluster.patch(VALIDATING, configured.prefix, [add])
        assert one.turn()[0] is Step.PUBLISH
        assert bundles(configured) == {trust(configured).bundle}

    def test_only_the_bundle_is_ours(self, configured: AnyCluster) -> None:
        assert main(["publish", *arguments(configured), "--propagation-seconds", "0"]) == 0
        fields = configured.cluster.get(VALIDATING, configured.prefix)["metadata"].get("managedFields")
        if fields is None:
            pytest.skip("the stand-in keeps no managed fields")
        (ours,) = [one for one in fields if one["manager"] == CERTIFICATES_OWNER]
        webhooks = ours["fieldsV1"].pop("f:webhooks")
        assert not ours["fieldsV1"]
        assert {json.dumps(one) for one in webhooks.values()} == {'{"f:clientConfig": {"f:caBundle": {}}}'}

    def test_a_secret_of_somebody_else_is_left_alone(
        self, configured: AnyCluster, capsys: pytest.CaptureFixture[str]
    ) -> None:
        theirs = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET}, "stringData": {"password": "x"}}
        made = configured.cluster.create(SECRETS, theirs, configured.namespace)
        step, pause_s = replica(configured).turn()
        assert step is None
        assert pause_s >= 30
        said = capsys.readouterr().out
        assert "is not ours: type Opaque" in said
        assert "with password; it is left alone" in said
        assert '"x"' not in said
        assert configured.cluster.get(SECRETS, SECRET, configured.namespace) == made

    def test_the_empty_secret_of_the_chart_is_filled(self, configured: AnyCluster) -> None:
        labels = {OWNER_LABEL: CERTIFICATES_OWNER, "app.kubernetes.io/managed-by": "Helm"}
        theirs = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET, "labels": labels}}
        made = configured.cluster.create(SECRETS, theirs, configured.namespace)
        settle(replica(configured))
        assert trust(configured).serving is not None
        metadata = configured.cluster.get(SECRETS, SECRET, configured.namespace)["metadata"]
        assert (metadata["uid"], metadata["labels"]) == (made["metadata"]["uid"], labels)

    def test_a_bundle_of_somebody_else_is_kept_beside_ours(self, configured: AnyCluster) -> None:
        settle(replica(configured))
        theirs = make_authority("cert-manager", now=datetime.now(UTC)).certificate
        set_bundle(configured, MUTATING, theirs)
        settle(replica(configured))
        assert len(trust(configured).authorities) == 2
        assert bundles(configured) == {trust(configured).bundle}


class TestCommands:
    def test_ensure_leaves_the_bundles_alone(self, configured: AnyCluster, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["ensure", *arguments(configured)]) == 0
        assert [json.loads(line)["message"] for line in capsys.readouterr().out.splitlines()] == [
            "made a new CA and a serving pair",
            "the caBundles differ and are left alone",
        ]
        assert trust(configured).serving is not None
        assert bundles(configured) == {b""}

    def test_publish_goes_on_until_all_is_done(
        self, configured: AnyCluster, capsys: pytest.CaptureFixture[str]
    ) -> None:
        publish = ["publish", *arguments(configured), "--propagation-seconds", "0"]
        assert main(publish) == 0
        before = trust(configured)
        assert len(capsys.readouterr().out.splitlines()) == 3
        assert main(publish) == 0
        assert not capsys.readouterr().out
        assert trust(configured) == before
        assert main([*publish, "--renew-ca"]) == 0
        after = trust(configured)
        assert after.authorities[1:] == before.authorities
        assert bundles(configured) == {after.bundle}

    def test_ensure_waits_for_nobody(self, configured: AnyCluster, capsys: pytest.CaptureFixture[str]) -> None:
        one = replica(configured)
        while one.turn()[0] is not Step.PUBLISH:
            pass
        capsys.readouterr()
        assert main(["ensure", *arguments(configured)]) == 0
        assert capsys.readouterr().out == ""

    def test_publish_gives_up_in_time(self, configured: AnyCluster, capsys: pytest.CaptureFixture[str]) -> None:
        publish = ["publish", *arguments(configured), "--propagation-seconds", "2", "--within-seconds", "2"]
        assert main(publish) == 1
        found = capsys.readouterr()
        assert "waits until API servers have surely seen" in found.out
        assert found.err == (
            "certs: gave up, not done within 2 s (--within-seconds): "
            "waits until API servers have surely seen the caBundle\n"
        )

    def test_publish_takes_no_time_that_cannot_be_enough(
        self, configured: AnyCluster, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["publish", *arguments(configured), "--within-seconds", "20"]) == 2
        found = capsys.readouterr()
        assert found.out == ""
        assert "--within-seconds 20: a new caBundle alone takes 60 s" in found.err


class TestCheck:
    @pytest.fixture
    def faults(self, configured: AnyCluster, capsys: pytest.CaptureFixture[str]) -> Callable[..., list[str]]:
        def faults_of(*more: str) -> list[str]:
            capsys.readouterr()
            code = main(["check", *arguments(configured), *more])
            said = capsys.readouterr().out.splitlines()
            assert code == (said != ["all is well"])
            return said

        return faults_of

    def test_is_content(self, configured: AnyCluster, tmp_path: Path, faults: Callable[..., list[str]]) -> None:
        settle(replica(configured, tmp_path))
        with serving(tmp_path) as address:
            assert faults("--connect", address) == ["all is well"]

    def test_tells_what_is_missing(self, configured: AnyCluster, faults: Callable[..., list[str]]) -> None:
        assert faults() == [f"Secret {configured.namespace}/{SECRET}: there is none"]
        assert main(["ensure", *arguments(configured)]) == 0
        assert [fault.partition(": ")[2] for fault in faults()] == [
            "mutate.admission.vnpu.test: the caBundle holds no CA",
            "create.admission.vnpu.test: the caBundle holds no CA",
            "update.admission.vnpu.test: the caBundle holds no CA",
        ]

    def test_tells_what_disagrees(
        self, configured: AnyCluster, tmp_path: Path, faults: Callable[..., list[str]]
    ) -> None:
        settle(replica(configured, tmp_path))
        configured.cluster.delete(SECRETS, SECRET, configured.namespace)
        settle(replica(configured))
        set_bundle(configured, MUTATING, make_authority("other", now=datetime.now(UTC)).certificate)
        with serving(tmp_path) as address:
            bundle, served = faults("--connect", address)
        assert "mutate.admission.vnpu.test: the caBundle lacks the CA" in bundle
        assert served.startswith(f"{address}: serves certificate ")
        assert "; the Secret holds " in served

    def test_tells_of_a_pair_that_nobody_trusts(
        self, configured: AnyCluster, tmp_path: Path, faults: Callable[..., list[str]]
    ) -> None:
        settle(replica(configured, tmp_path))
        configured.cluster.delete(SECRETS, SECRET, configured.namespace)
        for resource in (MUTATING, VALIDATING):
            set_bundle(configured, resource, b"")
        settle(replica(configured))
        with serving(tmp_path) as address:
            (fault,) = faults("--connect", address)
        assert "CERTIFICATE_VERIFY_FAILED" in fault

    def test_tells_that_nobody_answers(self, configured: AnyCluster, faults: Callable[..., list[str]]) -> None:
        settle(replica(configured))
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        (fault,) = faults("--connect", f"127.0.0.1:{port}")
        assert "refused" in fault

    def test_tells_that_less_than_a_third_is_left(self, configured: AnyCluster) -> None:
        settle(replica(configured))
        place = Place(configured.namespace, SERVICE, SECRET, (configured.prefix,))
        later = datetime.now(UTC) + SERVING_LIFETIME * 2 / 3
        (fault,) = check(configured.cluster, place, None, later)
        assert fault.endswith("two thirds of the certificate's life are over")
        later = datetime.now(UTC) + AUTHORITY_LIFETIME * 2 / 3
        assert replica(configured, clock=lambda: later).turn()[0] is Step.RENEW
        (fault,) = check(configured.cluster, place, None, later)
        assert "less than a third of the CA's life is left" in fault

    def test_tells_of_a_secret_of_somebody_else(self, configured: AnyCluster, faults: Callable[..., list[str]]) -> None:
        theirs = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET}}
        configured.cluster.create(SECRETS, theirs, configured.namespace)
        (fault,) = faults()
        assert "is not ours" in fault
