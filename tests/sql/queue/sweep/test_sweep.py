"""Changes caused by time alone."""

from __future__ import annotations

from datetime import timedelta

import pytest

from odcd.errors import LeadershipLost
from odcd.jobs.submission import prepare
from tests.support.builders.jobs import ALICE, NOW, Queue, a_job, submit, submit_requests


def test_only_the_leader_sweeps(queue: Queue) -> None:
    with pytest.raises(LeadershipLost):
        queue.sql.value("select odc.sweep(1, $1)", NOW)


def test_a_reached_begin_time_makes_a_job_ready(queue: Queue) -> None:
    job = queue.submit(begin_at=NOW + timedelta(seconds=30))
    assert queue.sweep() == NOW + timedelta(seconds=30)
    assert queue.start() == []
    queue.move(30)
    queue.sweep()
    assert queue.pending(job)["eligible_at"] == queue.now
    assert queue.start() == [job]


def test_with_nothing_due_the_next_sweep_is_within_a_minute(queue: Queue) -> None:
    queue.submit(hold=True)
    queue.submit(begin_at=NOW + timedelta(days=1))
    assert queue.sweep() == NOW + timedelta(seconds=60)


def test_a_pending_job_past_its_deadline_ends_and_its_dependents_are_judged(queue: Queue) -> None:
    job = queue.submit(deadline_at=NOW + timedelta(seconds=30), hold=True)
    array = queue.submit(deadline_at=NOW + timedelta(seconds=40), hold=True, array="0-9")
    waiting = queue.submit(dependency=f"afternotok:{job},afterany:{array}")
    assert queue.sweep() == NOW + timedelta(seconds=30)
    queue.move(30)
    queue.sweep()
    assert (queue.state(job), queue.waits(waiting)) == ("DEADLINE", "waiting")
    queue.move(10)
    queue.sweep()
    assert (queue.state(array), queue.job(array)["array_tasks"]) == ("DEADLINE", "0-9")
    assert queue.start() == [waiting]


def test_a_running_job_past_its_deadline_gets_an_intent(queue: Queue) -> None:
    job = queue.submit(deadline_at=NOW + timedelta(seconds=30))
    queue.start()
    assert queue.sweep() == NOW + timedelta(seconds=30)
    queue.move(30)
    queue.sweep()
    assert (queue.running(job)["intent"], queue.state(job)) == ("deadline", "COMPLETING")
    queue.end(job, exit_code=143)
    assert queue.state(job) == "DEADLINE"


def test_a_job_far_over_its_limit_gets_an_intent(queue: Queue) -> None:
    job = queue.submit(time_limit_s=60)
    queue.start()
    queue.move(120)
    queue.sweep()
    assert queue.running(job)["intent"] is None
    queue.move(1)
    queue.sweep()
    assert queue.running(job)["intent"] == "timeout"
    queue.end(job, exit_code=143)
    assert queue.state(job) == "TIMEOUT"


def test_a_users_cancel_is_not_overwritten_by_a_timeout(queue: Queue) -> None:
    job = queue.submit(time_limit_s=60)
    queue.start()
    queue.cancel(job)
    queue.move(1000)
    queue.sweep()
    assert queue.running(job)["intent"] == "cancel"


def test_idempotency_keys_are_kept_for_two_days(queue: Queue) -> None:
    [first] = submit(queue.sql, a_job(), key="k")
    queue.move(48 * 3600)
    queue.sweep()
    made = prepare(ALICE, [a_job()], key="k", dry_run=False)
    again = submit_requests(queue.sql, [made.request], made.texts, now=queue.now)
    assert again == [[first]]
    queue.move(1)
    queue.sweep()
    again = submit_requests(queue.sql, [made.request], made.texts, now=queue.now)
    assert again[0][0].job_id != first.job_id


def test_expired_api_keys_and_old_passes_are_dropped(queue: Queue) -> None:
    queue.sql.execute(
        "select odc.keep_api_key('d', 'alice', 1001, 100, $1, $2)", NOW, NOW + timedelta(hours=2)
    )
    queue.sql.execute(
        "insert into odc.pass (term, at, looked, started, took_ms) "
        "select 0, $1, 1, 0, 1 from generate_series(1, 10010)", NOW,
    )  # fmt: skip
    queue.move(2 * 3600)
    queue.sweep()
    assert queue.sql.value("select count(*) from odc.api_key") == 1
    assert queue.sql.value("select count(*) from odc.pass") == 10_000
    queue.move(1)
    queue.sweep()
    assert queue.sql.value("select count(*) from odc.api_key") == 0


def test_a_sweep_that_finds_nothing_changes_nothing(queue: Queue) -> None:
    queue.submit()
    queue.submit(array="0-9", dependency="singleton", hold=True)
    before = queue.sql.rows("select * from odc.pending order by job_id")
    queue.sweep()
    assert queue.sql.rows("select * from odc.pending order by job_id") == before
