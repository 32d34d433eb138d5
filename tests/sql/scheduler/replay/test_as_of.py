"""The past is reported as it was, whatever has changed since."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from odcd.errors import BadRequest, OdcError, UnknownJob
from tests.support.builders.jobs import ALICE, ROOT, Queue
from tests.support.harness.database import Sql


def past(queue: Queue, moment: datetime, job_id: int) -> dict[str, Any]:
    shown = json.loads(
        queue.sql.value("select odc.past_job($1, $2, null, $3)", moment, job_id, queue.now)
    )
    [job] = [job for job in shown if job["id"] == job_id]
    return job


def listed(queue: Queue, moment: datetime, *, ended: bool = False) -> list[tuple[int, str]]:
    jobs = queue.sql.value(
        "select jobs from odc.past_jobs($1, '{}', $2, null, 100, null, $3)",
        moment, ended, queue.now,
    )  # fmt: skip
    return [(job["id"], job["state"]) for job in json.loads(jobs)]


def nodes(queue: Queue, moment: datetime) -> dict[str, dict[str, Any]]:
    rows = json.loads(queue.sql.value("select odc.past_nodes($1, $2)", moment, queue.now))
    return {node["name"]: node for node in rows}


def why(queue: Queue, moment: datetime, job_id: int) -> dict[str, Any]:
    return json.loads(
        queue.sql.value("select odc.past_why($1, $2, null, $3)", moment, job_id, queue.now)
    )


def test_the_past_shows_where_a_job_was_at_each_moment(queue: Queue) -> None:
    submitted = queue.now
    job = queue.submit(gpus=8, gpu_type="h100")
    queue.move(10)
    queue.start()
    started = queue.now
    queue.move(10)
    queue.end(job)
    ended = queue.now
    queue.move(10)
    assert listed(queue, submitted) == [(job, "PENDING")]
    assert listed(queue, started - timedelta(microseconds=1)) == [(job, "PENDING")]
    assert listed(queue, started) == [(job, "CONFIGURING")]
    assert listed(queue, ended - timedelta(microseconds=1)) == [(job, "CONFIGURING")]
    assert (listed(queue, ended), listed(queue, ended, ended=True)) == ([], [(job, "COMPLETED")])
    assert past(queue, started, job)["ended_at"] is None
    assert [n["gpus_used"] for n in nodes(queue, started).values()] == [8, 0]
    assert [n["gpus_used"] for n in nodes(queue, ended).values()] == [0, 0]


def test_the_past_shows_values_before_an_update(queue: Queue) -> None:
    job = queue.submit(name="first", time_limit_s=600, comment="old")
    before = queue.now
    queue.move(5)
    changes = {"name": "second", "time_limit_s": 300, "comment": "new", "nice": 7}
    assert queue.update(job, changes=changes) == {job: "updated"}
    old, new = past(queue, before, job), past(queue, queue.now, job)
    keys = ("name", "time_limit_s", "comment", "nice")
    assert [old[key] for key in keys] == ["first", 600, "old", 0]
    assert [new[key] for key in keys] == ["second", 300, "new", 7]


def test_a_running_jobs_old_limit_is_the_end_its_node_showed(queue: Queue) -> None:
    job = queue.submit(gpus=8, gpu_type="h100", time_limit_s=600)
    queue.start()
    before, free_at = queue.now, nodes(queue, queue.now)["h100-1"]["free_at"]
    queue.move(5)
    assert queue.update(job, changes={"time_limit_s": 3600}, who=ROOT) == {job: "updated"}
    assert nodes(queue, before)["h100-1"]["free_at"] == free_at
    assert nodes(queue, queue.now)["h100-1"]["free_at"] != free_at


def test_reasons_and_planned_starts_are_those_of_the_moment(queue: Queue) -> None:
    for _ in range(2):
        queue.submit(gpus=8, gpu_type="h100", time_limit_s=600)
    waiting = queue.submit(gpus=8, gpu_type="h100")
    queue.start()
    blocked, explanation = queue.now, why(queue, queue.now, waiting)
    assert (explanation["reason"], explanation["planned_start_at"]) == (
        "Resources",
        "2026-01-01T00:10:00Z",
    )
    queue.move(60)
    queue.hold(waiting)
    queue.start()
    held = queue.now
    queue.move(60)
    queue.release(waiting)
    assert why(queue, blocked, waiting) == explanation
    assert why(queue, held, waiting)["reason"] == "JobHeldUser"
    assert why(queue, held, waiting)["planned_start_at"] is None


def test_a_requeued_job_has_both_of_its_lives(queue: Queue) -> None:
    job = queue.submit(gpus=8, gpu_type="h100")
    queue.start()
    first = queue.now
    queue.move(10)
    queue.requeue(job, hold=True)
    queue.end(job)
    between = queue.now
    queue.move(10)
    queue.release(job)
    queue.start()
    states = [past(queue, at, job)["state"] for at in (first, between, queue.now)]
    attempts = [past(queue, at, job)["attempt"] for at in (first, between, queue.now)]
    assert (states, attempts) == (["CONFIGURING", "PENDING", "CONFIGURING"], [1, 2, 2])


def test_an_arrays_range_grows_again_and_its_tasks_are_not_there_yet(queue: Queue) -> None:
    array = queue.submit(array="0-9%2", gpus=1)
    whole = queue.now
    queue.move(1)
    started = queue.start()
    two = queue.now
    queue.move(1)
    queue.cancel((array, "{[4,10)}"))
    queue.move(1)
    assert [past(queue, at, array)["array_tasks"] for at in (whole, two)] == ["0-9%2", "2-9%2"]
    assert listed(queue, whole, ended=True) == [(array, "PENDING")]
    assert sorted(id for id, _ in listed(queue, two, ended=True)) == sorted([array, *started])
    assert past(queue, queue.now, array)["array_tasks"] == "2-3%2"
    with pytest.raises(UnknownJob):
        past(queue, whole, started[0])


def test_a_nodes_state_and_reason_are_those_of_the_moment(queue: Queue) -> None:
    up = queue.now
    queue.move(1)
    actor = json.dumps({"user": "root", "uid": 0, "operator": True})
    queue.sql.execute(
        "select odc.set_node_state($1::jsonb, '{h100-1}', 'DRAIN', 'new driver', $2)",
        actor, queue.now,
    )  # fmt: skip
    drained = queue.now
    queue.move(1)
    queue.sql.execute(
        "select odc.set_node_state($1::jsonb, '{h100-1}', 'UP', null, $2)", actor, queue.now
    )
    states = [nodes(queue, at)["h100-1"] for at in (up, drained, queue.now)]
    assert [(n["state"], n["reason"]) for n in states] == [
        ("IDLE", None), ("DRAIN", "new driver"), ("IDLE", None),
    ]  # fmt: skip


def test_reading_the_past_changes_nothing(
    queue: Queue,
) -> None:
    job = queue.submit(gpus=1)
    before = queue.now
    queue.move(1)
    queue.start()
    assert past(queue, before, job)["state"] == "PENDING"
    assert queue.state(job) == "CONFIGURING"
    [now] = json.loads(queue.sql.value("select odc.show_jobs($1, null, $2)", job, queue.now))
    assert now["state"] == "CONFIGURING"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.001, "is in the future"), (-0.001, "no history is kept for")],
    ids=["to come", "before all"],
)
def test_an_unknown_moment_is_refused(queue: Queue, seconds: float, words: str) -> None:
    with pytest.raises(BadRequest, match=words) as refused:
        nodes(queue, queue.now + timedelta(seconds=seconds))
    assert refused.value.hint


def test_an_upgraded_database_reports_where_its_past_begins(queue: Queue) -> None:
    queue.submit()
    queue.sql.execute("update odc.past_since set at = $1", queue.now + timedelta(seconds=5))
    queue.move(10)
    with pytest.raises(BadRequest, match="no history is kept"):
        nodes(queue, queue.now - timedelta(seconds=8))
    assert nodes(queue, queue.now - timedelta(seconds=2))


def test_unknown_jobs_and_tasks_are_refused(queue: Queue) -> None:
    array = queue.submit(array="0-3")
    for tasks in ("{[9,10)}", "{[0,2)}"):
        queue.move(1)
        if tasks == "{[0,2)}":
            queue.start()
        with pytest.raises(OdcError):
            queue.sql.value(
                "select odc.past_why($1, $2, $3::text::int4multirange, $1)",
                queue.now, array, tasks,
            )  # fmt: skip
    with pytest.raises(UnknownJob):
        past(queue, queue.now, 10**9)


def test_a_submit_leaves_nothing_in_the_past(queue: Queue, sql: Sql) -> None:
    counts = "select (select count(*) from odc.{0}_past)"
    tables = ("pending", "running", "job", "dependency", "array_job", "node_free")
    before = [sql.value(counts.format(table)) for table in tables]
    queue.submit(ALICE, gpus=1)
    queue.submit(ALICE, array="0-99")
    assert [sql.value(counts.format(table)) for table in tables] == before
