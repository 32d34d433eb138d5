"""Each event is counted once, under any leader, after any crash, however late it is committed."""

from __future__ import annotations

import random
from datetime import timedelta

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odcd.errors import LeadershipLost
from tests.sql.cluster.measure.counted import Counted
from tests.support.builders.jobs import ROOT, a_cluster
from tests.support.harness.database import Sql

STEPS = (
    "submit", "gang", "array", "start", "start", "end", "fail", "cancel", "cancel_task", "requeue",
    "move", "late", "fold", "fold", "fold_cut_off", "lead",
)  # fmt: skip


@pytest.mark.long
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=st.lists(st.sampled_from(STEPS), min_size=5, max_size=40), seed=st.integers(0, 99))
def test_each_event_is_counted_once(counted: Counted, steps: list[str], seed: int) -> None:
    chance = random.Random(seed)
    for step in steps:
        counted.happen(step, chance)
    counted.check()


def test_late_commits_are_waited_for_and_counted(counted: Counted) -> None:
    counted.happen("late", random.Random(0))
    counted.orphan(counted.sql)
    counted.fold_all()
    assert counted.total("odcd_orphans_found_total") == 0
    counted.commit_late()
    counted.fold_all()
    assert counted.total("odcd_orphans_found_total") == 2


def test_events_with_ids_out_of_transaction_order_are_all_counted(
    counted: Counted,
) -> None:
    late = counted.late
    with Sql(counted.sql.dsn) as other:
        late.begin()
        late.value("select pg_current_xact_id()")
        other.begin()
        counted.orphan(other)
        counted.orphan(late)
        late._run("commit")
        late._in_transaction = False
        counted.fold_all()
        assert counted.total("odcd_orphans_found_total") == 1
        other._run("commit")
        other._in_transaction = False
    counted.fold_all()
    assert counted.total("odcd_orphans_found_total") == 2


def test_current_gpu_time_counts_at_once_and_never_decreases(counted: Counted) -> None:
    queue = counted.queue
    job = queue.submit(gpus=8, gpu_type="h100")
    queue.start()
    queue.move(100)
    counted.fold_all()
    assert counted.by("odcd_gpu_seconds_total", 3) == {"h100": 800}
    # It had ended before odc learned of it.
    counted.sql.rows(
        "select * from odc.record_facts(0, array[$1::bigint], '{1}', '{0}', '{exited}', "
        "array[$2::timestamptz], '{0}', '{null}', '{null}', '{null}', $3)",
        job, queue.now - timedelta(seconds=50), queue.now,
    )  # fmt: skip
    counted.fold_all()
    assert counted.by("odcd_gpu_seconds_total", 3) == {"h100": 800}
    queue.submit(gpus=1, gpu_type="h100")
    queue.start()
    queue.move(500)
    counted.fold_all()
    assert counted.by("odcd_gpu_seconds_total", 3) == {"h100": 400 + 500}


@pytest.mark.parametrize("becomes", ["another", "gone"])
def test_gpu_time_counts_under_the_type_that_the_node_had(counted: Counted, becomes: str) -> None:
    """Otherwise they count twice: by the node's type at that time, and by its current type."""
    queue = counted.queue
    jobs = [queue.submit(gpus=8, gpu_type="h100") for _ in range(2)]
    queue.start()
    queue.move(100)
    counted.fold_all()
    assert counted.by("odcd_gpu_seconds_total", 3) == {"h100": 1600}
    node = counted.sql.value(
        "select n.name from odc.node as n join odc.allocation as a on a.node_id = n.id "
        "where a.job_id = $1",
        jobs[0],
    )
    queue.end(jobs[0])
    queue.requeue(jobs[1], who=ROOT)
    queue.end(jobs[1])
    queue.move(10)
    if becomes == "another":
        one = {"name": node, "gpu_type": "b200", "gpus": 8, "cpus": 64, "mem_mib": 64_000}
        a_cluster(counted.sql, now=queue.now, more=[one])
        assert counted.sql.value("select gpu_type from odc.node where name = $1", node) == "b200"
    else:
        counted.sql.execute("delete from odc.node where name = $1", node)
    counted.fold_all()
    assert counted.by("odcd_gpu_seconds_total", 3) == {"h100": 1600}


def test_an_event_that_cannot_be_counted_is_set_aside_and_reported(counted: Counted) -> None:
    sql, now = counted.sql, counted.queue.now
    counted.orphan(sql)
    bad = sql.value(
        "insert into odc.event (at, kind, actor, detail) values ($1, 'submitted', 'odcd', "
        "'{\"attempt\": \"none\"}') returning id", now,
    )  # fmt: skip
    counted.orphan(sql)
    with pytest.raises(asyncpg.DataError):
        counted.fold_whole(1000)
    assert counted.fold_whole(1) == 1

    def set_aside() -> list[dict[str, object]]:
        return sql.rows("select * from odc.set_event_aside(0, $1)", now)

    [aside] = counted.until(set_aside)
    assert aside["event_id"] == bad
    assert "none" in str(aside["why"])
    assert counted.total("odcd_tally_events_aside") == 1
    counted.fold_all()
    assert counted.total("odcd_orphans_found_total") == 2
    # An event without a fault is counted; without events, nothing happens.
    counted.orphan(sql)
    counted.until(lambda: set_aside() or counted.total("odcd_orphans_found_total") == 3)
    assert set_aside() == []
    assert counted.total("odcd_orphans_found_total") == 3
    assert sql.value("select odc.retry_aside(0)") == 0
    sql.execute("update odc.event set detail = '{\"tasks\": 4}' where id = $1", bad)
    with pytest.raises(LeadershipLost):
        sql.value("select odc.retry_aside(9)")
    assert [sql.value("select odc.retry_aside(0)") for _ in range(2)] == [1, 0]
    assert counted.total("odcd_tally_events_aside") == 0


def test_waits_fall_into_their_buckets(counted: Counted) -> None:
    queue = counted.queue
    counted.sql.execute("update odc.node_free set up = false")
    for _ in range(3):
        queue.submit(gpus=1, gpu_type="h100")
        queue.move(30)
    counted.sql.execute("update odc.node_free set up = true")
    assert len(queue.start()) == 3  # after 90, 60 and 30 s
    counted.fold_all()
    buckets = counted.by("odcd_job_queue_wait_seconds_bucket", 2)
    assert {le: buckets.get(le, 0) for le in ("1", "10", "60", "300", "+Inf")} == {
        "1": 0, "10": 0, "60": 2, "300": 3, "+Inf": 3,
    }  # fmt: skip
    assert counted.total("odcd_job_queue_wait_seconds_sum") == 180


def test_a_restored_database_counts_on_from_its_backup(counted: Counted) -> None:
    counted.queue.submit(gpus=1)
    counted.fold_all()
    counted.queue.submit(gpus=1)
    sql = counted.sql
    # As odcd.database.backup writes it: transactions have other numbers.
    sql.execute("update odc.event set xid = pg_current_xact_id()")
    sql.execute("update odc.tally_event set xid = '1'")
    sql.execute("select odc.finish_restore(1, $1, $1)", counted.queue.now)
    counted.term = sql.value("select term from odc.term")
    counted.fold_all()
    assert counted.total("odcd_jobs_submitted_total") == 2
