"""The API server asks about objects with a sign of an NPU, about no others, and no expression ever fails.

Judged over the reviews that a real API server (1.36.2) sent, and over a table of pods that each differ in one thing.
"""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support import helm, webhook_calls

Object = dict[str, Any]

FIXTURES: Final = Path(__file__).parents[1] / "fixtures" / "admission"
RECORDED: Final = {path.stem: json.loads(path.read_text())["request"] for path in sorted(FIXTURES.glob("*.json"))}
RULE_BY_RESOURCE: Final = {
    "pods": ("mutate-pods", "validate-pods"),
    "deployments": (None, "validate-templates"),
    "statefulsets": (None, "validate-templates"),
    "daemonsets": (None, "validate-templates"),
    "replicasets": (None, "validate-templates"),
    "jobs": (None, "validate-templates"),
    "cronjobs": (None, "validate-cronjobs"),
}
VCJOB: Final = ("mutate-vcjobs", "validate-vcjobs")
NOBODY: Final = (None, None)

CARD: Final = "huawei.com/Ascend910B3"
FORGED: Final = (
    "huawei.com/vnpu-mode",
    "huawei.com/Ascend910B3",
    "hami.io/Ascend910B3-devices-to-allocate",
    "hami.io/Ascend910B3-devices-allocated",
    "hami.io/vgpu-node",
    "hami.io/vgpu-time",
    "hami.io/bind-phase",
    "hami.io/bind-time",
    "predicate-time",
)
HARMLESS: Final = (
    "hami.io/use-Ascend910B3-uuid",
    "hami.io/Ascend910B3-foo",
    "huawei.com/vnpu-share",
    "huawei.com/vnpu-mode-x",
    "predicate-time2",
    "hami.io/node-scheduler-policy",
)


@cache
def configurations() -> tuple[Object, Object]:
    """The two, as Volcano's users get them: all entries are there."""
    render = helm.template(4, helm.VALUE_SETS["volcano"])
    return (
        render.object("MutatingWebhookConfiguration", "zz-vnpu"),
        render.object("ValidatingWebhookConfiguration", "zz-vnpu"),
    )


def asked(request: Object, both: tuple[Object, Object] | None = None, **namespace: str) -> tuple[str | None, ...]:
    """Which mutating and which validating webhook is asked; never more than one of each."""
    result = []
    for configuration in both or configurations():
        names = webhook_calls.called(configuration, request, namespace)
        assert len(names) <= 1, names
        result.append(names[0] if names else None)
    return tuple(result)


# ---- What was recorded


def has_npu(template: Object) -> bool:
    """Whether a pod or template of the recordings asks for an NPU or carries a key that marks one."""
    spec = template["spec"]
    resources = [
        key
        for container in spec["containers"] + spec.get("initContainers", [])
        for kind in ("limits", "requests")
        for key in container.get("resources", {}).get(kind, {})
    ]
    annotations = template["metadata"].get("annotations") or {}
    return any(key.startswith("huawei.com/Ascend") for key in resources) or not set(FORGED).isdisjoint(annotations)


def due(request: Object) -> tuple[str | None, ...]:
    """What should be asked about a recorded request, decided without CEL."""
    resource, old = request["resource"], request["oldObject"]
    if request.get("subResource") or request["operation"] not in {"CREATE", "UPDATE"}:
        return NOBODY
    spec = request["object"]["spec"]
    if resource["resource"] == "pods":
        if request["operation"] == "UPDATE":
            before, after = (entry["metadata"].get("annotations") or {} for entry in (old, request["object"]))
            changed = any(before.get(key) != after.get(key) for key in FORGED)
            return (None, "validate-pods-update") if changed else NOBODY
        return RULE_BY_RESOURCE["pods"] if has_npu(request["object"]) else NOBODY
    if resource["group"] == "batch.volcano.sh":
        return VCJOB if any(has_npu(task["template"]) for task in spec["tasks"]) else NOBODY
    inner = spec["jobTemplate"]["spec"] if resource["resource"] == "cronjobs" else spec
    same = old is not None and old["spec"].get("template") == spec.get("template")
    return RULE_BY_RESOURCE[resource["resource"]] if has_npu(inner["template"]) and not same else NOBODY


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_request_reaches_exactly_the_webhooks_that_are_due(name: str) -> None:
    assert asked(RECORDED[name]) == due(RECORDED[name])


