"""Quantities: every legal spelling of a number gives that number, everything else is refused, nothing is rounded."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vnpu import quantity
from vnpu.errors import FieldError, QuantityError

CAPACITY = 65536


@pytest.mark.parametrize(
    ("spelling", "number"),
    [
        ("8192", 8192),
        (8192, 8192),
        ("8k", 8000),
        ("10k", 10000),
        ("8Ki", 8192),
        ("8192000m", 8192),
        ("8192000000u", 8192),
        ("8192000000000n", 8192),
        ("10e3", 10000),
        ("10E3", 10000),
        ("1e+4", 10000),
        ("81920e-1", 8192),
        ("8192.0", 8192),
        (8192.0, 8192),
        ("8192.", 8192),
        (".5k", 500),
        ("+8192", 8192),
        ("008192", 8192),
        ("0.0625Mi", 65536),
    ],
)
def test_every_legal_spelling_gives_its_number(spelling: Any, number: int) -> None:
    assert quantity.whole(spelling, low=1, high=CAPACITY) == number


@pytest.mark.parametrize(
    "bad",
    [
        *(
            "16Gi",
            "16G",
            "1500m",
            "0.5",
            "-1",
            "0",
            "",
            " 8192",
            "8192 ",
            "8,192",
            "0x10",
            "1_000",
            "٣",
            "e3",
            ".",
            "+",
        ),
        *("8192MiB", "8192mi", "1e3k", "1E3Ki", "--1", "NaN", "inf", "1e", "1e99999999999", "9" * 65, "1k\n"),
        *(True, False, None, 0.5, float("nan"), float("inf"), 1e300, [], {}, [8192], b"8192", 2147483648, -1, 10**41),
        *("2147483648", "99999999999999999999", "4294967297"),
    ],
)
def test_everything_else_is_refused(bad: Any) -> None:
    with pytest.raises(QuantityError) as caught:
        quantity.whole(bad, "here", low=1, high=CAPACITY, unit="MiB")
    assert caught.value.path == "here"
    assert caught.value.value is bad
    assert str(caught.value).startswith("here: ")


SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    **{suffix: Fraction(10) ** (3 * power) for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": Fraction(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)},
    **{f"e{exponent}": Fraction(10) ** exponent for exponent in range(-12, 13)},
    **{f"E{exponent:+d}": Fraction(10) ** exponent for exponent in range(-12, 13)},
}
DECIMALS = st.decimals(min_value=-(10**15), max_value=10**15, places=6)


@given(DECIMALS, st.sampled_from(sorted(SUFFIXES)))
@example(Decimal("0.000001"), "Ei")
def test_equals_an_exact_reference(decimal: Decimal, suffix: str) -> None:
    assert quantity.parse(f"{decimal:f}{suffix}") == Fraction(decimal) * SUFFIXES[suffix]


@given(st.integers(1, quantity.INT32_MAX), st.sampled_from(sorted(SUFFIXES)))
def test_a_number_is_the_same_in_every_spelling_that_can_hold_it(number: int, suffix: str) -> None:
    scaled = Fraction(number) / SUFFIXES[suffix]
    digits = str((scaled * 10**20).numerator) if (scaled * 10**20).denominator == 1 else ""
    if not digits or len(digits) > 40:
        return
    text = f"{digits.zfill(21)[:-20]}.{digits.zfill(21)[-20:]}{suffix}"
    assert quantity.whole(text, low=1, high=quantity.INT32_MAX) == number
    assert quantity.equal(text, number)


@given(st.text() | st.integers() | st.floats() | st.booleans() | st.none() | st.lists(st.integers()))
def test_anything_is_read_or_refused(value: Any) -> None:
    try:
        parsed = quantity.parse(value)
    except QuantityError:
        assert not quantity.equal(value, value)
    else:
        assert isinstance(parsed, Fraction)
        assert quantity.equal(value, value)


def test_equal_is_by_value() -> None:
    assert quantity.equal("10k", 10000)
    assert quantity.equal("8192000m", "8Ki")
    assert not quantity.equal("10k", "10001")
    assert not quantity.equal("x", "x")


def test_an_error_is_moved_below_a_prefix() -> None:
    error = QuantityError("limits[huawei.com/Ascend910B3]", "x", "no").under("spec.containers[0].resources")
    assert isinstance(error, FieldError)
    assert error.path == "spec.containers[0].resources.limits[huawei.com/Ascend910B3]"
