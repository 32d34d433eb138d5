"""Time limits and signals before them, for executors that leave time limits to the database."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.support.builders.jobs import NOW, Queue, a_cluster
from tests.support.harness.database import Sql


@pytest.fixture
def queue(sql: Sql) -> Queue:
    a_cluster(sql, h100=1)
    return Queue(sql)


def sweep(queue: Queue) -> object:
    return queue.sql.value("select odc.sweep(0, $1, false, null)", queue.now)


def signals(queue: Queue) -> list[tuple[int, int, bool]]:
    rows = queue.sql.rows("select * from odc.take_signals(0, $1)", queue.now)
    return [(row["job_id"], row["signal"], row["batch_only"]) for row in rows]


def begin(queue: Queue, job: int) -> None:
    queue.start()
    queue.sql.rows(
        "select * from odc.record_facts(0, array[$1]::bigint[], '{1}', '{0}', '{started}', "
        "array[$2]::timestamptz[], '{null}', '{null}', '{null}', '{null}', $2)",
        job, queue.now,
    )  # fmt: skip


def test_a_limit_ends_its_job_to_the_second(queue: Queue) -> None:
    job = queue.submit(time_limit_s=45)
    begin(queue, job)
    assert sweep(queue) == NOW + timedelta(seconds=45)
    queue.move(44)
    sweep(queue)
    assert queue.running(job)["intent"] is None
    queue.move(1)
    sweep(queue)
    assert queue.running(job)["intent"] == "timeout"
    queue.end(job, exit_code=143)
    assert queue.state(job) == "TIMEOUT"


def test_a_job_whose_pod_vanished_after_its_limit_timed_out(queue: Queue) -> None:
    job = queue.submit(time_limit_s=45)
    begin(queue, job)
    queue.move(45)
    sweep(queue)
    queue.sql.rows(
        "select * from odc.record_facts(0, array[$1]::bigint[], '{1}', '{0}', '{lost}', "
        "array[$2]::timestamptz[], '{null}', '{null}', '{null}', '{null}', $2)",
        job, queue.now,
    )  # fmt: skip
    assert queue.state(job) == "TIMEOUT"


def test_a_signal_is_due_once_before_the_limit(queue: Queue) -> None:
    job = queue.submit(time_limit_s=50, signal_number=10, signal_before_s=20, signal_batch=True)
    begin(queue, job)
    assert signals(queue) == []
    assert sweep(queue) == NOW + timedelta(seconds=30)
    queue.move(30)
    assert signals(queue) == [(job, 10, True)]
    assert signals(queue) == []
    assert sweep(queue) == NOW + timedelta(seconds=50)


def test_a_new_leader_gets_every_pending_stop(queue: Queue) -> None:
    job = queue.submit()
    begin(queue, job)
    queue.cancel(job)
    take_stops = "select job_id from odc.take_stops(0, $1, $2)"
    assert queue.sql.values(take_stops, queue.now, False) == [job]
    assert queue.sql.values(take_stops, queue.now, False) == []
    assert queue.sql.values(take_stops, queue.now, True) == [job]


def test_stored_output_never_becomes_shorter(queue: Queue) -> None:
    keep = "select odc.keep_output(1, 1, 0, $1, $2, $3)"
    queue.sql.execute(keep, b"whole", 5, queue.now)
    queue.sql.execute(keep, b"half", 2, queue.now)
    assert queue.sql.values("select content from odc.kept_output") == [b"whole"]
