from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnpu.annotations import lock
from vnpu.annotations.lock import NodeLock
from vnpu.errors import AnnotationError

NOON = datetime(2026, 8, 21, 12, 0, 0, tzinfo=UTC)
NAMES = st.text("abc-0", min_size=1)
ZONES = st.builds(lambda minutes: timezone(timedelta(minutes=minutes)), st.integers(-23 * 60, 23 * 60))
OWNERS = st.tuples(NAMES, NAMES) | st.just(("", ""))


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("2026-08-21T12:00:00Z,team,app-0", NodeLock(NOON, "team", "app-0")),
        ("2026-08-21T20:00:00+08:00,team,app-0", NodeLock(NOON, "team", "app-0")),
        ("2026-08-21T08:30:00-03:30,team,app-0", NodeLock(NOON, "team", "app-0")),
        ("2026-08-21T12:00:00Z", NodeLock(NOON)),
        ("2026-08-21T20:00:00+08:00", NodeLock(NOON)),
    ],
)
def test_locks_are_read_and_written_byte_for_byte(text: str, meaning: NodeLock) -> None:
    found = lock.decode(text)
    assert found == meaning
    assert lock.encode(found) == text


def test_fractions_of_a_second_are_read() -> None:
    assert lock.decode("2026-08-21T12:00:00.250Z").time == NOON + timedelta(milliseconds=250)
    assert lock.decode("2026-08-21T12:00:00.123456789Z").time == NOON + timedelta(microseconds=123456)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("2026-08-21T12:00:00Z, team, app-0", NodeLock(NOON, "team", "app-0")),
        (" 2026-08-21T12:00:00Z ,team ,app-0\n", NodeLock(NOON, "team", "app-0")),
        ("2026-08-21T12:00:00Z,team,app-0,", NodeLock(NOON, "team", "app-0")),
        ("2026-08-21T12:00:00Z,team,app-0 , ", NodeLock(NOON, "team", "app-0")),
        (" 2026-08-21T12:00:00Z", NodeLock(NOON)),
        ("2026-08-21T12:00:00Z,", NodeLock(NOON)),
    ],
)
def test_spaces_and_one_comma_at_the_end_do_not_count(text: str, meaning: NodeLock) -> None:
    assert lock.decode(text) == meaning


@pytest.mark.parametrize(
    "value",
    [
        *("", "now", "2026-08-21", "2026-08-21T12:00:00", "2026-08-21 12:00:00Z", "20260821T120000Z", "2026-W34-5"),
        *("2026-02-31T12:00:00Z", "2026-08-21T25:00:00Z", "2026-08-21T12:00:00+25:00", "2026-08-21T12:00:00Z,,"),
        *("2026-08-21T12:00:00Z,team", "2026-08-21T12:00:00Z,team,", "2026-08-21T12:00:00Z,,app", " ", ","),
        *("2026-08-21T12:00:00Z,team, ,", "2026-08-21T12:00:00Z,team,app,,", "2026-08-21T12:00:00 Z,team,app"),
        *("2026-08-21T12:00:00Z,team,app,more", "٢٠٢٦-08-21T12:00:00Z", None, 1),
    ],
)
def test_everything_else_is_refused(value: object) -> None:
    with pytest.raises(AnnotationError, match=r"RFC 3339|a text is expected"):
        lock.decode(value)


@pytest.mark.parametrize(
    "bad",
    [
        NodeLock(NOON, "team"),
        NodeLock(NOON, "", "app"),
        NodeLock(NOON, "te,am", "app"),
        NodeLock(NOON, " team", "app"),
        NodeLock(NOON, "team", " "),
        NodeLock(NOON.replace(tzinfo=None), "team", "app"),
    ],
)
def test_half_an_owner_or_a_time_without_zone_is_not_written(bad: NodeLock) -> None:
    with pytest.raises(AnnotationError, match="RFC 3339"):
        lock.encode(bad)


@given(st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=ZONES), OWNERS)  # noqa: DTZ001 - bounds are naive
def test_what_is_written_is_read_back(time: datetime, owner: tuple[str, str]) -> None:
    held = NodeLock(time, *owner)
    assert lock.decode(lock.encode(held)) == held


def test_a_zone_with_seconds_is_written_in_utc() -> None:
    mean_time = timezone(timedelta(hours=8, minutes=5, seconds=43))
    held = NodeLock(datetime(1900, 1, 1, 8, 5, 43, tzinfo=mean_time), "team", "app")
    assert lock.encode(held) == "1900-01-01T00:00:00Z,team,app"
    assert lock.decode(lock.encode(held)) == held


@given(st.one_of(st.text(), st.text("0123456789-:TZ+.,a ")))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        held = lock.decode(text)
    except AnnotationError:
        return
    assert lock.decode(lock.encode(held)) == held


def test_a_lock_expires_after_five_minutes() -> None:
    held = NodeLock(NOON, "team", "app")
    assert not held.expired(NOON + timedelta(minutes=5))
    assert held.expired(NOON + timedelta(minutes=5, seconds=1))
    assert held.expired((NOON + timedelta(minutes=6)).astimezone(timezone(timedelta(hours=8))))
    assert not held.expired(NOON - timedelta(hours=1))
    assert held.expired(NOON + timedelta(seconds=11), after=timedelta(seconds=10))
