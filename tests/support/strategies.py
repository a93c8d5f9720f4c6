"""Pods for hypothesis: such as users write, and JSON of any shape around the names that admission reads."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.support.pods import CHIP, container

CHIPS = (CHIP, "huawei.com/Ascend910B4", "huawei.com/Ascend910B4-1", "huawei.com/Ascend310P", "huawei.com/Ascend910C")
NAMES = ("app", "proxy", "embedder", "trainer", "late", "warm")

counts = st.sampled_from([1, "1", 1, "1000m", 2])
memories = st.sampled_from([1, "1024", 8192, "8k", "8Ki", "10000", 16384, 65536, 21527, "20480e-3"])
cores = st.sampled_from([1, "5", 20, "2e1", 50, 100])
bad_amounts: st.SearchStrategy[Any] = st.sampled_from(
    ["16Gi", "1500m", 0, "-1", "", 70000, "1e30", None, True, [], 2**40]
)
amounts = counts | memories | cores
scalars = st.none() | st.booleans() | st.integers(-2, 2**66) | st.floats() | st.text(max_size=4) | amounts | bad_amounts


@st.composite
def limits(draw: st.DrawFn) -> dict[str, Any]:
    """What a container asks of one chip, now and then with a number that is refused."""
    chip = draw(st.sampled_from(CHIPS))
    kinds = {chip: counts, f"{chip}-memory": memories, f"{chip}-core": cores}
    names = draw(st.lists(st.sampled_from(sorted(kinds)), unique=True))
    return {name: draw(kinds[name] if draw(st.integers(0, 30)) else bad_amounts) for name in names}


@st.composite
def containers(draw: st.DrawFn, name: str = "app") -> dict[str, Any]:
    """A container with or without an NPU, with a hook of its own, environment, or parents that are null or empty."""
    resources: dict[str, Any] = {}
    asked = draw(limits())
    for section in draw(st.sampled_from([("limits",), ("requests",), ("limits", "requests"), ()])):
        resources[section] = dict(asked)
    fields: dict[str, Any] = {"resources": resources}
    fields |= draw(st.sampled_from([{}, {"env": None}, {"env": []}, {"env": [{"name": "MODE", "value": "serve"}]}]))
    hooks: list[Any] = [
        None,
        {},
        {"postStart": None},
        {"postStart": {"exec": {"command": ["/bin/sh", "-c", "true"]}}},
        {"postStart": {"sleep": {"seconds": 3}}},
        {"preStop": {"exec": {"command": ["true"]}}},
    ]
    return container(name, **fields, lifecycle=draw(st.sampled_from(hooks)))


@st.composite
def pods(draw: st.DrawFn) -> dict[str, Any]:
    """A pod that a user could write: names are unique, plain init containers have no lifecycle."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    first_app = draw(st.integers(0, len(names) - 1))
    inits = []
    for name in names[:first_app]:
        init = draw(containers(name))
        if draw(st.booleans()):
            init["restartPolicy"] = "Always"
        else:
            del init["lifecycle"]
        inits.append(init)
    annotations: Any = draw(st.sampled_from([None, {}, {"a.b/c": "~1/~0"}]))
    if draw(st.booleans()):
        annotations = {**(annotations or {}), "huawei.com/vnpu-mode": draw(st.sampled_from(["hami-core", "template"]))}
    spec: dict[str, Any] = {"containers": [draw(containers(name)) for name in names[first_app:]]}
    if inits:
        spec["initContainers"] = inits
    spec |= draw(st.sampled_from([{}, {"schedulerName": ""}, {"schedulerName": "volcano"}]))
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "n", "annotations": annotations},
        "spec": spec,
    }


_KEYS = (
    *("metadata", "annotations", "labels", "spec", "containers", "initContainers", "resources", "limits", "requests"),
    *("env", "name", "value", "lifecycle", "postStart", "exec", "command", "sleep", "seconds", "httpGet", "envFrom"),
    *("securityContext", "privileged", "nodeName", "schedulerName", "runtimeClassName", "restartPolicy", "hostIPC"),
    *(CHIP, f"{CHIP}-memory", f"{CHIP}-core", "huawei.com/Ascend910C", "huawei.com/Ascend910X", "huawei.com/npu-core"),
    *("huawei.com/vnpu-mode", "huawei.com/vnpu-share", "hami.io/vgpu-node", "hami.io/gpu-scheduler-policy"),
    *("kind", "apiVersion", "template", "jobTemplate", "tasks", "replicas", "~", "a/b", "~1"),
)
_WORDS = ("hami-core", "template", "ceiling", "NPU_MEM_QUOTA", "ASCEND_VISIBLE_DEVICES", "Always", "/limiter", "start")
leaves = scalars | st.sampled_from(_WORDS)
anything = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=5),
    max_leaves=12,
)
"""JSON of any shape whose keys are those that admission looks at."""


_odd_container = st.fixed_dictionaries(
    {"name": st.sampled_from(NAMES)},
    optional={
        "resources": st.fixed_dictionaries(
            {}, optional={"limits": limits() | anything, "requests": limits() | anything}
        )
        | anything,
        "env": st.lists(st.fixed_dictionaries({"name": leaves}, optional={"value": leaves}), max_size=3) | anything,
        "lifecycle": st.fixed_dictionaries({}, optional={"postStart": anything}) | anything,
        "securityContext": anything,
        "restartPolicy": leaves,
    },
)
odd_pods = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.fixed_dictionaries(
            {}, optional={"annotations": st.dictionaries(st.sampled_from(_KEYS), leaves, max_size=4) | anything}
        )
        | anything,
        "spec": st.fixed_dictionaries(
            {},
            optional={
                "containers": st.lists(_odd_container | anything, max_size=3) | anything,
                "initContainers": st.lists(_odd_container | anything, max_size=2) | anything,
                "schedulerName": leaves,
                "runtimeClassName": leaves,
                "nodeName": leaves,
            },
        )
        | anything,
    },
)
"""Pods that are right in some places and odd in others."""

odd_workloads = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["Deployment", "DaemonSet", "Job", "CronJob", "Pod", "Other"]) | leaves,
        "apiVersion": st.sampled_from(["apps/v1", "batch/v1", "batch.volcano.sh/v1alpha1"]) | leaves,
        "metadata": st.fixed_dictionaries({}, optional={"name": leaves}) | anything,
        "spec": st.fixed_dictionaries(
            {},
            optional={
                "template": odd_pods | anything,
                "jobTemplate": st.fixed_dictionaries({"spec": st.fixed_dictionaries({"template": odd_pods}) | anything})
                | anything,
                "tasks": st.lists(
                    st.fixed_dictionaries(
                        {"name": leaves}, optional={"template": odd_pods | anything, "replicas": leaves}
                    )
                    | anything,
                    max_size=2,
                )
                | anything,
                "schedulerName": leaves,
                "replicas": leaves,
                "parallelism": leaves,
                "completions": leaves,
            },
        )
        | anything,
    }
)
"""Controllers that are right in some places and odd in others."""
