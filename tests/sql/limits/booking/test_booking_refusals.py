"""Refused bookings, and the reasons in the errors."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from odcd.errors import BY_CODE, BookingConflict, NotOwner, OdcError, UnknownBooking, WrongState
from tests.sql.limits.booking.desk import DAY, HOUR, Desk
from tests.support.builders.jobs import ALICE, NOW

REFUSALS: dict[str, tuple[dict[str, Any], str, str]] = {
    "in-the-past": ({"starts_at": NOW - timedelta(seconds=1)}, "OD010", "2025-12-31T23:59:59Z"),
    "end-before-start": ({"ends_at": NOW + timedelta(hours=1)}, "OD010", "2026-01-01T01:00:00Z"),
    "end-at-start": ({"ends_at": NOW + timedelta(hours=2)}, "OD010", "2026-01-01T02:00:00Z"),
    "empty-window": ({"duration_s": 0}, "OD010", "cannot last 0 s"),
    "negative-window": ({"duration_s": -5}, "OD010", "cannot last -5 s"),
    "endless-window": ({"duration_s": 2**40}, "OD010", "more than ten years"),
    "far-away": ({"starts_at": NOW + timedelta(days=4000)}, "OD010", "2036-12-14"),
    "no-end": ({"duration_s": None}, "OD010", "has no end"),
    "end-twice": (
        {"duration_s": 60, "ends_at": NOW + timedelta(hours=3)}, "OD010", "end and a duration"),
    "no-start": ({"starts_at": None}, "OD010", "has no start time"),
    "daily-overlaps-itself": (
        {"repeats": "daily", "duration_s": DAY + 1}, "OD010", "repeats daily overlaps itself"),
    "weekdays-overlap-themselves": (
        {"repeats": "weekdays", "duration_s": DAY + 1}, "OD010", "overlaps itself"),
    "weekly-overlaps-itself": (
        {"repeats": "weekly", "duration_s": 7 * DAY + 1}, "OD010", "7-00:00:01 that repeats"),
    "until-before-start": (
        {"repeats": "daily", "until": NOW + timedelta(hours=1)}, "OD010", "2026-01-01T01:00:00Z"),
    "until-of-one": ({"until": NOW + timedelta(days=9)}, "OD010", "bookings that repeat"),
    "unknown-node": ({"node_list": ["h100-1", "h100-9"]}, "OD007", '"h100-9"'),
    "unknown-type": ({"node_list": None, "gpu_type": "h1000"}, "OD005", '"h1000"'),
    "unknown-partition": ({"partition": "nope"}, "OD001", '"nope"'),
    "unknown-user": ({"users": ["alice", "mallory"]}, "OD010", '"mallory"'),
    "unknown-account": ({"accounts": ["nope"]}, "OD002", '"nope"'),
    "nobody": ({"users": []}, "OD010", "neither users nor accounts"),
    "owned-maintenance": ({"kind": "maintenance", "users": ["alice", "bob"]}, "OD010", "no owners"),
    "forced-use": ({"ignore_running": True}, "OD010", "only a maintenance booking"),
    "no-nodes": ({"node_list": None}, "OD010", "names no nodes"),
    "nodes-twice": ({"node_list": ["h100-1"], "gpu_type": "h100"}, "OD010", "list of nodes"),
    "all-and-more": ({"node_list": None, "all_nodes": True, "node_count": 2}, "OD010", '"all"'),
    "no-count": ({"node_list": None, "node_count": 0}, "OD010", "0 nodes"),
    "too-many": (
        {"node_list": None, "gpu_type": "h100", "node_count": 5}, "OD008",
        '5 nodes of type "h100", but there are 4'),
    "type-without-nodes": (
        {"node_list": None, "gpu_type": "b200"}, "OD008", '1 node of type "b200"'),
    "bad-name": ({"name": "a b"}, "OD010", '"a b"'),
    "no-name": ({"name": None}, "OD010", "not a valid booking name"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS)
def test_invalid_bookings_are_refused_with_code_value_and_hint(desk: Desk, case: str) -> None:
    ask, code, value = REFUSALS[case]
    with pytest.raises(OdcError) as refused:
        desk.request({"name": "b", "node_list": ["h100-1"], **ask})
    assert type(refused.value) is BY_CODE[code]
    assert value in refused.value.message
    assert refused.value.hint
    assert desk.sql.value("select count(*) from odc.booking") == 0


def test_only_operators_book_change_and_delete(desk: Desk) -> None:
    for do in (
        lambda: desk.create(who=ALICE, node_list=["h100-1"]),
        lambda: desk.edit(who=ALICE, comment="x"),
        lambda: desk.delete(who=ALICE),
    ):
        with pytest.raises(NotOwner, match="user alice may not"):
            do()


def test_a_name_is_unique_among_current_bookings(desk: Desk) -> None:
    desk.create("b", node_list=["h100-1"])
    with pytest.raises(BookingConflict, match='booking "b" already exists'):
        desk.create("b", node_list=["h100-2"])
    desk.delete("b")
    desk.create("b", node_list=["h100-1"])
    assert desk.list(ended=True) == ["b", "b"]


def test_a_conflict_names_the_booking_the_time_and_the_nodes(desk: Desk) -> None:
    desk.create("one", node_list=["h100-1", "h100-2"])
    desk.create("two", node_list=["h100-3"], starts_at=desk.at(2.5 * HOUR))
    with pytest.raises(BookingConflict) as refused:
        desk.create("three", gpu_type="h100", starts_at=desk.at(1.5 * HOUR), duration_s=2 * HOUR)
    assert refused.value.message == (
        "of the 4 nodes that it needs, only 1 is free of other bookings at that time: "
        'h100-[1-2] are booked by "one" from 2026-01-01T02:00:00Z to 2026-01-01T03:00:00Z; '
        'h100-3 is booked by "two" from 2026-01-01T02:30:00Z to 2026-01-01T03:30:00Z'
    )
    assert "booking list" in (refused.value.hint or "")


def test_bookings_that_touch_do_not_conflict(desk: Desk) -> None:
    desk.create("one", node_list=["h100-1"])
    desk.create("before", node_list=["h100-1"], starts_at=desk.at(HOUR))
    desk.create("after", node_list=["h100-1"], starts_at=desk.at(3 * HOUR))
    assert desk.list() == ["before", "one", "after"]


def test_a_conflict_is_found_at_a_later_occurrence(desk: Desk) -> None:
    """2026-01-01 is a Thursday: the daily one meets the weekly one on Monday the 5th."""
    desk.create("weekly", node_list=["l4-1"], starts_at=desk.at(4 * DAY), repeats="weekly")
    with pytest.raises(BookingConflict, match='"weekly" from 2026-01-05T00:00:00Z'):
        desk.create("daily", node_list=["l4-1"], starts_at=desk.at(1800), repeats="weekdays")
    desk.create(
        "ends", node_list=["l4-1"], starts_at=desk.at(1800), repeats="daily", until=desk.at(3 * DAY)
    )


def test_running_jobs_that_reach_into_the_window_are_named(desk: Desk) -> None:
    long = desk.queue.submit(gpus_per_node=8, node_list=["h100-1"], time_limit_s=3 * HOUR)
    longer = desk.queue.submit(gpus_per_node=8, node_list=["h100-2"], time_limit_s=4 * HOUR)
    short = desk.queue.submit(gpus_per_node=8, node_list=["h100-3"], time_limit_s=HOUR)
    assert sorted(desk.queue.start()) == [long, longer, short]
    with pytest.raises(BookingConflict) as refused:
        desk.create(gpu_type="h100", node_count=3)
    assert refused.value.message == (
        "running jobs overlap the booking on 2 of 4 nodes (it needs 3): "
        f"job {long} on h100-1 until 2026-01-01T03:00:00Z, "
        f"job {longer} on h100-2 until 2026-01-01T04:00:00Z"
    )
    assert refused.value.hint == "Start the booking at 2026-01-01T03:00:00Z or later."
    desk.create(gpu_type="h100", node_count=3, starts_at=desk.at(3 * HOUR))
    assert desk.show()["node_names"] == ["h100-1", "h100-3", "h100-4"]


def test_maintenance_can_be_forced_over_running_jobs(desk: Desk) -> None:
    job = desk.queue.submit(gpus_per_node=8, node_list=["h100-1"], time_limit_s=3 * HOUR)
    desk.queue.start()
    with pytest.raises(BookingConflict) as refused:
        desk.create(kind="maintenance", node_list=["h100-1"])
    assert f"job {job} on h100-1" in refused.value.message
    assert "--force" in (refused.value.hint or "")
    made = desk.create(kind="maintenance", node_list=["h100-1"], ignore_running=True)
    assert made["node_names"] == ["h100-1"]
    assert desk.queue.state(job) == "CONFIGURING"


def test_a_job_without_a_limit_reaches_into_every_window(desk: Desk) -> None:
    desk.sql.execute("update odc.partition set max_time_limit_s = null")
    job = desk.queue.submit(gpus_per_node=8, node_list=["h100-1"], time_limit_s=2**31 - 1)
    desk.queue.start()
    with pytest.raises(
        BookingConflict, match=f"job {job} on h100-1 without a time limit"
    ) as refused:
        desk.create(node_list=["h100-1"], starts_at=desk.at(300 * DAY))
    assert "no time limit" in (refused.value.hint or "")


def test_unknown_and_past_bookings_cannot_be_changed(desk: Desk) -> None:
    with pytest.raises(UnknownBooking) as unknown:
        desk.edit("b", comment="x")
    assert unknown.value.hint == "There are no bookings now."
    desk.create(node_list=["h100-1"])
    desk.delete()
    with pytest.raises(WrongState, match='booking "b" was deleted at 2026-01-01T00:00:00Z'):
        desk.delete()
    with pytest.raises(UnknownBooking):
        desk.show("c")


def test_an_edit_is_checked_as_a_new_booking_is(desk: Desk) -> None:
    desk.create("one", node_list=["h100-1"])
    desk.create("two", node_list=["h100-1"], starts_at=desk.at(3 * HOUR))
    for ask, code in (
        ({"duration_s": 2 * HOUR}, "OD019"),
        ({"starts_at": desk.at(-1)}, "OD010"),
        ({"name": "two"}, "OD019"),
        ({"users": []}, "OD010"),
        ({"repeats": "weekly", "node_list": ["nope"]}, "OD007"),
        ({}, "OD010"),
    ):
        with pytest.raises(BY_CODE[code]):
            desk.edit("one", **ask)
    assert desk.show("one")["ends_at"] == "2026-01-01T03:00:00Z"
