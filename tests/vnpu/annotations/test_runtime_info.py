from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.golden import cases
from vnpu.annotations import runtime_info
from vnpu.annotations.runtime_info import RuntimeInfo
from vnpu.errors import AnnotationError
from vnpu.quantity import INT32_MAX

TEXTS = st.none() | st.text(st.characters(exclude_categories=["Cs"]))
AMOUNTS = st.none() | st.integers(0, INT32_MAX)
INFOS = st.builds(RuntimeInfo, TEXTS, TEXTS, AMOUNTS, AMOUNTS)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["UUID", "uuid", "temp", "memory", "core"]), inner),
)


@pytest.mark.parametrize("case", cases("runtime_info", "upstream", "odd"))
def test_a_text_is_read(case: dict[str, Any]) -> None:
    assert runtime_info.decode(case["text"]) == tuple(RuntimeInfo(*fields) for fields in case["cards"])


@pytest.mark.parametrize("case", cases("runtime_info", "upstream"))
def test_a_text_is_written_byte_for_byte(case: dict[str, Any]) -> None:
    assert runtime_info.encode(runtime_info.decode(case["text"])) == case["text"]


@pytest.mark.parametrize("case", cases("runtime_info", "illegal"))
def test_an_illegal_text_is_refused_with_its_place(case: dict[str, Any]) -> None:
    with pytest.raises(AnnotationError) as caught:
        runtime_info.decode(case["text"], "metadata.annotations[x]")
    assert caught.value.path == f"metadata.annotations[x]{case['at']}"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * 100_000, "nested too deep"),
        (f'[{{"memory":{"9" * 5000}}}]', "a number is too long"),
        ('[{"memory":Infinity}]', "Infinity is no number"),
        ('[{"memory":1,"memory":1}]', "a field stands twice"),
        ("[1", "Expecting"),
    ],
)
def test_a_refusal_says_what_is_wrong_with_the_json(text: str, reason: str) -> None:
    with pytest.raises(AnnotationError, match=reason):
        runtime_info.decode(text)


@given(st.lists(INFOS, max_size=4).map(tuple))
def test_what_is_written_is_read_back(infos: tuple[RuntimeInfo, ...]) -> None:
    text = runtime_info.encode(infos)
    assert runtime_info.decode(text) == infos
    assert runtime_info.encode(runtime_info.decode(text)) == text
    assert not set("<>&\u2028\u2029").intersection(text)


@given(st.one_of(st.text(), JSON.map(json.dumps)))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        infos = runtime_info.decode(text)
    except AnnotationError:
        return
    assert runtime_info.decode(runtime_info.encode(infos)) == infos


def test_zero_and_absent_are_the_same() -> None:
    assert RuntimeInfo("u", "", 0, 0) == RuntimeInfo("u")


@pytest.mark.parametrize(
    "info", [RuntimeInfo("\ud800"), RuntimeInfo("u", "\udfff"), RuntimeInfo("u", None, -1), RuntimeInfo(core=2**31)]
)
def test_what_could_not_be_read_back_is_not_written(info: RuntimeInfo) -> None:
    with pytest.raises(AnnotationError) as caught:
        runtime_info.encode([RuntimeInfo("u"), info])
    assert caught.value.path.startswith("[1].")
