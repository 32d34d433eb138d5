"""odc._next_cron against a walk over every minute that clocks show."""

from __future__ import annotations

from dataclasses import astuple
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odcd.slurm.complaints import Complaints
from odcd.slurm.cron_fields import Schedule, parse_schedule
from tests.support.harness.database import Sql

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
CHANGES = {
    "Europe/Berlin": ("2026-03-29T01:00", "2026-10-25T01:00"),
    "America/New_York": ("2026-03-08T07:00", "2026-11-01T06:00"),
    "America/Havana": ("2026-03-08T05:00", "2026-11-01T05:00"),  # at midnight
    "Australia/Lord_Howe": ("2026-10-03T15:30", "2026-04-04T15:00"),  # half an hour
    "Pacific/Apia": ("2011-12-30T10:00",),  # a day without hours
    "Asia/Kathmandu": ("2026-03-01T00:00",),  # never
    "UTC": ("2026-03-01T00:00",),
}
HERE = [(zone, datetime.fromisoformat(f"{at}Z")) for zone, all in CHANGES.items() for at in all]


def schedule_of(text: str) -> Schedule:
    complaints = Complaints()
    parsed = parse_schedule([(1, word) for word in text.split()], "", complaints)
    complaints.check()
    assert parsed is not None
    return parsed


def next_of(sql: Sql, schedule: Schedule, zone: str, after: datetime) -> datetime | None:
    return sql.value(
        "select odc._next_cron($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        *(list(one) if isinstance(one, tuple) else one for one in astuple(schedule)), zone, after,
    )  # fmt: skip


def allows(schedule: Schedule, local: datetime) -> bool:
    day = local.day in schedule.days
    weekday = local.isoweekday() % 7 in schedule.weekdays
    return (
        local.minute in schedule.minutes
        and local.hour in schedule.hours
        and local.month in schedule.months
        and ((day or weekday) if schedule.any_day else (day and weekday))
    )


@cache
def minutes_near(zone: str, change: datetime) -> list[tuple[datetime, datetime]]:
    """Every minute of four days, and the local time that clocks show then."""
    clock = ZoneInfo(zone)
    begin = change.replace(second=0) - 2 * DAY
    moments = [begin + n * MINUTE for n in range(4 * 1440)]
    return [(at, at.astimezone(clock).replace(tzinfo=None)) for at in moments]


def walked(schedule: Schedule, zone: str, change: datetime) -> list[datetime]:
    """The occurrences of these days, from the local time of each minute and the latest one shown
    before."""
    found: list[datetime] = []
    latest = minutes_near(zone, change)[0][1]
    for at, local in minutes_near(zone, change):
        if schedule.every_hour:
            occurs = allows(schedule, local)
        else:
            # Every local time since the latest one: several after a gap, none the second time.
            count = max(0, (local - latest) // MINUTE)
            occurs = any(allows(schedule, latest + n * MINUTE) for n in range(1, count + 1))
            latest = max(latest, local)
        if occurs:
            found.append(at)
    return found


def field(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    pair = st.tuples(number, number).map(sorted)
    item = st.one_of(
        number.map(str),
        pair.map(lambda p: f"{p[0]}-{p[1]}"),
        st.tuples(pair, st.integers(1, 9)).map(lambda t: f"{t[0][0]}-{t[0][1]}/{t[1]}"),
        st.integers(2, min(12, high)).map(lambda n: f"*/{n}"),
        st.just("*"),
    )
    return st.one_of(st.just("*"), st.lists(item, min_size=1, max_size=3).map(",".join))


TIMES = st.tuples(field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 7))
LIST = st.lists(st.integers(0, 59), min_size=1, max_size=3).map(lambda m: ",".join(map(str, m)))
NEAR = st.tuples(LIST, field(0, 4) | st.integers(0, 4).map(str), *[st.just("*")] * 3)
"""Most of their occurrences are near a change of clocks."""


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    fields=st.one_of(TIMES, NEAR), here=st.sampled_from(HERE),
    seconds=st.integers(-30 * 3600, 30 * 3600) | st.integers(-4 * 3600, 4 * 3600),
)  # fmt: skip
def test_the_next_time_is_the_one_of_a_walk_over_every_minute(
    sql: Sql, fields: tuple[str, ...], here: tuple[str, datetime], seconds: int
) -> None:
    complaints = Complaints()
    schedule = parse_schedule([(1, word) for word in fields], "", complaints)
    if schedule is None:
        return  # a date that does not exist
    zone, change = here
    after = change + timedelta(seconds=seconds)
    found = next_of(sql, schedule, zone, after)
    walk = [at for at in walked(schedule, zone, change) if at > after]
    if walk:
        assert found == walk[0]
    else:
        assert found is None or found >= change + 2 * DAY


@pytest.mark.parametrize(("zone", "change"), HERE)
def test_each_time_of_day_near_a_change_of_clocks(sql: Sql, zone: str, change: datetime) -> None:
    for hour in ("23", "0", "1", "2", "3", "*", "*/2"):
        for minute in (0, 30):
            schedule = schedule_of(f"{minute} {hour} * * *")
            walk = walked(schedule, zone, change)
            for before in (-120, -90, -60, -1, 0, 1, 29, 60):
                after = change - before * MINUTE
                expected = next(at for at in walk if at > after)
                assert next_of(sql, schedule, zone, after) == expected, (minute, hour, after)


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"{text}Z").replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("times", "zone", "after", "expected"),
    [
        # 02:30 does not exist that day: it runs at the end of the gap, and once.
        ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00", "2026-03-29T01:00"),
        ("30 2 * * *", "Europe/Berlin", "2026-03-29T01:00", "2026-03-30T00:30"),
        ("*/5 2 * * *", "Europe/Berlin", "2026-03-29T01:00", "2026-03-30T00:00"),
        # 02:30 exists twice that day: the first one counts.
        ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00", "2026-10-25T00:30"),
        ("30 2 * * *", "Europe/Berlin", "2026-10-25T00:30", "2026-10-26T01:30"),
        # An entry for every hour follows the clock.
        ("30 * * * *", "Europe/Berlin", "2026-10-25T00:30", "2026-10-25T01:30"),
        ("30 * * * *", "Europe/Berlin", "2026-03-29T00:30", "2026-03-29T01:30"),
        ("0 0 29 2 *", "UTC", "2096-03-01T00:00", "2104-02-29T00:00"),
        ("0 0 29 2 */7", "UTC", "2048-03-01T00:00", "2060-02-29T00:00"),
        ("0 12 13 * fri", "UTC", "2026-11-02T00:00", "2026-11-06T12:00"),
        ("0 12 */2 * fri", "UTC", "2026-11-02T00:00", "2026-11-13T12:00"),
        ("0 0 31 * *", "UTC", "2026-11-01T00:00", "2026-12-31T00:00"),
        ("0 0 * * 7", "UTC", "2026-11-02T00:00", "2026-11-08T00:00"),
    ],
)
def test_known_times(sql: Sql, times: str, zone: str, after: str, expected: str) -> None:
    assert next_of(sql, schedule_of(times), zone, at(after)) == at(expected)


def test_a_date_that_does_not_exist_never_occurs(sql: Sql) -> None:
    schedule = Schedule(
        minutes=(0,), hours=(0,), days=(30,), months=(2,), weekdays=tuple(range(7)),
        any_day=False, every_hour=False,
    )  # fmt: skip
    assert next_of(sql, schedule, "UTC", at("2026-01-01T00:00")) is None
