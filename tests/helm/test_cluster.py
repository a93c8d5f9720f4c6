"""The chart on a real API server, by Helm 3 and 4, with the webhook running from the checkout."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.support import extender_process
from tests.support.certs_process import wait_for
from tests.support.release import Release, installed
from vnpu import names
from vnpu.kube import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    MUTATING,
    PODS,
    SECRETS,
    SERVICES,
    VALIDATING,
    KubeError,
    NotFound,
    Resource,
    connect,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

CARD: Final = "huawei.com/Ascend910B3"
RBAC: Final = "rbac.authorization.k8s.io"
ACCOUNTS: Final = Resource("", "v1", "serviceaccounts", "ServiceAccount")
BINDINGS: Final = Resource(RBAC, "v1", "rolebindings", "RoleBinding")
LEFT_BY_HELM: Final = (
    *(CONFIG_MAPS, DEPLOYMENTS, SECRETS, SERVICES, ACCOUNTS, BINDINGS),
    Resource(RBAC, "v1", "roles", "Role"),
    Resource(RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False),
    Resource(RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False),
    Resource("apps", "v1", "daemonsets", "DaemonSet"),
    Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"),
    Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy"),
    *(MUTATING, VALIDATING),
)


@pytest.fixture(params=[3, 4], ids=["helm-3", "helm-4"])
def release(request: pytest.FixtureRequest, real_kubeconfig: str, tmp_path: Path) -> Iterator[Release]:
    with installed(request.param, real_kubeconfig, tmp_path) as made:
        yield made


def pod(name: str, limits: dict[str, str] | None = None, annotations: dict[str, str] | None = None) -> dict[str, Any]:
    resources = {"limits": limits or {"cpu": "1"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {"containers": [{"name": "main", "image": "none", "resources": resources}]},
    }


def slice_pod(name: str, core: int = 20) -> dict[str, Any]:
    return pod(name, {CARD: "1", f"{CARD}-memory": "1024", f"{CARD}-core": str(core)})


def deployment(name: str, of: dict[str, Any]) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": of["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template},
    }


def may_make_pods(release: Release) -> str:
    """A service account of the team with the rights of its members."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "member"}}
    release.cluster.create(ACCOUNTS, account, release.team)
    binding = {
        "apiVersion": BINDINGS.api_version,
        "kind": BINDINGS.kind,
        "metadata": {"name": "member"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"kind": "ServiceAccount", "name": "member", "namespace": release.team}],
    }
    release.cluster.create(BINDINGS, binding, release.team)
    return "member"


def test_pods_are_completed_and_refused_and_the_test_of_the_chart_says_so(release: Release) -> None:
    member = may_make_pods(release)
    with release.webhook():
        release.wait_until_published()
        made = release.cluster.create(PODS, slice_pod("soft"), release.team)
        assert made["metadata"]["annotations"][names.MODE] == "hami-core"
        assert made["spec"]["schedulerName"] == f"{release.name}-scheduler"
        with pytest.raises(KubeError, match=r"mutate-pods\.admission\.vnpu\.cluster\.local.*101"):
            release.cluster.create(PODS, slice_pod("wrong", core=101), release.team)
        release.cluster.create(PODS, pod("plain"), release.team)
        code, said = release.probe(member, release.team)
        assert (code, said.split(":")[0]) == (0, "admission works")
    code, said = release.probe(member, release.team)
    assert code == 1
    assert "mutate-pods.admission.vnpu.cluster.local" in said


def test_upgrade_and_rollback_keep_the_certificates(release: Release) -> None:
    secret = (SECRETS, f"{release.name}-webhook-tls", release.namespace)
    with release.webhook():
        bundle = release.wait_until_published()
        kept = release.cluster.get(*secret)["data"]
        for verb in (
            lambda: release.put("upgrade"),
            lambda: release.put("upgrade", "webhook.timeoutSeconds=7"),
            lambda: release.helm("rollback", "1"),
            lambda: release.put("upgrade", "scheduler.kind=volcano"),  # one webhook more
            lambda: release.put("upgrade", "scheduler.kind=kube"),  # and less
        ):
            verb()
            assert release.wait_until_published() == bundle
            assert release.cluster.get(*secret)["data"] == kept
            release.cluster.create(PODS, slice_pod("soft"), release.team)
            release.cluster.delete(PODS, "soft", release.team)
        release.put("upgrade", "webhook.timeoutSeconds=7")
        assert {webhook["timeoutSeconds"] for webhook in release.webhooks().values()} == {7}


