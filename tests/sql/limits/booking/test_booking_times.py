"""The windows of bookings, and which of them overlap."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odcd.errors import BookingConflict
from tests.sql.limits.booking.desk import DAY, HOUR, Desk
from tests.support.builders.jobs import NOW

WEEK = timedelta(days=7)
ASKS = st.fixed_dictionaries(
    {
        "starts_at": st.integers(0, 20 * 24).map(lambda h: NOW + timedelta(hours=h)),
        "duration_s": st.integers(1, 20).map(lambda h: h * HOUR),
        "repeats": st.sampled_from(["none", "daily", "weekly", "weekdays"]),
        "until": st.none() | st.integers(0, 30 * 24).map(lambda h: timedelta(hours=h)),
    }
)


def occurrences(ask: dict[str, Any], count: int) -> Iterator[tuple[datetime, datetime]]:
    """The windows by counting days, as in a calendar."""
    at, length = ask["starts_at"], timedelta(seconds=ask["duration_s"])
    for day in range(count):
        start = at + timedelta(days=day)
        match ask["repeats"]:
            case "none":
                on = day == 0
            case "weekly":
                on = day % 7 == 0
            case "weekdays":
                on = start.astimezone(UTC).weekday() < 5
            case _:
                on = True
        if on and (ask.get("until") is None or start <= ask["until"]):
            yield start, start + length


def settle(ask: dict[str, Any]) -> dict[str, Any]:
    """until as a time, if there is one."""
    until = ask["until"]
    plain = {**ask, "until": None}
    if until is not None and ask["repeats"] != "none":
        first = next(iter(occurrences(plain, 8)))[0]
        plain["until"] = first + until
    return plain


@pytest.mark.long
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(mine=ASKS, theirs=ASKS, gone=st.integers(0, 30 * 24))
def test_two_bookings_are_refused_exactly_when_some_occurrences_overlap(
    desk: Desk, mine: dict[str, Any], theirs: dict[str, Any], gone: int
) -> None:
    """gone: hours after which the second is requested; only later windows may overlap."""
    mine, theirs = settle(mine), settle(theirs)
    now = NOW + timedelta(hours=gone)
    theirs["starts_at"] += timedelta(hours=gone)
    if theirs["until"] is not None:
        theirs["until"] += timedelta(hours=gone) + timedelta(days=3)
    meet = [
        (a, b)
        for a in occurrences(mine, 200)
        for b in occurrences(theirs, 100)
        if a[0] < b[1] and b[0] < a[1]
    ]
    try:
        desk.queue.now = NOW
        desk.create("mine", node_list=["l4-1"], **mine)
        desk.queue.now = now
        desk.queue.sweep()
        if not meet:
            desk.create("theirs", node_list=["l4-1"], **theirs)
            return
        first = min(meet, key=lambda pair: max(pair[0][0], pair[1][0]))[0]
        with pytest.raises(BookingConflict) as refused:
            desk.create("theirs", node_list=["l4-1"], **theirs)
        assert f"from {first[0]:%Y-%m-%dT%H:%M:%SZ} to" in refused.value.message
    finally:
        desk.sql.execute("delete from odc.booking")
        desk.queue.now = NOW


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(ask=ASKS, later=st.integers(0, 40 * 24 * 60))
def test_the_planner_sees_the_windows_of_the_calendar(
    desk: Desk, ask: dict[str, Any], later: int
) -> None:
    ask = settle(ask)
    now = NOW + timedelta(minutes=later)
    expected = [pair for pair in occurrences(ask, 200) if pair[1] > now]
    try:
        desk.queue.now = NOW
        desk.create(node_list=["l4-1"], **ask)
        desk.queue.now = now
        found = [(start, end) for _, start, end, _ in desk.windows()]
        desk.queue.sweep()
        state = desk.show()["state"]
    finally:
        desk.sql.execute("delete from odc.booking")
        desk.queue.now = NOW
    far = [pair for pair in expected if pair[0] < now + timedelta(days=60)]
    assert found[: len(far)] == far
    assert found == expected[: len(found)]
    assert bool(found) == bool(expected)
    on = bool(expected) and expected[0][0] <= now
    assert state == ("ACTIVE" if on else "PLANNED" if expected else "ENDED")


def test_weekdays_begin_on_the_first_one_and_leave_the_weekend_out(desk: Desk) -> None:
    """Saturday 2026-01-03."""
    made = desk.create(
        node_list=["l4-1"], starts_at=desk.at(2 * DAY), repeats="weekdays", duration_s=DAY
    )
    assert made["starts_at"] == "2026-01-05T00:00:00Z"
    assert [start.day for _, start, _, _ in desk.windows()][:6] == [5, 6, 7, 8, 9, 12]


def test_a_daily_booking_keeps_its_hour_over_the_ends_of_months_and_leap_years(desk: Desk) -> None:
    desk.queue.now = datetime(2028, 2, 27, tzinfo=UTC)
    desk.create(node_list=["l4-1"], starts_at=desk.at(18 * HOUR), repeats="daily", duration_s=HOUR)
    desk.create("week", node_list=["l4-2"], starts_at=desk.at(18 * HOUR), repeats="weekly")
    ids = {row["name"]: row["id"] for row in desk.sql.rows("select id, name from odc.node")}
    days = [f"{s:%m-%d %H}" for node, s, _, _ in desk.windows() if node == ids["l4-1"]]
    assert days[:4] == ["02-27 18", "02-28 18", "02-29 18", "03-01 18"]
    assert days[32:35] == ["03-30 18", "03-31 18", "04-01 18"]
    weeks = [f"{s:%m-%d %H}" for node, s, _, _ in desk.windows() if node == ids["l4-2"]]
    assert weeks[:3] == ["02-27 18", "03-05 18", "03-12 18"]


def test_windows_come_in_order_of_time_then_node(desk: Desk) -> None:
    desk.create("late", node_list=["h100-1", "l4-1"], starts_at=desk.at(5 * HOUR))
    desk.create("early", node_list=["l4-2", "h100-2"], starts_at=desk.at(HOUR))
    keys = [(start, node) for node, start, _, _ in desk.windows()]
    assert keys == sorted(keys)
    assert len(keys) == 4


def test_a_distant_repeated_booking_is_considered(desk: Desk) -> None:
    desk.create(node_list=["l4-1"], starts_at=desk.at(90 * DAY), repeats="weekly")
    assert desk.windows()[0][1] == desk.at(90 * DAY)


def test_a_booking_has_an_event_for_each_start_and_end(desk: Desk) -> None:
    desk.create(node_list=["l4-1"], repeats="daily", until=desk.at(DAY + 2 * HOUR))
    assert desk.queue.sweep() == desk.at(60)
    states: list[str] = []
    for hours in (2, 2.9, 3, 26, 27, 28):
        desk.queue.now = NOW + timedelta(hours=hours)
        due = desk.queue.sweep()
        assert due <= desk.at(60)
        states.append(desk.show()["state"])
    assert states == ["ACTIVE", "ACTIVE", "PLANNED", "ACTIVE", "ENDED", "ENDED"]
    assert desk.events() == [
        ("booking_created", "root"), ("booking_began", "odcd"), ("booking_paused", "odcd"),
        ("booking_began", "odcd"), ("booking_ended", "odcd"),
    ]  # fmt: skip
    assert desk.list() == []


def test_the_next_sweep_is_when_a_booking_begins_or_ends(desk: Desk) -> None:
    desk.create(node_list=["l4-1"], starts_at=desk.at(30), duration_s=20)
    assert desk.queue.sweep() == NOW + timedelta(seconds=30)
    desk.queue.move(30)
    assert desk.queue.sweep() == NOW + timedelta(seconds=50)


def test_an_edit_changes_only_the_given_fields(desk: Desk) -> None:
    desk.create(node_list=["l4-1"], repeats="daily", comment="x")
    edited = desk.edit(ends_at=desk.at(5 * HOUR), comment=None)
    assert (edited["starts_at"], edited["ends_at"]) == (
        "2026-01-01T02:00:00Z", "2026-01-01T05:00:00Z",
    )  # fmt: skip
    assert (edited["repeats"], edited["comment"]) == ("daily", None)
    desk.queue.move(DAY + 2.5 * HOUR)
    desk.queue.sweep()
    assert desk.edit(ends_at=desk.at(HOUR))["ends_at"] == "2026-01-02T03:30:00Z"
    once = desk.edit(repeats="none")
    assert (once["starts_at"], once["ends_at"], once["state"]) == (
        "2026-01-02T02:00:00Z", "2026-01-02T03:30:00Z", "ACTIVE",
    )  # fmt: skip
    assert desk.edit(starts_at=desk.at(HOUR))["state"] == "PLANNED"
