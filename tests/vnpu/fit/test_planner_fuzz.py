"""Whatever the planner is given, it answers with a plan or with one line that says what is wrong."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.planner import Run, run

if TYPE_CHECKING:
    from collections.abc import Callable

COMMAND = ("--card", "Ascend910B3", "-", "-o", "json")
B3 = "huawei.com/Ascend910B3"
SCALARS: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | st.sampled_from(["8192", "16Gi", "10k", "-1", "0", 1, 2, 8192, "Pod", "Always", "hami-core", "default"])
)
WORDS = st.sampled_from(
    [
        *("kind", "apiVersion", "metadata", "name", "namespace", "generateName", "annotations", "labels", "spec"),
        *("template", "jobTemplate", "tasks", "replicas", "parallelism", "completions", "minAvailable", "items"),
        *("containers", "initContainers", "resources", "limits", "requests", "env", "lifecycle", "nodeName"),
        *(B3, f"{B3}-memory", f"{B3}-core", "huawei.com/vnpu-mode", "schedulerName", "nodeSelector"),
        *("nodes", "chip", "cards", "soft", "slots", "healthy", "status", "allocatable", "unschedulable"),
        *("hami.io/node-register-Ascend910B3", "hami-vnpu-core", "huawei.com/vnpu-cordon"),
    ]
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS | st.text(max_size=3), inner, max_size=4),
    max_leaves=25,
)
KINDS = st.sampled_from(
    ["Pod", "Deployment", "StatefulSet", "ReplicaSet", "Job", "CronJob", "DaemonSet", "Service", "List", "PodList"]
)
CONTAINER = {"name": "app", "resources": {"limits": {B3: 1, f"{B3}-memory": 8192, f"{B3}-core": 20}}}
POD = {"metadata": {"annotations": {"huawei.com/vnpu-mode": "hami-core"}}, "spec": {"containers": [CONTAINER]}}
OBJECTS: list[dict[str, Any]] = [
    {"kind": "Pod", **POD, "metadata": {"name": "a"}},
    {"kind": "Deployment", "metadata": {"name": "a"}, "spec": {"replicas": 2, "template": POD}},
    {"kind": "CronJob", "metadata": {"name": "a"}, "spec": {"jobTemplate": {"spec": {"template": POD}}}},
    {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "a"},
        "spec": {"minAvailable": 1, "tasks": [{"name": "t", "replicas": 2, "template": POD}]},
    },
    {"kind": "List", "items": [{"kind": "Pod", **POD, "metadata": {"generateName": "a"}}]},
]
NODES: list[dict[str, Any]] = [
    {"nodes": [{"name": "n", "chip": "Ascend910B3", "cards": 1, "soft": True, "labels": {"a": "b"}}]},
    {
        "kind": "Node",
        "metadata": {
            "name": "n",
            "annotations": {
                "hami-vnpu-core": "true",
                "huawei.com/vnpu-cordon": "u",
                "hami.io/node-register-Ascend910B3": json.dumps(
                    [{"id": "u", "count": 4, "devmem": 65536, "type": "Ascend910B3", "health": True}]
                ),
            },
        },
        "spec": {"unschedulable": False},
        "status": {"allocatable": {B3: "4"}},
    },
]


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    below: list[tuple[Any, ...]] = []
    if isinstance(value, dict):
        below = [one for name, inner in value.items() for one in paths(inner, (*path, name))]
    elif isinstance(value, list):
        below = [one for index, inner in enumerate(value) for one in paths(inner, (*path, index))]
    return [path, *below]


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """The value with something else at a place."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:], new)
    return copy


@st.composite
def broken(draw: st.DrawFn, whole: list[dict[str, Any]]) -> Any:
    """A good object with one or two fields replaced by anything."""
    value: Any = draw(st.sampled_from(whole))
    for _ in range(draw(st.integers(1, 2))):
        value = changed(value, draw(st.sampled_from(paths(value))), draw(JSON))
    return value


def check(found: Run) -> None:
    assert found.code in {0, 1, 2}
    if found.code == 2:
        assert found.out == ""
        assert found.err.startswith("error: ")
        assert found.err.count("\n") == 1
    else:
        assert found.err == ""
        assert isinstance(json.loads(found.out), dict)


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()


def as_yaml(value: Any) -> bytes:
    return yaml.safe_dump(value).encode()


WRITERS = st.sampled_from([as_json, as_yaml])


@examples(80)
@given(
    broken(OBJECTS) | JSON | st.builds(lambda kind, rest: {**rest, "kind": kind}, KINDS, st.dictionaries(WORDS, JSON)),
    WRITERS,
)
def test_any_manifest(value: Any, write: Callable[[Any], bytes]) -> None:
    check(run(*COMMAND, stdin=write(value)))


@examples(80)
@given(broken(NODES) | JSON, WRITERS)
def test_any_node(value: Any, write: Callable[[Any], bytes]) -> None:
    check(run("--card", "Ascend910B3", "--nodes", "-", "--slice", "8192", "-o", "json", stdin=write(value)))


@examples(50)
@given(broken([{**OBJECTS[0], "status": {"phase": "Running"}}]) | JSON)
def test_any_running_pod(value: Any) -> None:
    check(run("--card", "Ascend910B3", "--running", "-", "--slice", "8192", "-o", "json", stdin=as_json(value)))


@given(st.binary(max_size=60))
def test_any_bytes(content: bytes) -> None:
    check(run(*COMMAND, stdin=content))


@given(st.lists(st.sampled_from(["--card", "--slice", "-o", "json", "--policy", "x", "8192x2", "Ascend910B3", "--"])))
def test_any_command_line(arguments: list[str]) -> None:
    found = run(*arguments)
    assert found.code in {0, 1, 2}
    assert (found.code == 2) == found.err.startswith("error: ")


@pytest.mark.parametrize("depth", [100, 600, 5000])
@pytest.mark.parametrize(
    "text",
    [
        '{"kind": "Pod", "metadata": {"name": "a", "annotations": DEEP}, "spec": {"containers": []}}',
        '{"kind": "Pod", "metadata": {"name": "a", "annotations": {"x": DEEP}}, "spec": {"containers": []}}',
        '{"kind": "Pod", "metadata": {"name": "a"}, "spec": {"affinity": DEEP, "containers": [CONTAINER]}}',
        '{"kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"env": [DEEP], "name": "x"}, CONTAINER]}}',
        '{"kind": "Job", "metadata": {"name": "a"}, "spec": {"template": DEEP}}',
        '{"kind": "List", "items": [DEEP]}',
    ],
)
def test_any_depth(depth: int, text: str) -> None:
    deep = "[" * depth + "]" * depth
    check(run(*COMMAND, stdin=text.replace("DEEP", deep).replace("CONTAINER", json.dumps(CONTAINER)).encode()))