def test_the_recordings_hold_both_kinds() -> None:
    answers = [due(request) for request in RECORDED.values()]
    assert answers.count(NOBODY) >= 8
    assert len(set(answers)) >= 5


@pytest.mark.parametrize("namespace", ["kube-system", "kube-node-lease", helm.NAMESPACE])
def test_these_namespaces_are_never_looked_at(namespace: str) -> None:
    for request in RECORDED.values():
        assert asked({**request, "namespace": namespace}) == NOBODY


def test_a_namespace_that_is_labelled_is_not_looked_at_and_others_are() -> None:
    request = RECORDED["mutate-create-pods-soft-910b3"]
    assert asked(request, **{"hami.io/webhook": "ignore"}) == NOBODY
    assert asked(request, **{"hami.io/webhook": "on"}) == RULE_BY_RESOURCE["pods"]
    assert asked({**request, "namespace": "kube-public"}) == RULE_BY_RESOURCE["pods"]


def test_a_pod_cannot_opt_itself_out() -> None:
    request = copy.deepcopy(RECORDED["mutate-create-pods-soft-910b3"])
    request["object"]["metadata"]["labels"] = {"hami.io/webhook": "ignore"}
    assert asked(request) == RULE_BY_RESOURCE["pods"]


# ---- Pods that differ in one thing


def container(**resources: Any) -> Object:
    return {"name": "main", "image": "image", "resources": resources}


def pod(*containers: Object, init: list[Object] | None = None, annotations: Any = None, **spec: Any) -> Object:
    metadata: Object = {"name": "pod"}
    if annotations is not None:
        metadata["annotations"] = annotations
    if init is not None:
        spec["initContainers"] = init
    return {"metadata": metadata, "spec": {"containers": list(containers), **spec}}


PLAIN: Final = container(limits={"cpu": "1"}, requests={"cpu": "1"})
NPU: Final = container(limits={CARD: "1"}, requests={CARD: "1"})
WITH_SIGN: Final[dict[str, Object]] = {
    "in limits alone": pod(container(limits={CARD: "1"})),
    "in requests alone": pod(container(requests={CARD: "1"})),
    "memory alone": pod(container(limits={f"{CARD}-memory": "1024"})),
    "core alone": pod(container(limits={f"{CARD}-core": "10"})),
    "in the second container": pod(PLAIN, NPU),
    "in an init container": pod(PLAIN, init=[NPU]),
    "in the second init container": pod(PLAIN, init=[PLAIN, NPU]),
    "in a native sidecar": pod(PLAIN, init=[{**NPU, "restartPolicy": "Always"}]),
    "in the sixtieth container": pod(*[PLAIN] * 59, NPU, annotations={f"key-{index}": "x" for index in range(200)}),
    "beside null": pod({"name": "x", "resources": None}, container(limits=None), NPU, annotations=None),
    "in an init container, containers null": {"metadata": {}, "spec": {"containers": None, "initContainers": [NPU]}},
    "asked without a name": {"metadata": {"generateName": "pod-"}, "spec": {"containers": [NPU]}},
    **{f"annotation {key}": pod(PLAIN, annotations={"other": "x", key: "x"}) for key in FORGED},
}
WITHOUT: Final[dict[str, Object]] = {
    "no resources": pod({"name": "main"}),
    "resources null": pod({"name": "main", "resources": None}),
    "resources empty": pod(container()),
    "limits null": pod(container(limits=None, requests=None)),
    "limits empty": pod(container(limits={})),
    "annotations null": {"metadata": {"annotations": None}, "spec": {"containers": [PLAIN]}},
    "annotations empty": pod(PLAIN, annotations={}),
    "no metadata": {"spec": {"containers": [PLAIN]}},
    "containers null": {"metadata": {}, "spec": {"containers": None}},
    "no containers": {"metadata": {}, "spec": {}},
    "no spec": {"metadata": {}},
    "init containers null": pod(PLAIN, init=None) | {"spec": {"containers": [PLAIN], "initContainers": None}},
    "a GPU": pod(container(limits={"nvidia.com/gpu": "1"})),
    "MindCluster": pod(container(limits={"huawei.com/npu-core": "10"})),
    "another domain": pod(container(limits={"example.com/Ascend910B3": "1"})),
    "label": {"metadata": {"labels": {"huawei.com/vnpu-mode": "x"}}, "spec": {"containers": [PLAIN]}},
    **{f"annotation {key}": pod(PLAIN, annotations={key: "x"}) for key in HARMLESS},
}


