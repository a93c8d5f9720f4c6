"""What an error shows: the path as users write it, the value on one line, what is allowed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vnpu.errors import ABSENT, FieldError, bare, did_you_mean, item, join, key, path_of, printable, shown


def test_paths_look_like_the_manifest() -> None:
    path = key(key(item(key("spec", "containers"), 0), "limits"), "huawei.com/Ascend910B3")
    assert path == "spec.containers[0].limits[huawei.com/Ascend910B3]"
    assert path_of(("spec", "containers", 0, "limits", "huawei.com/Ascend910B3")) == path
    assert path_of(()) == ""
    assert join("spec.template", path) == f"spec.template.{path}"
    assert join("items", "[0].spec") == "items[0].spec"
    assert join("", "a") == join("a", "") == "a"


@given(st.text(), st.text())
def test_a_path_is_one_line_whatever_is_called_so(path: str, name: str) -> None:
    assert key("", name).isprintable()
    assert str(FieldError(key("spec", name), path, "allowed")).isprintable()


def test_a_name_longer_than_any_of_kubernetes_is_cut() -> None:
    longest = "a" * 253 + "/" + "b" * 63
    assert key("limits", longest) == f"limits[{longest}]"
    assert key("limits", longest + "b") == f"limits[{longest[:-1]}…]"
    assert len(key("", "x" * 10**6)) == len(longest)
    assert bare("x\n") == "x\N{REPLACEMENT CHARACTER}"


def test_the_message_names_path_value_and_what_is_allowed() -> None:
    assert str(FieldError("a.b", "x", "only y is allowed")) == 'a.b: "x": only y is allowed'
    assert str(FieldError("", ABSENT, "a list is expected")) == "absent: a list is expected"


def test_the_nearest_name_is_recommended_and_none_where_all_are_far() -> None:
    assert did_you_mean("card", ("name", "cards")) == "; did you mean cards?"
    assert did_you_mean("zzz", ("name", "cards")) == ""


def test_what_cannot_be_printed_is_replaced() -> None:
    assert printable("a\x1b[31m\nü") == "a\N{REPLACEMENT CHARACTER}[31m\N{REPLACEMENT CHARACTER}ü"


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
