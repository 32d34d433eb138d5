"""Bookings that repeat at the same local time, across the changes to and from summer time."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from odcd.errors import BadRequest, BookingConflict
from tests.sql.limits.booking.desk import DAY, HOUR, Desk

BERLIN = "Europe/Berlin"
ZONE = ZoneInfo(BERLIN)


def local(day: str, clock: str, zone: str = BERLIN) -> datetime:
    return datetime.combine(date.fromisoformat(day), time.fromisoformat(clock), ZoneInfo(zone))


def windows(desk: Desk, name: str, first: str, last: str) -> list[str]:
    """The starts of these days, UTC."""
    return desk.sql.values(
        "select to_char(o.starts_at at time zone 'UTC', 'MM-DD HH24:MI') "
        "from odc.booking as b cross join lateral odc._occurrences(b.starts_at, b.duration_s, "
        "b.repeats, b.repeats_until, b.zone, $2, $3) as o where b.name = $1 order by o.starts_at",
        name, local(first, "00:00"), local(last, "00:00"),
    )  # fmt: skip


def book(desk: Desk, name: str, clock: str, **more: Any) -> dict[str, Any]:
    ask: dict[str, Any] = {
        "starts_at": local("2026-01-05", clock),
        "repeats": "daily",
        "zone": BERLIN,
        **more,
    }
    return desk.create(name, node_list=["h100-1"], **ask)


def test_a_booking_keeps_its_local_time_when_summer_time_begins_and_ends(desk: Desk) -> None:
    made = book(desk, "b", "09:00", duration_s=3 * HOUR)
    assert (made["zone"], made["starts_at"]) == (BERLIN, "2026-01-05T08:00:00Z")
    assert windows(desk, "b", "2026-03-28", "2026-03-31") == [
        "03-28 08:00", "03-29 07:00", "03-30 07:00",
    ]  # fmt: skip
    assert windows(desk, "b", "2026-10-24", "2026-10-27") == [
        "10-24 07:00", "10-25 08:00", "10-26 08:00",
    ]  # fmt: skip


def test_a_time_that_a_day_skips_or_has_twice_has_one_occurrence(desk: Desk) -> None:
    book(desk, "b", "02:30")
    # 02:30 does not exist on 29 March: it is 03:30, UTC+2.
    assert windows(desk, "b", "2026-03-28", "2026-03-31") == [
        "03-28 01:30", "03-29 01:30", "03-30 00:30",
    ]  # fmt: skip
    # 02:30 comes twice on 25 October: the second one counts, UTC+1.
    assert windows(desk, "b", "2026-10-24", "2026-10-27") == [
        "10-24 00:30", "10-25 01:30", "10-26 01:30",
    ]  # fmt: skip


@pytest.mark.parametrize("clock", ["00:00", "02:30", "09:00", "23:30"])
@pytest.mark.parametrize("repeats", ["daily", "weekly", "weekdays"])
def test_every_local_day_of_a_year_is_as_in_a_calendar(
    desk: Desk, repeats: str, clock: str
) -> None:
    book(desk, "b", clock, repeats=repeats)
    found = windows(desk, "b", "2026-01-05", "2027-01-05")
    expected: list[str] = []
    for number in range(365):
        day = date(2026, 1, 5) + timedelta(days=number)
        on = {"daily": True, "weekly": number % 7 == 0, "weekdays": day.weekday() < 5}[repeats]
        if on:
            # The second of two; for one that is skipped, the offset before.
            naive = datetime.combine(day, time.fromisoformat(clock))
            first, second = (naive.replace(tzinfo=ZONE, fold=fold) for fold in (0, 1))
            skipped = first.utcoffset() < second.utcoffset()  # pyright: ignore[reportOperatorIssue, reportOptionalOperand]
            moment = (first if skipped else second).astimezone(UTC)
            expected.append(f"{moment:%m-%d %H:%M}")
    assert found == expected


def test_weekdays_are_those_of_the_zone(desk: Desk) -> None:
    # Monday 08:00 in Tokyo is Sunday 23:00 UTC.
    start = local("2026-01-05", "08:00", "Asia/Tokyo")
    made = desk.create(
        "b", starts_at=start, repeats="weekdays", zone="Asia/Tokyo", node_list=["h100-1"]
    )
    assert made["starts_at"] == "2026-01-04T23:00:00Z"
    days = windows(desk, "b", "2026-01-04", "2026-01-13")
    assert days == ["01-04 23:00", "01-05 23:00", "01-06 23:00", "01-07 23:00", "01-08 23:00",
                    "01-11 23:00"]  # fmt: skip


def test_bookings_that_meet_only_in_summer_are_refused(desk: Desk) -> None:
    book(desk, "local", "09:00")  # 08:00 UTC in winter, 07:00 UTC in summer
    early: dict[str, Any] = {"starts_at": datetime(2026, 1, 5, 7, tzinfo=UTC), "repeats": "daily"}
    with desk.sql.trial(), pytest.raises(BookingConflict, match="2026-03-29"):
        desk.create("utc", node_list=["h100-1"], **early)
    until: dict[str, Any] = {"until": datetime(2026, 3, 28, 12, tzinfo=UTC)}
    assert desk.create("utc", node_list=["h100-1"], **early, **until)["state"] == "PLANNED"


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        ({"zone": "Europe/Nowhere"}, 'time zone "Europe/Nowhere" does not exist'),
        ({"zone": "CET"}, 'time zone "CET" does not exist'),
        ({"zone": "UTC+3"}, "does not exist"),
        ({"zone": "../etc/passwd"}, "does not exist"),
        ({"repeats": "none"}, '"zone" is for bookings that repeat'),
        ({"duration_s": DAY - HOUR + 1}, "overlaps itself"),
        ({"duration_s": 7 * DAY, "repeats": "weekly"}, "overlaps itself"),
    ],
)
def test_an_invalid_zone_books_nothing(desk: Desk, ask: dict[str, Any], message: str) -> None:
    with desk.sql.trial(), pytest.raises(BadRequest, match=message.replace("+", r"\+")):
        book(desk, "b", "09:00", **ask)
    assert desk.list() == []


@pytest.mark.parametrize(
    ("zone", "near"),
    [
        ("Europe/Berln", "Europe/Berlin"),
        ("europe/berlin", "Europe/Berlin"),
        ("Berlin", "Europe/Berlin"),
        ("America/NewYork", "America/New_York"),
        ("Asia/Tokio", "Asia/Tokyo"),
        ("CET", None),
        ("Europe/Nowhere", None),
        ("x" * 1000, None),
        ("/", None),
    ],
)
def test_the_nearest_zone_is_named(desk: Desk, zone: str, near: str | None) -> None:
    with desk.sql.trial(), pytest.raises(BadRequest) as caught:
        book(desk, "b", "09:00", zone=zone)
    hint = str(caught.value.hint)
    assert hint.startswith(f"Did you mean {near}? " if near else "Use a name of the time zone")


def test_a_zone_is_changed_and_removed(desk: Desk) -> None:
    book(desk, "b", "09:00")
    assert desk.edit("b", zone="America/New_York")["zone"] == "America/New_York"
    # It begins as before, and keeps the local time there: 03:00.
    assert windows(desk, "b", "2026-03-07", "2026-03-10") == [
        "03-07 08:00", "03-08 07:00", "03-09 07:00",
    ]  # fmt: skip
    assert desk.edit("b", comment="x")["zone"] == "America/New_York"
    assert desk.edit("b", zone="")["zone"] is None
    assert windows(desk, "b", "2026-03-28", "2026-03-30") == ["03-28 08:00", "03-29 08:00"]
    assert desk.edit("b", zone=BERLIN, repeats="weekly")["zone"] == BERLIN
    assert desk.edit("b", repeats="none")["zone"] is None


ZONES = [None, "UTC", BERLIN, "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca"]
EVERY_OCCURRENCE = """
select b.id, o.starts_at, o.ends_at
  from odc.booking as a
  join odc.booking as b on b.id <> a.id
 cross join lateral (select greatest($2, b.starts_at, a.starts_at) as both) as m
 cross join lateral (
       select theirs.starts_at, theirs.ends_at
         from odc._occurrences(a.starts_at, a.duration_s, a.repeats, a.repeats_until, a.zone,
                               m.both, m.both + interval '380 days') as mine
        cross join lateral odc._occurrences(b.starts_at, b.duration_s, b.repeats, b.repeats_until,
                                            b.zone, mine.starts_at, mine.ends_at) as theirs
        where least(mine.ends_at, theirs.ends_at) > $2
        order by greatest(mine.starts_at, theirs.starts_at)
        limit 1) as o
 where a.id = $1
 order by 1
