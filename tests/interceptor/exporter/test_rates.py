"""Shares over the last seconds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interceptor.exporter.rates import WINDOW_US, Rates
from tests.support.examples import examples

S = 1_000_000


def test_a_share_is_held_time_over_time() -> None:
    rates = Rates()
    assert rates.share("a") is None
    rates.add("a", 100 * S, 7 * S)
    assert rates.share("a") is None
    rates.add("a", 110 * S, 9 * S)
    assert rates.share("a") == pytest.approx(0.2)


def test_what_is_long_ago_counts_no_more() -> None:
    rates = Rates()
    for second in range(100):
        rates.add("a", second * S, 0)
    for second in range(100, 100 + WINDOW_US // S + 1):
        rates.add("a", second * S, (second - 100) * S)
    assert rates.share("a") == pytest.approx(1.0)


@pytest.mark.parametrize(("written", "held"), [(90 * S, 9 * S), (120 * S, 1 * S)])
def test_what_goes_back_starts_anew(written: int, held: int) -> None:
    rates = Rates()
    rates.add("a", 100 * S, 7 * S)
    rates.add("a", 110 * S, 9 * S)
    rates.add("a", written, held)
    assert rates.share("a") is None
    rates.add("a", written + 10 * S, held + 5 * S)
    assert rates.share("a") == pytest.approx(0.5)


def test_only_those_that_are_kept_are_remembered() -> None:
    rates = Rates()
    for key in ("a", "b"):
        rates.add(key, 100 * S, 0)
        rates.add(key, 110 * S, S)
    rates.keep({"b", "c"})
    assert rates.share("a") is None
    assert rates.share("b") == pytest.approx(0.1)


_NUMBERS = st.integers(0, 2**64 - 1)


@given(st.lists(st.tuples(_NUMBERS, _NUMBERS), max_size=30))
@examples(200)
def test_whatever_a_tenant_writes_a_share_is_from_0_to_1(samples: list[tuple[int, int]]) -> None:
    rates = Rates()
    for written, held in samples:
        rates.add("a", written, held)
        share = rates.share("a")
        assert share is None or 0 <= share <= 1
