"""What the chart renders: the same in Helm 3 and 4, taken by Kubernetes, and held together by names and labels."""

from __future__ import annotations

import copy
import json
from functools import cache
from typing import Any, Final

import kubernetes_validate
import pytest

from tests.support import helm
from tests.support.pod_security import restricted_faults
from tests.support.webhook_calls import selected

Object = dict[str, Any]

OF_OPERATORS: Final = ("monitoring.coreos.com/", "cert-manager.io/")
"""Kinds that Kubernetes does not define."""
CLUSTER_WIDE: Final = (
    *("ClusterRole", "ClusterRoleBinding", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"),
    *("RuntimeClass",),
)
every_set: Final = pytest.mark.parametrize("values", helm.VALUE_SETS)


def rendered(values: str, version: int = 4, **options: Any) -> helm.Render:
    return helm.template(version, helm.VALUE_SETS[values], **options)


def key(entry: Object) -> tuple[str, str]:
    return entry["kind"], entry["metadata"]["name"]


def pod_spec(entry: Object) -> Object | None:
    """The pod spec of a workload or pod."""
    if entry["kind"] == "Pod":
        return entry["spec"]
    return (
        entry.get("spec", {}).get("template", {}).get("spec") if entry["kind"] in {"Deployment", "DaemonSet"} else None
    )


def workloads(values: str) -> list[tuple[Object, Object]]:
    return [(entry, spec) for entry in rendered(values).objects if (spec := pod_spec(entry)) is not None]


@every_set
def test_helm_3_and_4_render_the_same_objects(values: str) -> None:
    old, new = rendered(values, 3).objects, rendered(values, 4).objects
    # The order of kinds that Helm does not know is its own.
    assert sorted(map(json.dumps, old)) == sorted(map(json.dumps, new))


@every_set
def test_a_second_render_is_equal_to_the_byte(values: str) -> None:
    arguments = ("template", helm.RELEASE, str(helm.CHART), f"--values={helm.VALUE_SETS[values]}")
    first, second = (helm.run(4, *arguments, f"--namespace={helm.NAMESPACE}").stdout for _ in range(2))
    assert first == second


@pytest.mark.parametrize("kubernetes", [helm.OLDEST, helm.NEWEST])
def test_every_object_of_every_set_is_valid(kubernetes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # It reads all schemas again for each object, which costs a tenth of a second.
    monkeypatch.setattr(kubernetes_validate.utils, "schema_contents", cache(kubernetes_validate.utils.schema_contents))
    distinct = {
        json.dumps(entry, sort_keys=True): entry
        for values in helm.VALUE_SETS
        for entry in rendered(values, kubernetes=kubernetes).objects
        if not entry["apiVersion"].startswith(OF_OPERATORS)
    }
    assert len(distinct) > 80
    for entry in distinct.values():
        kubernetes_validate.validate(entry, kubernetes.rpartition(".")[0], strict=True)


def test_an_object_with_an_unknown_field_is_not_valid() -> None:
    entry = copy.deepcopy(rendered("default").kind("Deployment")[0])
    entry["spec"]["template"]["spec"]["hostpid"] = True
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(entry, helm.NEWEST.rpartition(".")[0], strict=True)


def test_an_older_kubernetes_is_refused() -> None:
    for version in (3, 4):
        with pytest.raises(helm.RefusedError, match="chart requires kubeVersion"):
            helm.template(version, kubernetes="1.27.9")


@every_set
def test_no_object_stands_twice_and_each_is_in_its_namespace(values: str) -> None:
    objects = rendered(values).objects
    keys = [(*key(entry), entry["metadata"].get("namespace")) for entry in objects]
    assert len(set(keys)) == len(keys)
    elsewhere = {
        ("RoleBinding", "kube-system"),
        ("Role", "kube-node-lease"),
        ("RoleBinding", "kube-node-lease"),
        ("Role", "default"),
        ("RoleBinding", "default"),
    }
    elsewhere |= {("Role", "npu-test"), ("RoleBinding", "npu-test")}
    for entry in objects:
        namespace = entry["metadata"].get("namespace")
        if entry["kind"] in CLUSTER_WIDE:
            assert namespace is None
        else:
            assert namespace == helm.NAMESPACE or (entry["kind"], namespace) in elsewhere


@every_set
def test_every_pod_but_the_nodes_keeps_to_restricted(values: str) -> None:
    checked = []
    for entry, spec in workloads(values):
        if entry["kind"] != "DaemonSet":
            assert restricted_faults(spec) == []
            checked.append(entry["kind"])
            for container in spec["containers"]:
                assert container["securityContext"]["readOnlyRootFilesystem"] is True
                assert spec["securityContext"]["runAsUser"] == 65532
    assert set(checked) == {"Deployment", "Pod"}


def test_a_pod_that_breaks_the_standard_is_noticed() -> None:
    spec = next(spec for entry, spec in workloads("default") if entry["kind"] == "Deployment")
    breaks = {
        "hostNetwork": lambda pod, _: pod.update(hostNetwork=True),
        "hostPath": lambda pod, _: pod["volumes"].append({"name": "x", "hostPath": {"path": "/"}}),
        "runAsNonRoot": lambda pod, _: pod["securityContext"].pop("runAsNonRoot"),
        "seccompProfile": lambda pod, _: pod["securityContext"].pop("seccompProfile"),
        "runAsUser 0": lambda _, one: one["securityContext"].update(runAsUser=0),
        "privileged": lambda _, one: one["securityContext"].update(privileged=True),
        "allowPrivilegeEscalation": lambda _, one: one["securityContext"].pop("allowPrivilegeEscalation"),
        "capabilities": lambda _, one: one["securityContext"].pop("capabilities"),
    }
    for word, change in breaks.items():
        broken = copy.deepcopy(spec)
        change(broken, broken["containers"][0])
        assert any(word in fault for fault in restricted_faults(broken)), word


@every_set
def test_names_and_labels_hold_the_objects_together(values: str) -> None:
    objects = rendered(values).objects
    by_key = {key(entry): entry for entry in objects}
    pods = [
        (entry["spec"]["template"]["metadata"]["labels"], spec)
        for entry, spec in workloads(values)
        if entry["kind"] != "Pod"
    ]
    for entry, spec in workloads(values):
        assert ("ServiceAccount", spec["serviceAccountName"]) in by_key
        if entry["kind"] != "Pod":
            chosen = [labels for labels, _ in pods if selected(entry["spec"]["selector"], labels)]
            assert chosen == [entry["spec"]["template"]["metadata"]["labels"]]
        mounted = {volume["name"]: volume for volume in spec.get("volumes", [])}
        used = {mount["name"] for one in containers(spec) for mount in one.get("volumeMounts", [])}
        assert used == set(mounted)
        for volume in mounted.values():
            if "configMap" in volume:
                assert ("ConfigMap", volume["configMap"]["name"]) in by_key
    for kind, path in (("Service", "selector"), ("PodDisruptionBudget", "selector"), ("NetworkPolicy", "podSelector")):
        for entry in (found for found in objects if found["kind"] == kind):
            selector = entry["spec"][path]
            selector = {"matchLabels": selector} if kind == "Service" else selector
            assert len([labels for labels, _ in pods if selected(selector, labels)]) == 1
    for entry in objects:
        if entry["kind"] in {"RoleBinding", "ClusterRoleBinding"}:
            role = (entry["roleRef"]["kind"], entry["roleRef"]["name"])
            assert role in by_key or role[1].startswith(("system:", "extension-apiserver-"))
            for subject in entry["subjects"]:
                assert ("ServiceAccount", subject["name"]) in by_key
                assert subject["namespace"] == helm.NAMESPACE


def containers(spec: Object) -> list[Object]:
    return [*spec.get("initContainers", []), *spec["containers"]]


@every_set
def test_the_webhooks_call_the_service_that_reaches_the_pods(values: str) -> None:
    render = rendered(values)
    (service,) = render.kind("Service")
    (port,) = service["spec"]["ports"]
    deployment = render.object("Deployment", service["metadata"]["name"])
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert port["targetPort"] in {entry["name"] for entry in container["ports"]}
    for configuration in (
        *render.kind("MutatingWebhookConfiguration"),
        *render.kind("ValidatingWebhookConfiguration"),
    ):
        for webhook in configuration["webhooks"]:
            called = webhook["clientConfig"]["service"]
            assert called["name"] == service["metadata"]["name"]
            assert called["namespace"] == service["metadata"]["namespace"]
            assert called["port"] == port["port"]
            assert "caBundle" not in webhook["clientConfig"]


@every_set
def test_what_every_webhook_must_say(values: str) -> None:
    render = rendered(values)
    (mutating,), (validating,) = (
        render.kind("MutatingWebhookConfiguration"),
        render.kind("ValidatingWebhookConfiguration"),
    )
    assert mutating["metadata"]["name"] == validating["metadata"]["name"]
    for webhook in (*mutating["webhooks"], *validating["webhooks"]):
        assert ".admission.vnpu." in webhook["name"]
        assert webhook["sideEffects"] == "None"
        assert 1 <= webhook["timeoutSeconds"] <= 5
        assert webhook["admissionReviewVersions"] == ["v1"]
        assert webhook["matchConditions"]
        (names, opted_out) = webhook["namespaceSelector"]["matchExpressions"]
        assert {"kube-system", "kube-node-lease", helm.NAMESPACE} <= set(names["values"])
        assert opted_out == {"key": "hami.io/webhook", "operator": "NotIn", "values": ["ignore"]}
        of_pods = webhook["name"].partition(".")[0] in {"mutate-pods", "validate-pods", "validate-pods-update"}
        policy = helm.values(helm.VALUE_SETS[values]).get("webhook", {}).get("failurePolicy", "Fail")
        assert webhook["failurePolicy"] == (policy if of_pods else "Ignore")
    assert {webhook["reinvocationPolicy"] for webhook in mutating["webhooks"]} == {"IfNeeded"}


def test_ours_is_the_last_of_the_mutating_webhooks_by_name() -> None:
    others = (
        *("volcano-admission-service-pods-mutate", "volcano-admission-service-jobs-mutate", "hami-scheduler-webhook"),
        *("istio-sidecar-injector", "linkerd-proxy-injector-webhook-config", "kyverno-resource-mutating-webhook-cfg"),
        *("vault-agent-injector-cfg", "vpa-webhook-config", "webhook.serving.knative.dev", "sidecar-injector-zone"),
    )
    assert max(*others, rendered("default").kind("MutatingWebhookConfiguration")[0]["metadata"]["name"]) == "zz-vnpu"


@every_set
def test_volcano_jobs_are_completed_only_where_volcano_places(values: str) -> None:
    render = rendered(values)
    names = {webhook["name"].split(".")[0] for webhook in render.kind("MutatingWebhookConfiguration")[0]["webhooks"]}
    kind = helm.values(helm.VALUE_SETS[values]).get("scheduler", {}).get("kind", "kube")
    assert names == ({"mutate-pods", "mutate-vcjobs"} if kind == "volcano" else {"mutate-pods"})
    schedulers = [entry for entry in render.kind("Deployment") if entry["metadata"]["name"].endswith("-scheduler")]
    assert len(schedulers) == (kind == "kube")


def test_the_webhook_can_be_updated_moved_and_stopped_without_a_lost_call() -> None:
    render = rendered("default")
    deployment = render.object("Deployment", "vnpu-webhook")
    spec = deployment["spec"]["template"]["spec"]
    assert deployment["spec"]["replicas"] == 2
    assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    assert render.object("PodDisruptionBudget", "vnpu-webhook")["spec"]["maxUnavailable"] == 1
    drain = helm.values()["webhook"]["drainSeconds"]
    assert spec["terminationGracePeriodSeconds"] >= drain + 20 + 5
    assert {entry["topologyKey"] for entry in spec["topologySpreadConstraints"]} == {
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
    }
    assert "podAntiAffinity" in spec["affinity"]
    (container,) = spec["containers"]
    for probe in ("startupProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["scheme"] == "HTTPS"
    assert container["livenessProbe"]["tcpSocket"] == {"port": "https"}, "who turns calls away is alive"
    ready = container["readinessProbe"]
    assert ready["periodSeconds"] * ready["failureThreshold"] >= 30, "nor does a crowd send its replicas away"
    (tmp,) = (volume for volume in spec["volumes"] if volume["name"] == "tmp")
    assert tmp["emptyDir"] == {"medium": "Memory", "sizeLimit": "16Mi"}
    assert "cpu" not in container["resources"]["limits"]


def test_a_certificate_that_others_make_needs_no_right_in_the_cluster() -> None:
    for values in ("files", "cert-manager", "cert-manager-alone"):
        render = rendered(values)
        spec = render.object("Deployment", "vnpu-webhook")["spec"]["template"]["spec"]
        assert spec["automountServiceAccountToken"] is False
        assert "vnpu-webhook" not in {entry["metadata"]["name"] for entry in render.kind("ClusterRole")}
        assert "egress" not in render.object("NetworkPolicy", "vnpu-webhook")["spec"]
        assert render.kind("Secret") == []


def test_cert_manager_is_told_where_to_put_the_bundle_and_for_which_names() -> None:
    for values, issuers in (("cert-manager", 0), ("cert-manager-alone", 1)):
        render = rendered(values)
        (certificate,) = render.kind("Certificate")
        assert len(render.kind("Issuer")) == issuers
        for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
            annotations = render.object(kind, "zz-vnpu")["metadata"]["annotations"]
            assert (
                annotations["cert-manager.io/inject-ca-from"] == f"{helm.NAMESPACE}/{certificate['metadata']['name']}"
            )
        assert f"vnpu-webhook.{helm.NAMESPACE}.svc" in certificate["spec"]["dnsNames"]
        spec = render.object("Deployment", "vnpu-webhook")["spec"]["template"]["spec"]
        (tls,) = (volume for volume in spec["volumes"] if volume["name"] == "tls")
        assert tls["secret"]["secretName"] == certificate["spec"]["secretName"]


@pytest.mark.parametrize(
    ("values", "version", "image"),
    [
        ("default", "1.30.4+k3s1", "registry.k8s.io/kube-scheduler:v1.30.4"),
        ("default", "1.31.2-eks-1a2b3c", "registry.k8s.io/kube-scheduler:v1.31.2"),
        ("everything", "1.30.4", "registry.example.com:5000/kube-scheduler:v1.29.4"),
    ],
)
def test_the_scheduler_is_the_one_of_the_cluster(values: str, version: str, image: str) -> None:
    (deployment,) = (
        entry
        for entry in rendered(values, kubernetes=version).kind("Deployment")
        if "-scheduler" in entry["metadata"]["name"]
    )
    images = [container["image"] for container in deployment["spec"]["template"]["spec"]["containers"]]
    assert images[0] == image


def test_labels_of_the_user_are_on_everything() -> None:
    for entry in rendered("everything").objects:
        assert entry["metadata"]["labels"]["example.com/team"] == "platform"


@pytest.mark.parametrize("release", ["a", "npu", "my-vnpu", "a.release-whose-name-is-as-long-as-helm-allows-them"])
def test_names_fit_whatever_the_release_is_called(release: str) -> None:
    for entry in helm.template(4, release=release).objects:
        assert len(entry["metadata"]["name"]) <= 63
        if entry["kind"] != "Pod" and pod_spec(entry) is not None:
            assert all(len(value) <= 63 for value in entry["metadata"]["labels"].values())


def test_the_node_parts_may_be_a_version_ahead() -> None:
    settings = ['image.tag="0.1.0"', 'node.tag="0.2.0"']
    for entry, spec in ((entry, pod_spec(entry)) for entry in rendered("default", settings=settings).objects):
        tags = {one["image"].rpartition(":")[2] for one in containers(spec or {"containers": []})}
        tags -= {f"v{helm.OLDEST}"}  # kube-scheduler's
        assert tags <= ({"0.2.0"} if entry["kind"] == "DaemonSet" else {"0.1.0"})