"""
CLASHES = """
select c.booking_id as id, c.starts_at, c.ends_at
  from odc.booking as a cross join lateral odc._booking_clashes(a, $2) as c
 where a.id = $1
 order by 1
"""


@pytest.mark.parametrize("seed", range(4))
def test_two_bookings_clash_where_any_of_their_occurrences_in_a_year_do(
    desk: Desk, seed: int
) -> None:
    """They are about one hour apart, so many of them meet only in summer, or in a few weeks."""
    chance = random.Random(f"clashes/{seed}")
    now = datetime(2026, 1, 5, tzinfo=UTC) + timedelta(hours=chance.randrange(24 * 300))
    for number in range(12):
        repeats = chance.choice(["none", "daily", "weekly", "weekly", "weekdays"])
        starts_at = now + timedelta(
            days=chance.randrange(-9, 9), minutes=30 * chance.randrange(-4, 5)
        )
        duration_s = chance.choice([1800, 3600, 3600, 5400] + [6 * DAY] * (repeats == "weekly"))
        until = starts_at + timedelta(days=chance.randrange(400)) if chance.random() < 0.3 else None
        desk.sql.execute(
            "insert into odc.booking (name, kind, state, starts_at, duration_s, repeats, "
            "repeats_until, zone, node_count, state_at, created_by, created_at) values "
            "($1, 'maintenance', 'PLANNED', $2, $3, $4::text::odc.booking_repeat, $5, $6, 1, $7, "
            "'root', $7)",
            f"b{number}", starts_at, duration_s, repeats,
            None if repeats == "none" else until,
            None if repeats == "none" else chance.choice(ZONES), now,
        )  # fmt: skip
    found = 0
    for one in desk.sql.values("select id from odc.booking order by id"):
        clashes = desk.sql.rows(CLASHES, one, now)
        assert clashes == desk.sql.rows(EVERY_OCCURRENCE, one, now)
        found += len(clashes)
    assert found > 0


def test_changes_of_offsets_are_found_to_the_week(desk: Desk) -> None:
    """Clashes are looked for after each of them. Before, on each of 380 days."""
    found = desk.sql.values(
        "select odc._offset_changes($1::text[], $2, $2::timestamptz + interval '380 days') as at "
        "order by at",
        [BERLIN, None, "Asia/Tokyo"], datetime(2026, 1, 5, tzinfo=UTC),
    )  # fmt: skip
    assert [f"{at:%m-%d}" for at in found] == ["01-05", "03-23", "10-19"]
