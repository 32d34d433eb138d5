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


def signals(queue: Queue) -> list[tuple[int, int, bool, list[int]]]:
    rows = queue.sql.rows("select * from odc.due_signals(0, $1)", queue.now)
    return [(row["job_id"], row["signal"], row["batch_only"], row["ranks"]) for row in rows]


def deliver(queue: Queue, job: int, rank: int, trouble: str | None = None) -> None:
    queue.sql.execute(
        "select odc.note_signals(0, array[$1::bigint], '{1}', array[$2::integer], array[$3], $4)",
        job, rank, trouble, queue.now,
    )  # fmt: skip


def begin(queue: Queue, job: int, rank: int = 0) -> None:
    queue.start()
    queue.sql.rows(
        "select * from odc.record_facts(0, array[$1]::bigint[], '{1}', array[$3::integer], "
        "'{started}', array[$2]::timestamptz[], '{null}', '{null}', '{null}', '{null}', $2)",
        job, queue.now, rank,
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


def test_a_signal_is_due_before_the_limit_until_it_is_acknowledged(queue: Queue) -> None:
    job = queue.submit(time_limit_s=50, signal_number=10, signal_before_s=20, signal_batch=True)
    begin(queue, job)
    assert signals(queue) == []
    assert sweep(queue) == NOW + timedelta(seconds=30)
    queue.move(30)
    assert [signals(queue) for _ in range(2)] == [[(job, 10, True, [0])]] * 2, "a leader may die"
    assert sweep(queue) == NOW + timedelta(seconds=50), "it is sent again without a sweep"
    deliver(queue, job, 0, "its node does not answer")
    assert signals(queue) == [(job, 10, True, [0])]
    deliver(queue, job, 0)
    assert signals(queue) == []
    assert queue.events(job).count("not_signalled") == 1


@pytest.mark.parametrize("batch", [True, False])
def test_each_member_acknowledges_the_signal(queue: Queue, batch: bool) -> None:
    """Before: the first member that could not be reached kept the signal from the others."""
    a_cluster(queue.sql, h100=2)
    job = queue.submit(
        time_limit_s=50, signal_number=10, signal_before_s=20, signal_batch=batch,
        node_count=2, gpus_per_node=8, gpu_type="h100",
    )  # fmt: skip
    begin(queue, job)
    begin(queue, job, rank=1)
    queue.move(30)
    if batch:
        assert signals(queue) == [(job, 10, True, [0])]
        return
    assert signals(queue) == [(job, 10, False, [0, 1])]
    deliver(queue, job, 1)
    assert signals(queue) == [(job, 10, False, [0])]
    deliver(queue, job, 0)
    assert (signals(queue), queue.running(job)["signalled"]) == ([], True)


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


def test_what_was_read_of_a_member_never_replaces_its_end(queue: Queue) -> None:
    keep = "select odc.keep_output(1, 1, 0, $1, $2, $3, $4)"
    kept = "select content || ' ' || written || ' ' || coalesce(read_through, '-') from kept"

    def stored() -> str:
        view = (
            f"with kept as (select convert_from(content, 'utf8') as content, written, "
            f"read_through from odc.kept_output) {kept}"
        )
        return queue.sql.value(view)

    queue.sql.execute(keep, b"half", 4, queue.now, "t1 4")
    assert stored() == "half 4 t1 4"
    queue.sql.execute(keep, b"more", 8, queue.now, "t2 4")
    queue.sql.execute(keep, b"old", 6, queue.now, "t1 6")
    assert stored() == "more 8 t2 4"
    queue.sql.execute(keep, b"the rest", 3, queue.now, None)
    assert stored() == "more 8 -", "its log could not be read to the end"
    queue.sql.execute(keep, b"late", 9, queue.now, "t3 1")
    assert stored() == "more 8 -"
    queue.sql.execute(keep, b"whole", 10, queue.now, None)
    assert stored() == "whole 10 -"
