"""Plain scalars of YAML: what kubectl 1.36 makes of each, as it prints it when it reads a manifest."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import examples
from vnpu import scalars


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((word, True) for word in ("y", "Y", "yes", "YES", "true", "True", "on", "On", "ON")),
        *((word, False) for word in ("n", "N", "no", "No", "NO", "false", "FALSE", "off", "Off")),
        *((word, None) for word in ("", "~", "null", "Null", "NULL")),
        *((word, word) for word in ("tRue", "nO", "nULL", "yess", "None", "pod", "=", "<")),
        # base 60 is a text, dates too
        *((word, word) for word in ("12:30", "190:20:30.15", "1:30", "2026-11-29", "2026-1-2")),
        # whole numbers
        ("0", 0),
        ("-0", 0),
        ("00", 0),
        ("+5", 5),
        ("017", 15),
        ("-017", -15),
        ("0o17", 15),
        ("0O17", 15),
        ("+0o7", 7),
        ("0b11", 3),
        ("-0b11", -3),
        ("0B11", 3),
        ("0x1F", 31),
        ("-0x1F", -31),
        ("0X1f", 31),
        ("0x1_F", 31),
        ("1_000", 1000),
        ("1__0", 10),
        ("9007199254740993", 9007199254740993),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        # decimals; what is whole is a whole number in JSON
        ("1.0", 1),
        ("1.", 1),
        ("089", 89),
        ("0_8", 8),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1_0e1", 100),
        ("1.5e3", 1500),
        (".5e3", 500),
        ("1e18", 10**18),
        ("-0.0", 0),
        (".5", 0.5),
        ("-.5", -0.5),
        ("1_0.5", 10.5),
        ("1e-9", 1e-9),
        ("1e22", 1e22),
        ("9223372036854775808", 2.0**63),
        ("99999999999999999999999999", 1e26),
        # no numbers
        *((word, word) for word in ("0o8", "0b", "0b2", "0x", "0xZZ", "0x10p1", "1e", "1e400")),
        *((word, word) for word in ("-", "+", ".", "..5", "_1")),
        ("0x" + "F" * 5000, "0x" + "F" * 5000),
    ],
)
def test_scalars(text: str, value: Any) -> None:
    found = scalars.read(text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("text", [".inf", "-.INF", "+.Inf", ".nan", ".NaN", "9" * 5000])
def test_what_json_cannot_hold(text: str) -> None:
    with pytest.raises(ValueError, match="JSON"):
        scalars.read(text)


@given(st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.none())
@examples(200)
def test_what_json_writes_is_read_back(value: Any) -> None:
    assert scalars.read(json.dumps(value)) == value


@given(st.text(max_size=12) | st.text(alphabet="+-.0123456789_eExXobB:", max_size=12))
@examples(300)
def test_a_text_that_is_read_is_json(text: str) -> None:
    try:
        found = scalars.read(text)
    except ValueError:
        return
    again = json.loads(json.dumps(found, allow_nan=False))
    assert (again, type(again)) == (found, type(found))
