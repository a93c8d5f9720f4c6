from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.golden import cases
from vnpu.annotations import devices
from vnpu.annotations.devices import DeviceEntry
from vnpu.errors import AnnotationError
from vnpu.quantity import INT32_MAX

WORDS = st.text(min_size=1).filter(
    lambda text: text.isprintable() and " " not in text and not set(",:;").intersection(text)
)
AMOUNTS = st.integers(0, INT32_MAX)
ENTRIES = st.builds(DeviceEntry, WORDS, WORDS, AMOUNTS, AMOUNTS)
PODS = st.lists(st.lists(ENTRIES, max_size=3).map(tuple), max_size=4).map(tuple)


def slots_of(case: dict[str, Any]) -> tuple[tuple[DeviceEntry, ...], ...]:
    return tuple(tuple(DeviceEntry(*fields) for fields in slot) for slot in case["slots"])


@pytest.mark.parametrize("case", cases("devices", "upstream", "odd"))
def test_a_text_is_read(case: dict[str, Any]) -> None:
    assert devices.decode(case["text"]) == slots_of(case)


@pytest.mark.parametrize("case", cases("devices", "upstream"))
def test_a_text_is_written_byte_for_byte(case: dict[str, Any]) -> None:
    assert devices.encode(devices.decode(case["text"])) == case["text"]


@pytest.mark.parametrize("case", cases("devices", "illegal"))
def test_an_illegal_text_is_refused_with_its_place(case: dict[str, Any]) -> None:
    with pytest.raises(AnnotationError) as caught:
        devices.decode(case["text"], "metadata.annotations[x]")
    assert caught.value.path == f"metadata.annotations[x]{case['at']}"


@pytest.mark.parametrize("value", [None, 1, ["A,T,1,2:;"], {"A": 1}])
def test_what_is_no_text_is_refused(value: object) -> None:
    with pytest.raises(AnnotationError, match="a text is expected"):
        devices.decode(value)


@given(PODS)
def test_what_is_written_is_read_back(slots: tuple[tuple[DeviceEntry, ...], ...]) -> None:
    text = devices.encode(slots)
    assert devices.decode(text) == slots
    assert devices.encode(devices.decode(text)) == text


@given(st.one_of(st.text(), st.text("AT12,:; -+0\n")))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        slots = devices.decode(text)
    except AnnotationError:
        return
    assert devices.decode(devices.encode(slots)) == slots


@pytest.mark.parametrize("uuid", ["", "a,b", "a:b", "a;b", "a b", " a", "a\n", "\N{NO-BREAK SPACE}"])
def test_a_name_that_the_text_cannot_carry_is_not_written(uuid: str) -> None:
    with pytest.raises(AnnotationError, match="UUID"):
        devices.encode([[DeviceEntry(uuid, "Ascend910B3", 1, 0)]])
    with pytest.raises(AnnotationError, match="common word"):
        devices.encode([[DeviceEntry("u", uuid, 1, 0)]])


@pytest.mark.parametrize("amount", [-1, INT32_MAX + 1])
def test_a_number_outside_of_32_bits_is_not_written(amount: int) -> None:
    for entry in (DeviceEntry("u", "T", amount, 0), DeviceEntry("u", "T", 0, amount)):
        with pytest.raises(AnnotationError, match="from 0 to 2147483647") as caught:
            devices.encode([[], [entry]])
        assert caught.value.path == "[1]"
