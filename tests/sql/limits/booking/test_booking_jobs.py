"""Jobs and bookings: who may name one, how passes apply it, and the fate of its jobs."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from odcd.errors import (
    LimitExceeded,
    NeverFits,
    NotOwner,
    OdcError,
    UnknownBooking,
    WrongState,
)  # fmt: skip
from tests.sql.limits.booking.desk import DAY, HOUR, Desk
from tests.support.builders.jobs import ALICE, BOB, NOW, ROOT, Queue, a_cluster, a_job, submit


def explain(desk: Desk, job_id: int) -> dict[str, Any]:
    return json.loads(desk.sql.value("select odc.explain_job($1, $2)", job_id, desk.now))


# -- submit ---------------------------------------------------------------------------------------


def test_an_owners_job_carries_its_booking(desk: Desk) -> None:
    desk.create(node_list=["h100-1"])
    job = desk.queue.submit(booking="b", gpus=1, time_limit_s=600)
    assert desk.queue.shape(job)["booking_id"] == desk.show()["id"]
    assert desk.show()["jobs"] == [job]
    [shown] = json.loads(desk.sql.value("select odc.show_jobs($1, null, $2)", job, desk.now))
    assert shown["booking"] == "b"


def test_a_default_time_limit_is_shortened_to_the_window(desk: Desk) -> None:
    desk.create(node_list=["h100-1"])
    assert desk.queue.pending(desk.queue.submit(booking="b", gpus=1))["time_limit_s"] == HOUR


SUBMITS: dict[str, tuple[dict[str, Any], type[OdcError], str]] = {
    "unknown": ({"booking": "c"}, UnknownBooking, 'booking "c" does not exist'),
    "too-long": (
        {"time_limit_s": HOUR + 1}, LimitExceeded,
        'time limit 1:00:01 is longer than the 1:00:00 of booking "b"'),
    "unlimited": ({"time_limit_s": 2**31 - 1}, LimitExceeded, "UNLIMITED"),
    "too-late": (
        {"begin_at": NOW + timedelta(hours=3)}, WrongState,
        'booking "b" ends before the job may start at 2026-01-01T03:00:00Z'),
    "rest-too-short": (
        {"begin_at": NOW + timedelta(hours=2.5), "time_limit_s": 1801}, LimitExceeded, " 30:00"),
    "too-many-nodes": (
        {"node_count": 3, "gpus_per_node": 8}, NeverFits, 'there are 2 in booking "b"'),
    "wrong-type": (
        {"gpu_type": "l4", "gpus": 1}, NeverFits, 'is in booking "b" (h100-[1-2])'),
    "other-nodes": ({"node_list": ["h100-3"]}, NeverFits, 'is in booking "b" (h100-[1-2])'),
}  # fmt: skip


@pytest.mark.parametrize("case", SUBMITS)
def test_a_job_that_could_never_run_in_its_booking_is_refused(desk: Desk, case: str) -> None:
    desk.sql.execute("update odc.partition set max_time_limit_s = null")
    desk.create(node_list=["h100-1", "h100-2"])
    fields, kind, text = SUBMITS[case]
    refused = desk.queue.refused(**{"booking": "b", "time_limit_s": 600, **fields})
    assert type(refused) is kind
    assert text in refused.message
    assert refused.hint


def test_only_owners_and_operators_may_name_a_booking(desk: Desk) -> None:
    desk.create(node_list=["h100-1"])
    refused = desk.queue.refused(BOB, booking="b", time_limit_s=60)
    assert (type(refused), refused.message) == (
        NotOwner, 'booking "b" is not for user bob and account "default"',
    )  # fmt: skip
    assert refused.hint == "Leave --reservation out, or ask an operator to add you."
    desk.queue.submit(ROOT, booking="b", time_limit_s=60)
    desk.edit(accounts=["default"])
    desk.queue.submit(BOB, booking="b", time_limit_s=60)
    desk.create("works", kind="maintenance", node_list=["h100-2"])
    assert type(desk.queue.refused(ALICE, booking="works", time_limit_s=60)) is NotOwner


def test_owners_are_the_users_of_accounts_below_too(desk: Desk) -> None:
    desk.sql.execute(
        "insert into odc.account (name, parent) select 'lab', id from odc.account "
        "where name = 'default'"
    )
    desk.sql.execute(
        "insert into odc.account (name, parent) select 'team', id from odc.account where name='lab'"
    )
    desk.create(node_list=["h100-1"], users=[], accounts=["lab"])
    desk.queue.submit(BOB, booking="b", account="team", time_limit_s=60)
    assert type(desk.queue.refused(BOB, booking="b", time_limit_s=60)) is NotOwner


def test_a_repeated_booking_takes_a_job_that_fits_the_next_window(desk: Desk) -> None:
    desk.create(node_list=["h100-1"], repeats="daily", until=desk.at(DAY + 2 * HOUR))
    desk.queue.move(2.5 * HOUR)
    desk.queue.sweep()
    desk.queue.submit(booking="b", time_limit_s=HOUR)
    desk.queue.move(DAY)
    desk.queue.sweep()
    assert type(desk.queue.refused(booking="b", time_limit_s=HOUR)) is LimitExceeded
    desk.queue.move(HOUR)
    refused = desk.queue.refused(booking="b", time_limit_s=60)
    desk.queue.sweep()
    over = desk.queue.refused(booking="b", time_limit_s=60)
    assert {type(refused), type(over)} == {WrongState}
    assert "ended at 2026-01-02T03:30:00Z" in over.message


# -- the end of a booking -------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["deleted", "ended"])
def test_pending_jobs_of_a_booking_that_is_over_are_held_with_a_reason(
    desk: Desk, how: str
) -> None:
    desk.create(node_list=["h100-1"])
    job = desk.queue.submit(booking="b", gpus=1, time_limit_s=600)
    array = desk.queue.submit(booking="b", gpus=1, time_limit_s=600, array="0-3")
    late = desk.queue.submit(booking="b", gpus=1, time_limit_s=600, begin_at=desk.at(2.5 * HOUR))
    other = desk.queue.submit(gpus=1, time_limit_s=600)
    if how == "deleted":
        desk.delete()
    else:
        desk.queue.move(3 * HOUR)
        desk.queue.sweep()
    for held in (job, array, late):
        assert (desk.queue.pending(held)["held"], desk.queue.pending(held)["ready"]) == (
            "user", False,
        )  # fmt: skip
        explanation = explain(desk, held)
        assert explanation["reason"] == "ReservationDeleted"
        cause = explanation["why"][0]
        assert cause["cause"] == "booking"
        assert f'its booking "b" {how.replace("del", "was del")} at' in (cause["text"])
        assert desk.queue.events(held)[-1] == "held"
    assert desk.queue.pending(other)["held"] is None
    assert desk.queue.release(job) == {job: "OD012"}
    assert desk.queue.start() == [other]
    assert desk.queue.update(job, array, changes={"booking": None}) == {
        job: "updated", array: "updated",
    }  # fmt: skip
    assert len(desk.queue.start()) == 5
    assert desk.queue.contradictions() == []


def test_a_held_job_whose_booking_is_over_is_held_again_when_released(desk: Desk) -> None:
    desk.create(node_list=["h100-1"])
    job = desk.queue.submit(booking="b", gpus=1, time_limit_s=600, hold=True)
    desk.delete()
    assert desk.queue.pending(job)["reason"] is None
    desk.queue.release(job)
    desk.queue.sweep()
    assert desk.queue.pending(job)["reason"] == "ReservationDeleted"


def test_running_jobs_go_on_to_their_limit_when_their_booking_is_deleted(desk: Desk) -> None:
    desk.create(node_list=["h100-1"], starts_at=desk.at(0))
    job = desk.queue.submit(booking="b", gpus=1, time_limit_s=HOUR)
    assert desk.queue.start() == [job]
    desk.delete()
    desk.queue.sweep()
    assert desk.queue.running(job)["ends_at"] == desk.at(HOUR)
    assert desk.queue.running(job)["intent"] is None


def test_an_update_moves_a_job_into_a_booking_and_out(desk: Desk) -> None:
    desk.create(node_list=["h100-1"])
    job = desk.queue.submit(gpus=1, time_limit_s=600)
    bobs = desk.queue.submit(BOB, gpus=1, time_limit_s=600)
    long = desk.queue.submit(gpus=1, time_limit_s=2 * HOUR)
    wide = desk.queue.submit(node_count=2, gpus_per_node=8, time_limit_s=600)
    change = {"booking": "b"}
    assert desk.queue.update(job, changes=change) == {job: "updated"}
    assert desk.queue.shape(job)["booking_id"] == desk.show()["id"]
    assert desk.queue.update(bobs, changes=change, who=BOB) == {bobs: "OD013"}
    assert desk.queue.update(long, changes=change) == {long: "OD009"}
    assert desk.queue.update(wide, changes=change) == {wide: "OD008"}
    assert desk.queue.update(job, changes={"booking": "x"}) == {job: "OD018"}
    assert desk.queue.update(job, changes={"time_limit_s": 2 * HOUR}) == {job: "OD009"}
    assert desk.queue.update(job, changes={"booking": None, "time_limit_s": 2 * HOUR}) == {
        job: "updated"
    }
    assert desk.queue.shape(job)["booking_id"] is None


# -- the pass -------------------------------------------------------------------------------------


@pytest.mark.parametrize("joins", ["nestloop", "hashjoin", "mergejoin"])
def test_bookings_in_the_way_are_listed_soonest_first(queue: Queue, joins: str) -> None:
    """The order does not depend on the query plan."""
    desk = Desk(queue)
    desk.create("later", node_list=["h100-1"], starts_at=desk.at(3 * HOUR))
    desk.create("sooner", node_list=["h100-2"], starts_at=desk.at(HOUR))
    job = queue.submit(gpus=8, time_limit_s=DAY)
    for other in {"nestloop", "hashjoin", "mergejoin"} - {joins}:
        queue.sql.execute(f"set local enable_{other} = off")
    texts = [row["text"] for row in desk.why(job)]
    assert ["sooner" in text for text in texts] == [True, False], texts


def test_a_short_job_is_backfilled_up_to_the_window_and_a_long_one_waits(queue: Queue) -> None:
    desk = Desk(queue)
    desk.create(node_list=["h100-1", "h100-2"], kind="maintenance", starts_at=desk.at(HOUR))
    long = queue.submit(gpus=8, time_limit_s=HOUR + 1)
    exact = queue.submit(gpus=8, time_limit_s=HOUR)
    short = queue.submit(gpus=8, time_limit_s=600)
    assert sorted(queue.start()) == [exact, short]
    planned = queue.sql.value("select planned_start_at from odc.planned where job_id = $1", long)
    assert planned == desk.at(2 * HOUR)
    queue.move(HOUR)
    queue.end(exact, short)
    queue.sweep()
    assert queue.start() == []
    queue.move(HOUR)
    queue.sweep()
    assert queue.start() == [long]


def test_only_the_owners_jobs_start_in_the_window(queue: Queue) -> None:
    desk = Desk(queue)
    desk.create(node_list=["h100-1"], starts_at=desk.at(HOUR))
    mine = queue.submit(ALICE, gpus=8, time_limit_s=HOUR, booking="b")
    plain = queue.submit(
        ALICE, gpus=8, time_limit_s=HOUR, node_list=["h100-1"], begin_at=desk.at(1)
    )
    assert queue.start() == []
    queue.move(HOUR)
    queue.sweep()
    assert queue.start() == [mine]
    assert queue.state(plain) == "PENDING"
    names = queue.sql.values(
        "select n.name from odc.allocation as a join odc.node as n on n.id = a.node_id "
        "where a.job_id = $1", mine,
    )  # fmt: skip
    assert names == ["h100-1"]


def test_a_job_in_a_booking_must_end_with_the_window(queue: Queue) -> None:
    desk = Desk(queue)
    desk.create(node_list=["h100-1"], starts_at=desk.at(HOUR), repeats="daily")
    job = queue.submit(gpus=8, time_limit_s=HOUR, booking="b")
    queue.move(HOUR + 1)
    queue.sweep()
    assert queue.start() == []
    assert "too soon for its time limit of 1:00:00" in desk.why(job)[0]["text"]
    queue.now = NOW + timedelta(days=1, hours=1)
    queue.sweep()
    assert queue.start() == [job]


def test_forced_maintenance_keeps_running_jobs_and_starts_none(queue: Queue) -> None:
    desk = Desk(queue)
    running = queue.submit(gpus=8, time_limit_s=3 * HOUR, node_list=["h100-1"])
    assert queue.start() == [running]
    desk.create(node_list=["h100-1"], kind="maintenance", ignore_running=True)
    small = queue.submit(gpus=1, time_limit_s=3 * HOUR, node_list=["h100-1"])
    queue.end(running)
    assert queue.start() == []
    assert queue.state(small) == "PENDING"


def strangers(desk: Desk) -> list[dict[str, Any]]:
    """Jobs on nodes and at times that are another's: who started since the booking was made and
    runs into a window without being of it, or out of the window of its own."""
    return desk.sql.rows(
        "select w.*, r.job_id, r.started_at, r.ends_at as job_ends_at "
        "from odc._plan_bookings($1) as w join odc.booking as b on b.id = w.booking_id "
        "join odc.allocation as a on a.node_id = w.node_id "
        "join odc.running as r on r.job_id = a.job_id join odc.shape as s on s.id = r.shape_id "
        "where r.started_at >= b.created_at and r.ends_at > w.starts_at "
        "and r.started_at < w.ends_at and (s.booking_id is distinct from w.booking_id "
        "or r.started_at < w.starts_at or r.ends_at > w.ends_at)",
        desk.now,
    )


def a_busy_day(queue: Queue, chance: random.Random) -> int:
    """Bookings made and deleted, nodes lost, jobs in and outside bookings; the promise is checked
    after every pass. How many jobs started in bookings."""
    a_cluster(queue.sql, h100=3, l4=2)
    desk = Desk(queue)
    booked = 0
    queue.sql.execute(
        "update odc.partition set policy = $1, placement = $2",
        chance.choice(["fifo", "wfp3", "odc", "sjf"]), chance.choice(["pack", "spread"]),
    )  # fmt: skip
    for step in range(30):
        live = desk.list()
        match chance.randrange(8):
            case 0 | 1:
                with suppress(OdcError):
                    desk.create(
                        f"b{step}", starts_at=desk.at(chance.choice([0, 600, 1800, 2 * HOUR])),
                        duration_s=chance.choice([900, HOUR, 3 * HOUR]), users=["alice"],
                        repeats=chance.choice(["none", "none", "daily"]),
                        kind=chance.choice(["use", "use", "maintenance"]),
                        **chance.choice([
                            {"gpu_type": "h100", "node_count": 1}, {"gpu_type": "l4"},
                            {"node_count": 2}, {"node_list": ["h100-1", "l4-2"]},
                        ]),
                    )  # fmt: skip
            case 2 if live and chance.random() < 0.5:
                desk.delete(chance.choice(live))
            case 3:
                desk.node(chance.choice(["h100-2", "l4-1"]), chance.choice(["DOWN", "UP", "UP"]))
            case _:
                usable = [name for name in live if desk.show(name)["kind"] == "use"]
                job = a_job(
                    booking=chance.choice([None, *usable]), node_count=chance.choice([1, 1, 2]),
                    gpus_per_node=chance.choice([1, 4, 8]),
                    time_limit_s=chance.choice([300, 900, 1800, HOUR, 4 * HOUR]),
                )  # fmt: skip
                submit(queue.sql, job, now=queue.now)
        queue.move(chance.choice([0, 1, 300, 900, 1800]))
        queue.sweep()
        queue.end(*queue.sql.values(
            "select job_id from odc.running where ends_at <= $1 or $2 order by 1",
            queue.now, chance.random() < 0.1,
        ))  # fmt: skip
        started = queue.start()
        booked += queue.sql.value(
            "select count(*) from odc.running as r join odc.shape as s on s.id = r.shape_id "
            "where r.job_id = any ($1) and s.booking_id is not null", started,
        )  # fmt: skip
        assert strangers(desk) == []
        assert queue.contradictions() == []
    return booked


@pytest.mark.long
def test_no_other_users_job_ever_runs_in_a_window(queue: Queue) -> None:
    booked = 0
    for seed in range(5):
        with queue.sql.trial():
            booked += a_busy_day(queue, random.Random(f"booking/{seed}"))
        queue.now = NOW
    assert booked >= 5


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100))
def test_no_other_users_job_ever_runs_in_a_window_for_long(queue: Queue, seed: int) -> None:
    a_busy_day(queue, random.Random(f"booking/long/{seed}"))


# -- why ------------------------------------------------------------------------------------------


def test_why_names_the_booking_when_and_what_would_fit(queue: Queue) -> None:
    desk = Desk(queue)
    desk.create(node_list=["h100-1", "h100-2"], kind="maintenance", starts_at=desk.at(1.5 * HOUR))
    job = queue.submit(gpus=8, time_limit_s=3 * HOUR)
    queue.start()
    [row] = desk.why(job)
    assert row == {
        "cause": "booking",
        "text": 'nodes h100-[1-2] are booked for maintenance ("b") from 2026-01-01T01:30:00Z to '
                "2026-01-01T02:30:00Z; this job could run until 2026-01-01T03:00:00Z; a time "
                "limit of 1:30:00 or less would fit",
        "booking_id": desk.show()["id"], "node": None, "until": desk.at(2.5 * HOUR),
    }  # fmt: skip
    assert "booking" in [cause["cause"] for cause in explain(desk, job)["why"]]
    assert queue.update(job, changes={"time_limit_s": 5400}) == {job: "updated"}
    assert queue.start() == [job]


def test_why_omits_bookings_that_block_nothing(desk: Desk) -> None:
    desk.create(node_list=["h100-1"], starts_at=desk.at(5 * HOUR))
    job = desk.queue.submit(gpu_type="h100", gpus=8, time_limit_s=HOUR, hold=True)
    other = desk.queue.submit(gpu_type="l4", gpus=1, time_limit_s=9 * HOUR, hold=True)
    assert (desk.why(job), desk.why(other)) == ([], [])


def test_why_of_a_job_that_waits_for_its_own_booking(desk: Desk) -> None:
    desk.create(node_list=["h100-1"])
    job = desk.queue.submit(booking="b", gpus=1, time_limit_s=60)
    [row] = desk.why(job)
    assert (row["text"], row["until"]) == (
        'its booking "b" begins at 2026-01-01T02:00:00Z', desk.at(2 * HOUR),
    )  # fmt: skip


def a_blocked_day(queue: Queue, chance: random.Random) -> int:
    """Jobs that wait for others and for maintenance; what why says is tried out. How many bookings
    were named."""
    a_cluster(queue.sql, h100=3, l4=1)
    desk = Desk(queue)
    named = 0
    for n in range(3):
        for _ in range(3):
            queue.submit(
                gpus_per_node=chance.choice([1, 4, 8]), time_limit_s=chance.choice([600, 7200])
            )
        queue.start()
        with suppress(OdcError):
            desk.create(
                f"b{n}", kind="maintenance", ignore_running=True,
                starts_at=desk.at(chance.choice([0, HOUR, 4 * HOUR])),
                node_count=chance.randint(1, 4), duration_s=chance.choice([HOUR, DAY]),
            )  # fmt: skip
        queue.move(60)
    queue.submit(gpus_per_node=8, time_limit_s=chance.choice([HOUR, 5 * HOUR]))
    queue.sweep()
    queue.start()
    waiting = queue.sql.values("select job_id from odc.pending where ready order by job_id")
    why = {job_id: explain(desk, job_id)["why"] for job_id in waiting}
    for job_id in waiting:
        jobs, bookings = named_by(why[job_id])
        named += len(bookings)
        assert jobs or bookings
        with queue.sql.trial():
            for name in queue.sql.values(
                "select name from odc.booking where id = any ($1)", list(bookings)
            ):
                desk.delete(name)
            while True:
                if jobs:
                    queue.cancel(*sorted(jobs))
                    queue.end(*sorted(jobs))
                jobs = set(queue.start())
                if job_id in jobs:
                    break
                # Other jobs were released too and go before it; without them, it must start.
                assert jobs, why[job_id]
    return named


def named_by(why: list[dict[str, Any]]) -> tuple[set[int], set[int]]:
    """The named jobs and bookings."""
    return (
        {cause["job_id"] for cause in why if "job_id" in cause},
        {cause["booking_id"] for cause in why if "booking_id" in cause},
    )


@pytest.mark.long
def test_a_job_starts_when_the_jobs_and_bookings_that_why_names_are_gone(queue: Queue) -> None:
    named = 0
    for seed in range(8):
        with queue.sql.trial():
            named += a_blocked_day(queue, random.Random(f"booking-why/{seed}"))
        queue.now = NOW
    assert named >= 8
