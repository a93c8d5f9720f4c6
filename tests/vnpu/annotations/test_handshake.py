from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnpu.annotations import handshake
from vnpu.annotations.handshake import Handshake, Side
from vnpu.errors import AnnotationError

BEIJING = timezone(timedelta(hours=8))
WHEN = datetime(2026, 8, 21, 9, 5, 7, tzinfo=BEIJING)


@pytest.mark.parametrize(
    ("text", "side"),
    [("Reported_2026.08.21 09:05:07", Side.REPORTED), ("Requesting_2026-08-21 09:05:07", Side.REQUESTING)],
)
def test_both_sides_are_read_and_written_byte_for_byte(text: str, side: Side) -> None:
    found = handshake.decode(text, BEIJING)
    assert found == Handshake(side, WHEN)
    assert handshake.encode(found) == text


def test_the_other_spelling_of_the_date_is_read_too() -> None:
    assert handshake.decode("Reported_2026-08-21 09:05:07", BEIJING).time == WHEN
    assert handshake.decode("Requesting_2026.08.21 09:05:07", BEIJING).time == WHEN


@pytest.mark.parametrize("text", [" Reported_2026.08.21 09:05:07", "Reported_2026.08.21 09:05:07 \n"])
def test_spaces_around_the_turn_do_not_count(text: str) -> None:
    assert handshake.decode(text, BEIJING) == Handshake(Side.REPORTED, WHEN)


def test_the_zone_is_that_of_the_writer() -> None:
    apart = handshake.decode("Reported_2026.08.21 09:05:07", UTC).time - WHEN
    assert apart == timedelta(hours=8)


@given(st.sampled_from(Side), st.datetimes(timezones=st.sampled_from([UTC, BEIJING])))
def test_what_is_written_is_read_back(side: Side, time: datetime) -> None:
    turn = Handshake(side, time.replace(microsecond=0))
    assert handshake.decode(handshake.encode(turn), turn.time.tzinfo or UTC) == turn


@pytest.mark.parametrize(
    "value",
    [
        *("", "Requesting", "Requesting_", "Deleted_2026.08.21 09:05:07", "reported_2026.08.21 09:05:07"),
        *("Reported_2026.08-21 09:05:07", "Reported_2026.02.31 09:05:07", "Reported_2026.08.21 24:05:07"),
        *("Reported_ 2026.08.21 09:05:07", "Reported_2026.8.21 09:05:07", "Reported_٢٠٢٦.08.21 09:05:07", None, 5),
    ],
)
def test_everything_else_is_refused(value: object) -> None:
    with pytest.raises(AnnotationError):
        handshake.decode(value, UTC)


@given(st.one_of(st.text(), st.text("RequestingReported_0123456789.-: ")))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        turn = handshake.decode(text, UTC)
    except AnnotationError:
        return
    assert handshake.decode(handshake.encode(turn), UTC) == turn
