"""The fields of a job that can be changed, by whom, and when."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from odcd.errors import BadRequest
from odcd.records.fields import UNLIMITED_S
from tests.support.builders.jobs import BOB, NOW, ROOT, Queue, a_cluster


def one(queue: Queue, job: int, changes: dict[str, Any], **who: Any) -> dict[str, Any]:
    [answer] = queue.updates(job, changes=changes, **who)
    return answer


@pytest.mark.parametrize(
    ("changes", "column", "value"),
    [
        ({"name": "new"}, "name", "new"),
        ({"comment": "because"}, "comment", "because"),
        ({"comment": None}, "comment", None),
        ({"nice": 5}, "nice", 5),
        ({"time_limit_s": 60}, "time_limit_s", 60),
        ({"begin_at": "2026-01-02T00:00:00Z"}, "begin_at", NOW + timedelta(days=1)),
        ({"begin_at": None}, "begin_at", None),
        ({"deadline_at": "2026-02-02T00:00:00Z"}, "deadline_at", NOW + timedelta(days=32)),
    ],
)
def test_a_pending_job_can_be_changed(
    queue: Queue, changes: dict[str, Any], column: str, value: object
) -> None:
    job = queue.submit(comment="old", begin_at=NOW + timedelta(hours=1))
    assert one(queue, job, changes)["outcome"] == "updated"
    assert queue.job(job)[column] == value
    if column in queue.pending(job):
        assert queue.pending(job)[column] == value


@pytest.mark.parametrize(("add", "limit"), [(1800, 5400), (-600, 3000)])
def test_a_time_limit_can_be_changed_by_an_amount(queue: Queue, add: int, limit: int) -> None:
    job = queue.submit(time_limit_s=3600)
    assert one(queue, job, {"time_limit_add_s": add})["outcome"] == "updated"
    assert queue.job(job)["time_limit_s"] == queue.pending(job)["time_limit_s"] == limit
    detail = queue.sql.value(
        "select detail ->> 'new' from odc.event where kind = 'updated' and job_id = $1", job
    )
    assert json.loads(detail) == {"time_limit_s": limit}


def test_an_amount_that_leaves_no_time_is_refused(queue: Queue) -> None:
    job = queue.submit(time_limit_s=3600)
    assert one(queue, job, {"time_limit_add_s": -3600})["code"] == "OD010"
    assert one(queue, job, {"time_limit_add_s": 60, "time_limit_s": 60})["code"] == "OD010"
    assert one(queue, job, {"time_limit_add_s": 10**12})["code"] == "OD009"
    assert queue.job(job)["time_limit_s"] == 3600


def test_an_update_is_an_event_with_old_and_new_values(queue: Queue) -> None:
    job = queue.submit(nice=1)
    one(queue, job, {"nice": 2, "name": "b"})
    detail = queue.sql.value(
        "select detail from odc.event where kind = 'updated' and job_id = $1", job
    )
    assert json.loads(detail) == {
        "old": {"nice": 1, "name": "job"},
        "new": {"nice": 2, "name": "b"},
    }


def test_a_job_is_changed_completely_or_not_at_all(queue: Queue) -> None:
    job = queue.submit()
    assert one(queue, job, {"name": "new", "time_limit_s": UNLIMITED_S})["code"] == "OD009"
    assert queue.job(job)["name"] == "job"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"time_limit_s": 0}, "OD010"),
        ({"time_limit_s": None}, "OD010"),
        ({"time_limit_s": 31 * 86400}, "OD009"),
        ({"nice": -1}, "OD013"),
        ({"name": ""}, "OD010"),
        ({"name": None}, "OD010"),
        ({"partitions": ["gpu"]}, "OD001"),
        ({"partitions": ["empty"]}, "OD008"),
        ({"partitions": ["short"]}, "OD009"),
        ({"partitions": ["closed"]}, "OD012"),
        ({"array_throttle": 2}, "OD012"),
        ({"deadline_at": "2025-01-01T00:00:00Z"}, "OD010"),
        ({"dependency": "afterok:999999"}, "OD011"),
    ],
)
def test_an_impossible_change_is_refused(queue: Queue, changes: dict[str, Any], code: str) -> None:
    queue.sql.execute(
        "insert into odc.partition (name, all_nodes, state, max_time_limit_s) values "
        "('empty', false, 'UP', null), ('short', true, 'UP', 60), "
        "('closed', true, 'INACTIVE', null)"
    )
    queue.sql.execute("select odc._regroup_nodes()")
    job = queue.submit()
    before = queue.job(job)
    answer = one(queue, job, changes)
    assert answer["code"] == code
    assert answer["message"]
    assert queue.job(job) == before


@pytest.mark.parametrize("changes", [{}, {"gpus": 3}, {"uid": 0, "nice": 1}])
def test_unknown_fields_of_an_update_are_named(queue: Queue, changes: dict[str, Any]) -> None:
    job = queue.submit()
    with pytest.raises(BadRequest) as refusal:
        queue.update(job, changes=changes)
    assert "time_limit_s" in (refusal.value.hint or "")


def test_only_the_owner_and_operators_may_change_a_job(queue: Queue) -> None:
    job = queue.submit()
    assert one(queue, job, {"name": "x"}, who=BOB)["code"] == "OD013"
    assert one(queue, job, {"nice": -5}, who=ROOT)["outcome"] == "updated"
    assert queue.pending(job)["nice"] == -5


def test_a_running_jobs_limit_can_be_shortened_by_its_owner_and_lengthened_by_an_operator(
    queue: Queue,
) -> None:
    job = queue.submit(time_limit_s=600)
    queue.start()
    started = queue.now
    queue.move(60)
    longer = one(queue, job, {"time_limit_s": 601})
    assert longer["code"] == "OD013"
    assert "cannot be lengthened" in longer["message"]
    assert one(queue, job, {"time_limit_s": 300})["outcome"] == "updated"
    assert queue.running(job)["ends_at"] == started + timedelta(seconds=300)
    assert one(queue, job, {"time_limit_s": 3600}, who=ROOT)["outcome"] == "updated"
    ends = {queue.running(job)["ends_at"], *queue.sql.values("select ends_at from odc.allocation")}
    assert ends == {started + timedelta(seconds=3600)}
    above = one(queue, job, {"time_limit_s": 31 * 86400}, who=ROOT)
    assert above["code"] == "OD009"
    assert "time limit 31-00:00:00 exceeds the limit of 30-00:00:00 of" in above["message"]


@pytest.mark.parametrize("changes", [{"nice": 1}, {"partitions": ["main"]}, {"begin_at": None}])
def test_fields_used_for_planning_cannot_change_while_a_job_runs(
    queue: Queue, changes: dict[str, Any]
) -> None:
    job = queue.submit()
    queue.start()
    assert one(queue, job, changes)["code"] == "OD012"


def test_only_the_comment_of_an_ended_job_can_change(queue: Queue) -> None:
    job = queue.submit()
    queue.start()
    queue.end(job)
    assert one(queue, job, {"comment": "good run"})["outcome"] == "updated"
    assert queue.job(job)["comment"] == "good run"
    assert one(queue, job, {"comment": "x", "name": "y"})["code"] == "OD012"


def test_another_partition_is_another_shape(queue: Queue) -> None:
    a_cluster(queue.sql, h100=2, l4=1)
    queue.sql.execute("insert into odc.partition (name) values ('small')")
    queue.sql.execute(
        "insert into odc.partition_node select p.id, n.id from odc.partition as p, odc.node as n "
        "where p.name = 'small' and n.name = 'l4-1'"
    )
    queue.sql.execute("select odc._regroup_nodes()")
    job, big = queue.submit(ntasks=1), queue.submit(gpus=8)
    assert one(queue, job, {"partitions": ["small"]})["outcome"] == "updated"
    assert one(queue, big, {"partitions": ["small"]})["code"] == "OD008"
    assert job in queue.start()
    where = queue.sql.value(
        "select n.name from odc.allocation as a join odc.node as n on n.id = a.node_id "
        "where a.job_id = $1",
        job,
    )
    assert where == "l4-1"


def test_a_begin_time_that_moves_stops_and_starts_a_job(queue: Queue) -> None:
    job = queue.submit()
    one(queue, job, {"begin_at": "2026-01-01T01:00:00Z"})
    assert queue.start() == []
    one(queue, job, {"begin_at": None})
    assert queue.start() == [job]


def test_a_delay_after_a_failed_launch_ends_with_a_new_begin_time(queue: Queue) -> None:
    job = queue.submit()
    assert queue.start() == [job]
    queue.sql.rows(
        "select * from odc.record_facts(0, array[$1::bigint], array[1], array[0], "
        "array['start_failed'], array[$2::timestamptz], array[null::integer], "
        "array[null::integer], array['launch'], array['no space left'], $2)",
        job, queue.now,
    )  # fmt: skip
    assert queue.pending(job)["reason"] == "JobLaunchFailure"
    one(queue, job, {"comment": "patience"})
    assert queue.start() == []
    assert queue.pending(job)["reason"] == "JobLaunchFailure"
    one(queue, job, {"begin_at": None})
    assert queue.pending(job)["reason"] is None
    assert queue.start() == [job]


def test_an_arrays_throttle_can_be_moved_while_it_runs(queue: Queue) -> None:
    array = queue.submit(array="0-9%2")
    assert len(queue.start()) == 2
    one_of = {a["outcome"] for a in queue.updates(array, changes={"array_throttle": 5})}
    assert one_of == {"updated"}
    assert len(queue.start()) == 3
    queue.updates(array, changes={"array_throttle": 1})
    assert queue.start() == []
    queue.updates(array, changes={"array_throttle": 0})
    assert len(queue.start()) == 5


def test_a_single_waiting_task_can_be_changed(queue: Queue) -> None:
    array = queue.submit(array="0-3", time_limit_s=600)
    [outcome] = queue.update((array, "{[2,3)}"), changes={"time_limit_s": 60}).values()
    assert outcome == "updated"
    assert queue.pending(queue.task(array, 2))["time_limit_s"] == 60
    assert queue.pending(array)["time_limit_s"] == 600
    [answer] = queue.updates((array, "{[1,2)}"), changes={"time_limit_s": 0})
    assert answer["code"] == "OD010"
    assert len(queue.start()) == 4
