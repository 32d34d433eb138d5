"""The work for many jobs at once is proportional to the jobs, with any table statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from odcd.records.job import JobSpec
from tests.support.builders.jobs import Queue, a_cluster, a_job, submit
from tests.support.harness.database import Sql
from tests.support.harness.plans import pairwise_joins

JOBS = 200
ROWS_EACH = 60
"""Rows that one job may read, at submit or at an end. Quadratic work reads hundreds."""
SMALL = {
    # Accounts, QOS, partitions, GPU types and groups of nodes: an operator makes each.
    "_resolve_account", "_resolve_shape", "_refuse_unrecovered", "_plan_shapes", "_next_chance",
    "_charge_usage", "_fair_share",
    # Classes of jobs, protected jobs and their shapes: a pass has few.
    "_plan_classes", "_plan_slice", "_plan_more", "_find_slips", "_keep_plan", "_dropped_jobs",
    # Each job with its shape, or with the disks and arrays that jobs of one request name.
    "_write_jobs", "_judge_dependencies", "_release_disks",
    # The arrays that start or end together, and those that wait for them task by task.
    "_take_tasks", "_jobs_started", "_jobs_ended", "_open_tasks", "_close_tasks",
    # Each end with the one row of gpu_meter.
    "_write_ends",
}  # fmt: skip
"""Functions whose statements may compare each row with each: one of the two sets is small."""


@pytest.fixture
def queue(database_url: str) -> Iterator[Queue]:
    """On its own database, because the leftovers of earlier tests change query plans."""
    with Sql(database_url) as sql:
        sql.begin()
        a_cluster(sql, h100=2)
        yield Queue(sql)
        sql.rollback()


@pytest.mark.parametrize("planned", ["while the tables were empty", "with one job there"])
@pytest.mark.parametrize(
    "dependent",
    [
        lambda n, jobs: a_job(dependency="singleton", name="one"),
        lambda n, jobs: a_job(dependency="singleton", name=f"name-{n}"),
        lambda n, jobs: a_job(dependency=f"afterok:{jobs[0]}"),
        lambda n, jobs: a_job(dependency=f"after:{jobs[n]}"),
        lambda n, jobs: a_job(dependency=f"afterany:{jobs[n]}"),
        lambda n, jobs: a_job(dependency=f"aftercorr:{jobs[JOBS]}", array="1-3"),
    ],
    ids=["singletons of one name", "singletons", "afterok one", "after", "afterany", "aftercorr"],
)
def test_jobs_of_one_submit_that_wait_read_few_rows_each(
    queue: Queue, dependent: Callable[[int, list[int]], JobSpec], planned: str
) -> None:
    queue.sql.execute("analyze odc.pending, odc.dependency, odc.array_job, odc.job")
    targets = taken(queue, [*[a_job() for _ in range(JOBS)], a_job(array="1-3")])
    if planned == "with one job there":
        for _ in range(8):  # the plans are kept from here on
            taken(queue, [dependent(0, targets)])
    before = rows_read(queue)
    # A request may have 10,000 dependencies, and each aftercorr counts as 100.
    waiting = [
        job
        for part in (range(JOBS // 2), range(JOBS // 2, JOBS))
        for job in taken(queue, [dependent(n, targets) for n in part])
    ]
    assert rows_read(queue) - before < ROWS_EACH * JOBS
    assert {queue.waits(job) for job in waiting} <= {"waiting", "met"}

    before = rows_read(queue)
    queue.cancel(*targets[:10])
    assert rows_read(queue) - before < ROWS_EACH * JOBS


@pytest.fixture
def counted_when_empty(database_url: str) -> Iterator[Queue]:
    """PostgreSQL expects one row of each table here: it counted them after their rows were gone."""
    with Sql(database_url) as sql:
        queue = Queue(sql)
        a_cluster(sql, h100=30)
        first = queue.submit()
        queue.start()
        queue.end(first)
        sql.execute("analyze")
        sql.begin()
        yield queue
        sql.rollback()


def test_many_jobs_that_are_cancelled_by_id_read_few_rows_each(counted_when_empty: Queue) -> None:
    """Before: cancelling 10,000 took 27 s."""
    jobs = taken(counted_when_empty, [a_job(gpus=1) for _ in range(JOBS)])
    before = rows_read(counted_when_empty)
    counted_when_empty.cancel(*jobs)
    assert rows_read(counted_when_empty) - before < ROWS_EACH * JOBS


def test_many_running_jobs_are_swept_and_end_with_few_rows_read_for_each(
    counted_when_empty: Queue,
) -> None:
    queue = counted_when_empty
    taken(queue, [a_job(gpus=1) for _ in range(JOBS)])
    jobs = queue.start()
    assert len(jobs) == JOBS
    before = rows_read(queue)
    queue.sweep()
    assert rows_read(queue) - before < ROWS_EACH * JOBS

    members = queue.members(*jobs)
    before = rows_read(queue)
    queue.end_members(members)
    assert rows_read(queue) - before < ROWS_EACH * JOBS


def test_no_statement_for_many_jobs_compares_each_with_each(counted_when_empty: Queue) -> None:
    """Before: 1,500 ends in one call took 1.4 s."""
    queue = counted_when_empty
    with pairwise_joins(queue.sql) as found:
        jobs = taken(queue, [a_job(gpus=1) for _ in range(JOBS)])
        taken(queue, [a_job(gpus=1, array="0-9") for _ in range(3)])
        taken(queue, [a_job(dependency=f"afterok:{job}") for job in jobs[:10]])
    assert found <= SMALL
    with pairwise_joins(queue.sql) as found:
        started = queue.start()
    assert len(started) > JOBS
    assert found <= SMALL
    with pairwise_joins(queue.sql) as found:
        queue.sweep()
    assert found <= SMALL
    members = queue.members(*started)
    with pairwise_joins(queue.sql) as found:
        queue.end_members(members)
    assert found <= SMALL
    assert queue.contradictions() == []


def taken(queue: Queue, jobs: list[JobSpec]) -> list[int]:
    return [answer.job_id or 0 for answer in submit(queue.sql, *jobs)]


def rows_read(queue: Queue) -> int:
    """Rows of tables that this transaction's scans have read so far."""
    return queue.sql.value(
        "select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::bigint "
        "from pg_stat_xact_user_tables where schemaname = 'odc'"
    )