def request_for(new: Object | None, old: Object | None = None, *, resource: str = "pods", group: str = "") -> Object:
    version = "v1alpha1" if group == "batch.volcano.sh" else "v1"
    return {
        "resource": {"group": group, "version": version, "resource": resource},
        "operation": "CREATE" if old is None else "UPDATE",
        "namespace": "team",
        "userInfo": {"username": "user"},
        "object": new,
        "oldObject": old,
    }


def workload(template: Object, **metadata: Any) -> Object:
    return {"metadata": metadata, "spec": {"replicas": 1, "template": template}}


SHAPES: Final = {
    "Deployment": ("apps", "deployments", workload),
    "StatefulSet": ("apps", "statefulsets", workload),
    "DaemonSet": ("apps", "daemonsets", workload),
    "ReplicaSet": ("apps", "replicasets", workload),
    "Job": ("batch", "jobs", workload),
    "CronJob": (
        *("batch", "cronjobs"),
        lambda template, **metadata: {"metadata": metadata, "spec": {"jobTemplate": {"spec": {"template": template}}}},
    ),
    "Volcano Job": (
        *("batch.volcano.sh", "jobs"),
        lambda template, **metadata: {
            "metadata": metadata,
            "spec": {"tasks": [{"template": pod(PLAIN)}, {"name": "bare"}, {"template": template}]},
        },
    ),
}
EMPTY_VCJOBS: Final[dict[str, Object]] = {
    "no spec": {"metadata": {}},
    "no tasks": {"metadata": {}, "spec": {}},
    "tasks empty": {"metadata": {}, "spec": {"tasks": []}},
    "tasks null": {"metadata": {}, "spec": {"tasks": None}},
    "tasks a text": {"metadata": {}, "spec": {"tasks": "x"}},
    "template missing": {"metadata": {}, "spec": {"tasks": [{}]}},
    "template empty": {"metadata": {}, "spec": {"tasks": [{"template": {}}]}},
    "containers null": {"metadata": {}, "spec": {"tasks": [{"template": {"spec": {"containers": None}}}]}},
}
ALLOCATOR: Final = "system:serviceaccount:vnpu-system:vnpu-scheduler"


