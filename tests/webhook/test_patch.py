"""The patch against an independent applier (jsonpatch) and a plain reference of what assignments mean."""

from __future__ import annotations

import copy
import json
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnpu.admission.outcome import Set
from vnpu.errors import InputError
from webhook.patch import operations, pointer

MODE = ("metadata", "annotations", "huawei.com/vnpu-mode")


def applied(document: Any, *sets: Set) -> Any:
    before = copy.deepcopy(document)
    patch = operations(document, sets)
    assert document == before, "the document itself is left alone"
    return jsonpatch.apply_patch(document, json.dumps(patch))


def canonical(document: Any) -> str:
    return json.dumps(document, sort_keys=True)


class TestParents:
    @pytest.mark.parametrize(
        ("metadata", "expected"),
        [
            ({}, [{"op": "add", "path": "/metadata/annotations", "value": {"huawei.com/vnpu-mode": "hami-core"}}]),
            (
                {"annotations": None},
                [{"op": "add", "path": "/metadata/annotations", "value": {"huawei.com/vnpu-mode": "hami-core"}}],
            ),
            (
                {"annotations": {}},
                [{"op": "add", "path": "/metadata/annotations/huawei.com~1vnpu-mode", "value": "hami-core"}],
            ),
            (
                {"annotations": {"a.b/c": "kept"}},
                [{"op": "add", "path": "/metadata/annotations/huawei.com~1vnpu-mode", "value": "hami-core"}],
            ),
        ],
        ids=["absent", "null", "empty", "others"],
    )
    def test_r01_an_annotation_map_that_is_not_there(self, metadata: dict[str, Any], expected: list[Any]) -> None:
        assert operations({"metadata": metadata}, [Set(MODE, "hami-core")]) == expected

    @pytest.mark.parametrize("env", [{}, {"env": None}, {"env": []}, {"env": [{"name": "A", "value": "1"}]}])
    @pytest.mark.parametrize("lifecycle", [{}, {"lifecycle": None}, {"lifecycle": {}}, {"lifecycle": {"preStop": {}}}])
    @pytest.mark.parametrize(
        "resources", [{}, {"resources": None}, {"resources": {}}, {"resources": {"limits": {"huawei.com/x": "1"}}}]
    )
    def test_r03_each_missing_parent_is_created(
        self, env: dict[str, Any], lifecycle: dict[str, Any], resources: dict[str, Any]
    ) -> None:
        pod = {"spec": {"containers": [{"name": "other"}, {"name": "npu", **env, **lifecycle, **resources}]}}
        here = ("spec", "containers", 1)
        hook = {"exec": {"command": ["/limiter", "start"]}}
        result = applied(
            pod,
            Set((*here, "env", "-"), {"name": "B", "value": "2"}),
            Set((*here, "env", "-"), {"name": "C", "value": "3"}),
            Set((*here, "lifecycle", "postStart"), hook),
            Set((*here, "resources", "limits", "huawei.com/x-memory"), 8192),
            Set((*here, "resources", "requests", "huawei.com/x-memory"), 8192),
        )
        other, npu = result["spec"]["containers"]
        assert other == {"name": "other"}
        assert npu["env"] == [*(env.get("env") or []), {"name": "B", "value": "2"}, {"name": "C", "value": "3"}]
        assert npu["lifecycle"] == {**(lifecycle.get("lifecycle") or {}), "postStart": hook}
        old = (resources.get("resources") or {}).get("limits", {})
        assert npu["resources"]["limits"] == {**old, "huawei.com/x-memory": 8192}
        assert npu["resources"]["requests"] == {"huawei.com/x-memory": 8192}

    def test_one_operation_creates_a_parent_for_all_below_it(self) -> None:
        sets = [Set(("a", "b", name), name) for name in "xyz"] + [Set(("a", "c", "-"), 1), Set(("a", "c", "-"), 2)]
        assert operations({}, sets) == [
            {"op": "add", "path": "/a", "value": {"b": {"x": "x", "y": "y", "z": "z"}, "c": [1, 2]}}
        ]


class TestSingleKeys:
    def test_an_existing_key_is_replaced_and_the_rest_is_not_named(self) -> None:
        document = {"spec": {"containers": [{"env": [{"name": "A", "value": "1"}]}], "other": "kept"}}
        sets = [Set(("spec", "containers", 0, "env", 0, "value"), "2")]
        assert operations(document, sets) == [{"op": "replace", "path": "/spec/containers/0/env/0/value", "value": "2"}]

    def test_an_element_is_replaced_and_none_inserted(self) -> None:
        assert applied({"list": [None, 1, 2]}, Set(("list", 0), "x"), Set(("list", 2), "y")) == {"list": ["x", 1, "y"]}

    def test_nothing_to_do_is_an_empty_patch(self) -> None:
        document = {"a": {"b": 1}, "c": [{"d": "x"}]}
        assert operations(document, []) == []
        assert operations(document, [Set(("a", "b"), 1), Set(("c", 0), {"d": "x"})]) == []

    @pytest.mark.parametrize(("old", "new"), [(1, True), (True, 1), (1.0, 1), ({"a": [0]}, {"a": [False]})])
    def test_equal_to_python_is_not_yet_equal_in_json(self, old: Any, new: Any) -> None:
        assert operations({"key": old}, [Set(("key",), new)]) == [{"op": "replace", "path": "/key", "value": new}]


