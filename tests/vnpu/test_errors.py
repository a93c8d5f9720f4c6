"""What an error shows: the path as users write it, the value on one line, what is allowed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vnpu.errors import ABSENT, FieldError, item, join, key, shown


def test_paths_look_like_the_manifest() -> None:
    path = key(key(item(key("spec", "containers"), 0), "limits"), "huawei.com/Ascend910B3")
    assert path == "spec.containers[0].limits[huawei.com/Ascend910B3]"
    assert join("spec.template", path) == f"spec.template.{path}"
    assert join("items", "[0].spec") == "items[0].spec"
    assert join("", "a") == join("a", "") == "a"


def test_the_message_names_path_value_and_what_is_allowed() -> None:
    assert str(FieldError("a.b", "x", "only y is allowed")) == 'a.b: "x": only y is allowed'
    assert str(FieldError("", ABSENT, "a list is expected")) == "absent: a list is expected"


@given(st.text() | st.binary() | st.lists(st.text(), max_size=50))
def test_a_value_is_shown_on_one_short_line(value: object) -> None:
    text = shown(value)
    assert text.isprintable()
    assert len(text) <= 120


def test_values_beyond_all_measure_are_shown_too() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    for value in (deep, 10**5000, [10**5000], "x" * 10**7, {"key": {"key": ["x" * 1000] * 1000}}):
        assert len(shown(value)) <= 120