def cases() -> list[tuple[str, Object, tuple[str | None, ...]]]:
    """Every case: its name, the request, and who is due to be asked."""
    table: list[tuple[str, Object, tuple[str | None, ...]]] = []
    for name, entry in WITH_SIGN.items():
        table.append((f"pod, {name}", request_for(entry), RULE_BY_RESOURCE["pods"]))
    for name, entry in WITHOUT.items():
        table.append((f"pod, {name}", request_for(entry), NOBODY))
    for shape, (group, resource, wrap) in SHAPES.items():
        entries = VCJOB if group == "batch.volcano.sh" else RULE_BY_RESOURCE[resource]
        later = (None, entries[1])

        def case(
            name: str,
            new: Object,
            old: Object | None,
            expected: tuple[str | None, ...],
            *,
            where: tuple[str, str, str] = (shape, group, resource),
        ) -> None:
            request = request_for(new, old, resource=where[2], group=where[1])
            table.append((f"{where[0]}, {name}", request, expected))

        npu, plain = pod(PLAIN, NPU), pod(PLAIN)
        case("plain", wrap(plain), None, NOBODY)
        case("with an NPU", wrap(npu), None, entries)
        case("with an NPU in an init container", wrap(pod(PLAIN, init=[NPU])), None, entries)
        case("with the mode", wrap(pod(PLAIN, annotations={"huawei.com/vnpu-mode": "x"})), None, entries)
        case("labelled", wrap(npu, labels={"a": "b"}), wrap(npu), NOBODY)
        case("finalized", wrap(npu, finalizers=["a/b"]), wrap(npu), NOBODY)
        case("an NPU comes", wrap(npu), wrap(plain), later)
        case("an NPU goes", wrap(plain), wrap(npu), NOBODY)
        case("another image", wrap(pod({**NPU, "image": "new"})), wrap(npu), later)
        if wrap is workload:
            scaled = copy.deepcopy(wrap(npu))
            scaled["spec"]["replicas"] = 7
            case("scaled", scaled, wrap(npu), NOBODY)
    for name, entry in EMPTY_VCJOBS.items():
        table.append((f"Volcano Job, {name}", request_for(entry, resource="jobs", group="batch.volcano.sh"), NOBODY))
    return table + updates()


def updates() -> list[tuple[str, Object, tuple[str | None, ...]]]:
    """Changes of pods: every guarded key comes, changes and goes, by a user and by a scheduler."""
    table: list[tuple[str, Object, tuple[str | None, ...]]] = []
    asked_later = (None, "validate-pods-update")
    bare, other = pod(NPU), pod(NPU, annotations={"other": "x"})
    for key in (*FORGED, *HARMLESS):
        with_key = pod(NPU, annotations={"other": "x", key: "1"})
        changes = {
            "comes": (other, with_key),
            "changes": (with_key, pod(NPU, annotations={"other": "x", key: "2"})),
            "goes": (with_key, other),
            "goes with all": (with_key, bare),
            "stays": (with_key, pod(NPU, annotations={"other": "y", key: "1"})),
        }
        for name, (old, new) in changes.items():
            expected = asked_later if key in FORGED and name != "stays" else NOBODY
            request = request_for(new, old)
            table.append((f"update, {key} {name}", request, expected))
            table.append((f"status, {key} {name}", {**request, "subResource": "status"}, expected))
            by_scheduler = {**request, "userInfo": {"username": ALLOCATOR}}
            table.append((f"update by a scheduler, {key} {name}", by_scheduler, NOBODY))
    return table


CASES: Final = {name: (request, expected) for name, request, expected in cases()}


@pytest.mark.parametrize("name", CASES)
def test_a_request_reaches_exactly_the_webhooks_that_are_due(name: str) -> None:
    request, expected = CASES[name]
    assert asked(request) == expected


# ---- The tests notice what they should


