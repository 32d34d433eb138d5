"""Extending a dev server: how far, how often, and at whose cost."""

from __future__ import annotations

from datetime import timedelta

import pytest

from odcd.errors import BadRequest, LimitExceeded, WrongState
from tests.support.builders.dev_servers import HOUR, Reservations
from tests.support.builders.jobs import BOB, ROOT, Queue, a_cluster
from tests.support.harness.database import Sql


@pytest.fixture
def boxes(queue: Queue) -> Reservations:
    return Reservations(queue)


def test_an_extension_moves_the_end_and_nothing_else(boxes: Reservations, queue: Queue) -> None:
    """EXP-06, CLI-31: half an hour stays half an hour."""
    box = boxes.active(hours=2)
    before = boxes.row(box)
    told = boxes.extend(box, 0.5)
    after = boxes.row(box)
    assert after["expires_at"] == before["expires_at"] + timedelta(minutes=30)
    assert after["launched_at"] == before["launched_at"]
    assert told["extended_s"] == 1800
    assert queue.running(box)["ends_at"] == after["expires_at"] + timedelta(seconds=120)
    assert queue.contradictions() == []


def test_it_is_extended_once(boxes: Reservations) -> None:
    """EXP-07."""
    box = boxes.active()
    boxes.extend(box, 1)
    with pytest.raises(WrongState, match="was already extended"):
        boxes.extend(box, 1)


@pytest.mark.parametrize("hours", [0, -1, 24.01, 1e5])
def test_by_more_than_nothing_and_at_most_24_hours(boxes: Reservations, hours: float) -> None:
    """CLI-31."""
    box = boxes.active(hours=1)
    with pytest.raises(BadRequest):
        boxes.extend(box, hours)
    assert boxes.extend(box, 24)["extended_s"] == 24 * HOUR


def test_only_an_active_one(boxes: Reservations, queue: Queue) -> None:
    """EXP-08."""
    box = boxes.reserve()
    with pytest.raises(WrongState, match=r"is (pending|queued)"):
        boxes.extend(box, 1)
    queue.start()
    with pytest.raises(WrongState, match="is preparing"):
        boxes.extend(box, 1)


def test_until_its_grace_is_over(boxes: Reservations, queue: Queue) -> None:
    """EXP-10, EXP-17: the late extension wins, to the second."""
    box = boxes.active(hours=1)
    queue.move(HOUR + 119)
    boxes.sweep()
    boxes.extend(box, 1)
    queue.move(2)
    boxes.sweep()
    assert boxes.status(box) == "active"


def test_partitions_and_bookings_limit_it(boxes: Reservations, queue: Queue) -> None:
    box = boxes.active(hours=2)
    queue.sql.execute("update odc.partition set max_time_limit_s = $1", 3 * HOUR)
    with pytest.raises(LimitExceeded, match='partition "main"'):
        boxes.extend(box, 2)
    assert boxes.extend(box, 2, ROOT, dry_run=True)["dry_run"]
    boxes.extend(box, 1)


def test_what_it_delays_is_told_before_and_nothing_is_changed(
    boxes: Reservations, queue: Queue
) -> None:
    """EXP-09: the two who wait for the node start later."""
    boxes.active(gpus=8, gpu_type="h100", hours=12)
    box = boxes.active(gpus=8, gpu_type="h100", hours=2)
    waits = boxes.reserve(BOB, gpus=8, gpu_type="h100", hours=1, name="bobs")
    queue.start()
    before, planned = boxes.row(box), boxes.show(waits)["planned_start_at"]
    told = boxes.extend(box, 3, dry_run=True)
    [delay] = told["delays"]
    assert (delay["job_id"], delay["user"], delay["name"]) == (waits, "bob", "bobs")
    assert delay["from"] == planned < delay["to"]
    assert boxes.row(box) == before
    assert "extended" not in queue.events(box)
    taken = boxes.extend(box, 3)
    assert taken["delays"] == told["delays"]
    queue.start()
    assert boxes.show(waits)["planned_start_at"] == delay["to"]


def test_a_dry_run_takes_no_turn_and_writes_nothing(database_url: str) -> None:
    with Sql(database_url) as sql, Sql(database_url) as changing:
        a_cluster(sql, h100=1)
        boxes = Reservations(Queue(sql))
        box = boxes.active(hours=2)
        waiting = boxes.queue.submit(who=BOB, gpus=8, time_limit_s=600)
        boxes.queue.start()
        changing.begin()
        changing.execute("select odc._take_turn()")
        changing.rows("select from odc.running for update")
        sql.execute("set lock_timeout = '5s'")
        sql.execute("begin")
        told = boxes.extend(box, 3, dry_run=True)
        assert sql.value("select pg_current_xact_id_if_assigned()") is None
        assert not sql.rows(
            "select from pg_locks where pid = pg_backend_pid() "
            "and mode like '%Ex%' and locktype <> 'virtualxid'"
        )
        sql.execute("commit")
        changing.rollback()
        assert [late["job_id"] for late in told["delays"]] == [waiting]
        real = boxes.extend(box, 3)
        assert real == {**told, "dry_run": False}