def test_with_the_webhook_away_all_else_goes_on(release: Release) -> None:
    cluster, team = release.cluster, release.team
    with release.webhook():
        release.wait_until_published()
        cluster.create(PODS, slice_pod("soft"), team)
        cluster.create(DEPLOYMENTS, deployment("npu", slice_pod("x")), team)
    with pytest.raises(KubeError, match=r"failed calling webhook \"mutate-pods\.admission\.vnpu"):
        cluster.create(PODS, slice_pod("late"), team)
    with pytest.raises(KubeError, match=r"failed calling webhook \"mutate-pods\.admission\.vnpu"):
        cluster.create(PODS, pod("forged", annotations={"hami.io/vgpu-node": "node"}), team)
    cluster.create(PODS, pod("plain"), team)
    cluster.create(DEPLOYMENTS, deployment("plain", pod("x")), team)
    cluster.create(DEPLOYMENTS, deployment("npu-late", slice_pod("x")), team)  # its template is judged by courtesy
    for name in ("plain", "npu"):
        cluster.patch(DEPLOYMENTS, name, {"spec": {"replicas": 2}}, team, kind="merge")
        cluster.patch(DEPLOYMENTS, name, {"metadata": {"labels": {"a": "b"}}}, team, kind="merge")
    change = {"metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}, "finalizers": ["example.com/f"]}}
    cluster.patch(PODS, "soft", change, team, kind="merge")
    cluster.patch(PODS, "soft", {"metadata": {"finalizers": None}}, team, kind="merge")
    cluster.patch(PODS, "soft", {"status": {"message": "x"}}, team, kind="merge", subresource="status")
    written = {"metadata": {"annotations": {names.to_allocate("Ascend910B3"): "U0,Ascend910B3,1024,20:;"}}}
    with pytest.raises(KubeError, match=r"failed calling webhook \"validate-pods-update\.admission\.vnpu"):
        cluster.patch(PODS, "soft", written, team, kind="merge")
    for account in ("scheduler", "device-plugin"):
        name = f"{release.name}-{account}"
        allocator = connect(kubeconfig=release.account(name, release.namespace), agent="vnpu-test")
        written["metadata"]["annotations"][names.BIND_PHASE] = account
        allocator.patch(PODS, "soft", written, team, kind="merge")
        allocator.close()
    cluster.delete(PODS, "soft", team)
    with release.webhook():
        release.wait_until_published()
        cluster.create(PODS, slice_pod("late"), team)


def test_admission_is_switched_off_and_on_as_the_runbook_says(release: Release) -> None:
    with release.webhook():
        bundle = release.wait_until_published()
        for resource in (MUTATING, VALIDATING):
            release.cluster.delete(resource, f"zz-{release.name}")
        unlimited = release.cluster.create(PODS, slice_pod("soft"), release.team)
        assert names.MODE not in unlimited["metadata"].get("annotations", {})
        release.helm("upgrade", str(release.chart), "--reuse-values")
        assert release.wait_until_published() == bundle
        made = release.cluster.create(PODS, slice_pod("limited"), release.team)
        assert made["metadata"]["annotations"][names.MODE] == "hami-core"


def test_nothing_is_left_behind(release: Release) -> None:
    with release.webhook():
        release.wait_until_published()
        release.helm("uninstall")
    cluster = release.cluster
    for resource in (MUTATING, VALIDATING):
        with pytest.raises(NotFound):
            cluster.get(resource, f"zz-{release.name}")
    selector = f"app.kubernetes.io/instance={release.name}"
    for resource in LEFT_BY_HELM:
        assert cluster.list(resource, label_selector=selector).items == [], resource.kind
    with pytest.raises(NotFound):
        cluster.get(SECRETS, f"{release.name}-webhook-tls", release.namespace)


def test_scheduler_and_extender_place_with_the_chart_s_configuration_and_rights(release: Release) -> None:
    program = os.environ.get("VNPU_TEST_KUBE_SCHEDULER")
    program = program or shutil.which("kube-scheduler", path=os.environ.get("KUBEBUILDER_ASSETS", ""))
    if program is None:
        pytest.skip("neither VNPU_TEST_KUBE_SCHEDULER nor KUBEBUILDER_ASSETS says where kube-scheduler is")
    kubeconfig = release.account(f"{release.name}-scheduler", release.namespace)
    settings = release.cluster.get(CONFIG_MAPS, f"{release.name}-settings", release.namespace)["data"]["settings.yaml"]
    (release.folder / "scheduler-settings.yaml").write_text(settings)
    with (
        release.node() as node,
        release.webhook(),
        extender_process.running(
            "--config", str(release.folder / "scheduler-settings.yaml"), kubeconfig=kubeconfig
        ) as extender,
        release.scheduler(program, extender.port) as scheduler,
    ):
        release.wait_until_published()
        release.cluster.create(PODS, slice_pod("soft"), release.team)

        def placed() -> dict[str, Any] | None:
            assert scheduler.poll() is None, (release.folder / "scheduler.log").read_text()
            found = release.cluster.get(PODS, "soft", release.team)
            return found if found["spec"].get("nodeName") else None

        bound = wait_for(placed, f"the pod is not bound: {(release.folder / 'scheduler.log').read_text()[-2000:]}")
    assert bound["spec"]["nodeName"] == node
    assert bound["metadata"]["annotations"][names.ASSIGNED_NODE] == node
    assert "forbidden" not in (release.folder / "scheduler.log").read_text()
    assert not [line for line in extender.log if "forbidden" in json.dumps(line)]