MUTANTS: Final = {
    "init containers forgotten": ("['containers', 'initContainers']", "['containers']"),
    "containers forgotten": ("['containers', 'initContainers']", "['initContainers']"),
    "requests forgotten": ("['limits', 'requests']", "['limits']"),
    "limits forgotten": ("['limits', 'requests']", "['requests']"),
    "prefix too wide": ("startsWith('huawei.com/Ascend')", "startsWith('huawei.com/')"),
    "prefix too narrow": ("startsWith('huawei.com/Ascend')", "startsWith('huawei.com/Ascend910B3-')"),
    "mode without its end": ("vnpu-mode$", "vnpu-mode"),
    "mode forgotten": ("vnpu-mode$|", ""),
    "runtime info forgotten": ("(vnpu-mode$|Ascend)", "(vnpu-mode$)"),
    "device texts too wide": ("Ascend.*-devices-", "Ascend"),
    "device texts forgotten": ("Ascend.*-devices-|", ""),
    "node forgotten": ("vgpu-|", ""),
    "bind keys forgotten": ("|bind-", ""),
    "predicate time without its end": ("predicate-time$", "predicate-time"),
    "predicate time forgotten": ("|predicate-time$", ""),
    "null containers fail": ("type(t.spec[f]) == list && ", ""),
    "null resources fail": ("has(c.resources) && type(c.resources) == map", "true"),
    "annotations not looked for": ("has(t.metadata.annotations) && type(t.metadata.annotations) == map && ", ""),
    "removal not seen": ("a.exists(x, a.exists(y, x.exists(k,", "[a[0]].exists(x, a.exists(y, x.exists(k,"),
    "addition not seen": ("a.exists(x, a.exists(y, x.exists(k,", "[a[1]].exists(x, a.exists(y, x.exists(k,"),
    "change of value not seen": ("!(k in y && y[k] == x[k])", "!(k in y)"),
    "any change": ("!(k in y && y[k] == x[k]) && ", "!(k in y && y[k] == x[k]) || "),
    "schedulers asked": ("!(request.userInfo.username in", "(request.userInfo.username in"),
    "unchanged templates asked": ("object.spec.template != oldObject.spec.template", "true"),
    "unchanged CronJobs asked": ("object.spec.jobTemplate != oldObject.spec.jobTemplate", "true"),
    "unchanged Volcano Jobs asked": ("object.spec == oldObject.spec", "false"),
    "creation not asked": ("oldObject == null || ", "oldObject != null && "),
    "first task only": ("object.spec.tasks.exists(x,", "object.spec.tasks.all(x,"),
    "tasks not looked for": ("has(object.spec.tasks) && ", ""),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_expression_is_noticed(name: str) -> None:
    right, wrong = MUTANTS[name]
    changed = []
    for configuration in configurations():
        mutant = copy.deepcopy(configuration)
        for webhook in mutant["webhooks"]:
            for condition in webhook["matchConditions"]:
                condition["expression"] = condition["expression"].replace(right, wrong)
        changed.append(mutant)
    assert tuple(changed) != configurations(), "the text to replace is not there"
    both = (changed[0], changed[1])
    for request, expected in [*CASES.values(), *((entry, due(entry)) for entry in RECORDED.values())]:
        try:
            if asked(request, both) != expected:
                return
        except Exception:  # noqa: BLE001 - failing is one way of being wrong
            return
    pytest.fail("every request was judged as before")


# ---- The text itself


def test_every_expression_is_within_what_kubernetes_1_28_takes() -> None:
    for configuration in configurations():
        for _webhook, _name, expression in webhook_calls.conditions(configuration):
            for later in (".?", "[?", "cel.bind", "variables.", "quantity(", "sets.", ".format(", ".join("):
                assert later not in expression


def test_names_of_the_conditions_are_unique_and_few() -> None:
    for configuration in configurations():
        for webhook in configuration["webhooks"]:
            names = [condition["name"] for condition in webhook["matchConditions"]]
            assert len(set(names)) == len(names) <= 64


def test_the_allocators_of_condition_and_settings_are_one_list() -> None:
    render = helm.template(4, helm.VALUE_SETS["everything"])
    validating = render.object("ValidatingWebhookConfiguration", "zz-npu-slices")
    expression = {name: text for _, name, text in webhook_calls.conditions(validating)}["not-an-allocator"]
    (account,) = helm.values(helm.VALUE_SETS["everything"])["allocators"]
    request = request_for(pod(NPU), pod(NPU))
    assert webhook_calls.evaluate(expression, request)
    assert not webhook_calls.evaluate(expression, {**request, "userInfo": {"username": account}})