class TestFaults:
    @pytest.mark.parametrize(
        ("document", "path", "place"),
        [
            ({"metadata": {"annotations": "text"}}, MODE, "metadata.annotations"),
            ({"metadata": []}, MODE, "metadata"),
            ([], MODE, ""),
            ({"spec": {"containers": {}}}, ("spec", "containers", 0, "name"), "spec.containers"),
            ({"spec": {"containers": []}}, ("spec", "containers", 0, "name"), "spec.containers[0]"),
            ({"spec": {}}, ("spec", "containers", 0, "name"), "spec.containers[0]"),
            ({"spec": {"containers": [{"env": "x"}]}}, ("spec", "containers", 0, "env", "-"), "spec.containers[0].env"),
        ],
    )
    def test_another_shape_than_supposed_is_an_error_with_its_path(
        self, document: Any, path: tuple[str | int, ...], place: str
    ) -> None:
        with pytest.raises(InputError) as raised:
            operations(document, [Set(path, "x")])
        assert raised.value.path == place

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (("a",), ("a",)),
            (("a",), ("a", "b")),
            (("a", "b"), ("a",)),
            (("a", "-"), ("a", "-", "b")),
            (("a", "-"), ("a", "b")),
            (("a", "b"), ("a", "-")),
        ],
    )
    def test_assignments_that_contradict_each_other(self, one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
        with pytest.raises(ValueError, match="another assignment"):
            operations({}, [Set(one, 1), Set(other, 2)])


names = st.text("~/01.-a", min_size=1, max_size=6).filter(lambda name: name != "-")
scalars = st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab~/", max_size=3)
documents = st.recursive(
    scalars, lambda inner: st.dictionaries(names, inner, max_size=4) | st.lists(inner, max_size=3), max_leaves=12
)


@given(st.dictionaries(names, st.text("xy"), max_size=5), st.dictionaries(names, st.text("xyz"), max_size=5))
def test_r02_keys_with_tildes_and_slashes(old: dict[str, str], new: dict[str, str]) -> None:
    sets = [Set(("metadata", "annotations", name), value) for name, value in new.items()]
    result = applied({"metadata": {"annotations": old}}, *sets)
    assert result == {"metadata": {"annotations": old | new}}


@given(st.lists(names, min_size=1, max_size=4))
def test_a_pointer_names_its_path(path: list[str]) -> None:
    assert list(jsonpatch.JsonPointer(pointer(path)).parts) == path


@st.composite
def assignments(draw: st.DrawFn) -> tuple[Any, list[Set]]:
    """A document and assignments that walk down what is there, now and then leaving it for what is not."""
    document = draw(st.dictionaries(names, documents, max_size=4))
    sets: list[Set] = []
    for _ in range(draw(st.integers(0, 5))):
        here: Any = document
        path: list[str | int] = []
        while True:
            if isinstance(here, list):
                choices: list[str | int] = ["-", *range(len(here))]
                step = draw(st.sampled_from(choices))
                here = None if step == "-" else here[int(step)]
            else:
                entries = here if isinstance(here, dict) else {}
                step = draw(st.sampled_from([*entries, "new", "n/e~w"]))
                here = entries.get(str(step))
            path.append(step)
            if step == "-" or not (isinstance(here, dict | list) or here is None) or draw(st.integers(0, 2)) == 0:
                break
        sets.append(Set(tuple(path), draw(documents)))
    return document, sets


def plainly(document: Any, sets: list[Set]) -> Any:
    """What assignments mean, in the simplest words; values first, appended elements last."""
    result = copy.deepcopy(document)
    for assignment in sorted(sets, key=lambda each: each.path[-1] == "-"):
        here = result
        for name, following in zip(assignment.path, assignment.path[1:], strict=False):
            if (here[name] if isinstance(name, int) else here.get(name)) is None:
                here[name] = [] if following == "-" or isinstance(following, int) else {}
            here = here[name]
        if assignment.path[-1] == "-":
            here.append(copy.deepcopy(assignment.value))
        else:
            here[assignment.path[-1]] = copy.deepcopy(assignment.value)
    return result


def contradictory(document: Any, sets: list[Set]) -> bool:
    """Whether an assignment writes what, or below what, another one writes; or one is below an appended element."""
    paths = [each.path for each in sets]
    below = any(
        one[-1] != "-" and other[: len(one)] == one
        for place, one in enumerate(paths)
        for other in (*paths[:place], *paths[place + 1 :])
    )
    return below or any("-" in path[:-1] for path in paths) or not fits(document, paths)


def fits(document: Any, paths: list[tuple[str | int, ...]]) -> bool:
    """Whether nobody takes a container for a list that is an object to the document or to another."""
    kinds: dict[tuple[str | int, ...], set[bool]] = {(): {isinstance(document, list)}}
    for path in paths:
        for depth, name in enumerate(path):
            kinds.setdefault(path[:depth], set()).add(name == "-" or isinstance(name, int))
    return all(len(kind) == 1 for kind in kinds.values())


@given(assignments())
def test_the_patch_says_what_the_assignments_mean(case: tuple[Any, list[Set]]) -> None:
    document, sets = case
    if contradictory(document, sets):
        with pytest.raises(ValueError, match="assignment"):
            operations(document, sets)
        return
    result = applied(document, *sets)
    assert canonical(result) == canonical(plainly(document, sets))
    assert operations(result, [each for each in sets if each.path[-1] != "-"]) == [], "twice is once"
