"""Reasons and causes: why a pending job has not started."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from tests.sql.read.query.cluster import NOW, Cluster
from tests.support.harness.database import Sql


def test_a_job_before_its_first_pass_has_no_reason(sql: Sql) -> None:
    cluster = Cluster(sql)
    job = cluster.job(cluster.submit())
    assert (job["reason"], job["why"], job["eta"]) == ("None", [], None)


def test_a_planned_job_names_the_jobs_on_its_nodes_and_their_ends(sql: Sql) -> None:
    cluster = Cluster(sql)
    running = cluster.submit(gpus=8, time_limit_s=600)
    head = cluster.submit(gpus=8)
    cluster.plan()
    explanation = cluster.explain(head)
    assert (explanation["job_id"], explanation["state"], explanation["reason"]) == (
        head,
        "PENDING",
        "Resources",
    )
    assert explanation["planned_start_at"] == "2026-01-01T00:10:00Z"
    assert explanation["eta"] == {
        "p10": None,
        "p50": "2026-01-01T00:10:00Z",
        "p90": None,
        "exact": True,
    }
    need, holder = explanation["why"]
    assert need["cause"] == "node"
    assert "8 free" in need["text"]
    assert need["until"] == "2026-01-01T00:10:00Z"
    assert (holder["cause"], holder["job_id"], holder["node"], holder["gpus"], holder["until"]) == (
        "running_job", running, "n1", 8, "2026-01-01T00:10:00Z"
    )  # fmt: skip


def test_a_planned_start_is_never_in_the_past(sql: Sql) -> None:
    cluster = Cluster(sql)
    cluster.submit(gpus=8, time_limit_s=60)
    head = cluster.submit(gpus=8)
    cluster.plan()
    cluster.move(90)
    assert cluster.explain(head)["planned_start_at"] == "2026-01-01T00:01:30Z"
    assert cluster.job(head)["eta"]["p50"] == "2026-01-01T00:01:30Z"


def test_a_job_behind_the_head_names_it(sql: Sql) -> None:
    cluster = Cluster(sql)
    sql.execute("update odc.partition set policy = 'fifo'")
    cluster.submit(gpus=8, time_limit_s=60)
    head, behind = cluster.submit(gpus=8), cluster.submit(gpus=4)
    cluster.plan()
    job = cluster.job(behind)
    assert job["reason"] == "Priority"
    assert job["planned_start_at"] is None
    [cause] = job["why"]
    assert (cause["cause"], cause["job_id"], cause["until"]) == (
        "planned_job",
        head,
        "2026-01-01T00:01:00Z",
    )
    assert f"job {head}" in cause["text"]


def test_a_gang_that_holds_the_nodes_is_one_cause(sql: Sql) -> None:
    cluster = Cluster(sql, nodes=3)
    gang = cluster.submit(node_count=3, gpus_per_node=8, gpus=None, time_limit_s=600)
    assert cluster.plan() == [gang]
    waits = cluster.submit(node_count=3, gpus_per_node=8, gpus=None)
    cluster.plan()
    _, holds = cluster.job(waits)["why"]
    assert (holds["job_id"], holds["gpus"], "node" in holds) == (gang, 24, False)
    assert holds["text"].startswith(f"job {gang} holds 8 GPUs and ")
    assert " on each of n[1-3] until " in holds["text"]


def test_a_drained_node_is_the_cause_when_nothing_else_could_serve(sql: Sql) -> None:
    cluster = Cluster(sql)
    job_id = cluster.submit()
    sql.execute(
        "select odc.set_node_state($1::jsonb, '{n1}', 'DRAIN', 'new driver', $2)",
        '{"user": "root", "uid": 0, "operator": true}', cluster.now,
    )  # fmt: skip
    cluster.plan()
    job = cluster.job(job_id)
    assert job["reason"] == "ReqNodeNotAvail"
    need, nodes = job["why"]
    assert "none is free for it now" in need["text"]
    assert "drained" in nodes["text"]


def test_a_held_job_names_who_can_release_it(sql: Sql) -> None:
    cluster = Cluster(sql)
    job = cluster.job(cluster.submit(hold=True))
    assert job["reason"] == "JobHeldUser"
    assert [cause["cause"] for cause in job["why"]] == ["hold"]
    assert f"odcctl release {job['id']}" in job["why"][0]["text"]


def test_a_begin_time_is_a_cause(sql: Sql) -> None:
    cluster = Cluster(sql)
    job = cluster.job(cluster.submit(begin_at=NOW + timedelta(hours=1)))
    assert job["reason"] == "BeginTime"
    assert job["why"] == [
        {
            "cause": "begin",
            "text": "may not start before 2026-01-01T01:00:00Z",
            "until": "2026-01-01T01:00:00Z",
        }
    ]


def test_every_cause_of_a_job_is_named(sql: Sql) -> None:
    cluster = Cluster(sql)
    job = cluster.job(cluster.submit(hold=True, begin_at=NOW + timedelta(hours=1)))
    assert [cause["cause"] for cause in job["why"]] == ["hold", "begin"]


def test_a_throttled_array_shows_its_numbers(sql: Sql) -> None:
    cluster = Cluster(sql)
    array = cluster.submit(array="0-9%2")
    cluster.plan()
    job = cluster.job(array)
    assert job["reason"] == "JobArrayTaskLimit"
    [cause] = job["why"]
    assert (cause["cause"], cause["limit"]) == ("limit", "array_throttle")
    assert (
        cause["text"] == "2 of its tasks are running, the array allows 2 at once, and 8 are waiting"
    )


def test_a_failed_launch_is_explained_with_its_next_attempt(sql: Sql) -> None:
    cluster = Cluster(sql)
    job_id = cluster.submit()
    cluster.plan()
    cluster.fact(job_id, 1, 0, "start_failed", cause="launch", detail="no such folder /scratch")
    job = cluster.job(job_id)
    assert (job["reason"], job["restarts"]) == ("JobLaunchFailure", 1)
    [cause] = job["why"]
    assert "(no such folder /scratch)" in cause["text"]
    assert cause["until"] == job["begin_at"]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("after", "to start"),
        ("afterany", "to end"),
        ("afterok", "to end successfully"),
        ("afternotok", "to end unsuccessfully"),
    ],
)
def test_a_dependency_names_its_target(sql: Sql, kind: str, words: str) -> None:
    cluster = Cluster(sql)
    first = cluster.submit(gpus=8, hold=True)
    job = cluster.job(cluster.submit(dependency=f"{kind}:{first}"))
    assert job["reason"] == "Dependency"
    [cause] = job["why"]
    assert (cause["cause"], cause["job_id"]) == ("dependency", first)
    assert cause["text"] == f"waits for job {first} {words} ({kind}); that job is PENDING"


def test_a_dependency_on_a_running_job_shows_its_latest_end(sql: Sql) -> None:
    cluster = Cluster(sql)
    first = cluster.submit(gpus=8, time_limit_s=60)
    cluster.plan()
    job = cluster.job(cluster.submit(dependency=f"afterany:{first}"))
    assert job["why"][0]["until"] == "2026-01-01T00:01:00Z"


def test_singletons_name_the_jobs_they_wait_for(sql: Sql) -> None:
    cluster = Cluster(sql)
    cluster.submit(name="nightly", hold=True)
    job = cluster.job(cluster.submit(name="nightly", dependency="singleton"))
    assert job["reason"] == "Dependency"
    assert "earlier jobs of the same name" in job["why"][0]["text"]


def test_a_failed_dependency_has_its_own_cause(sql: Sql) -> None:
    cluster = Cluster(sql)
    first = cluster.submit()
    cluster.plan()
    waiting = cluster.submit(dependency=f"afterok:{first}", hold=True)
    cluster.end(first, exit_code=1)
    job = cluster.job(waiting)
    assert [cause["cause"] for cause in job["why"]] == ["hold", "dependency"]
    assert (
        job["why"][1]["text"]
        == f"can never start: it needed job {first} to end successfully (afterok); "
        "that job is FAILED"
    )


def test_a_failed_dependency_on_an_array_names_the_task(sql: Sql) -> None:
    cluster = Cluster(sql)
    array = cluster.submit(array="0-9", hold=True)
    waiting = cluster.submit(dependency=f"afterok:{array}", hold=True)
    sql.value(
        "select odc.cancel_jobs($1::jsonb, $2::jsonb, $3)",
        '{"user": "alice", "uid": 1001}',
        json.dumps({"ids": [{"job_id": array, "tasks": "{[8,10)}"}]}),
        NOW,
    )
    text = cluster.job(waiting)["why"][1]["text"]
    assert text == (
        f"can never start: it needed job {array} to end successfully (afterok); "
        "its tasks 8-9 are CANCELLED"
    )


def test_a_dependency_on_an_array_counts_its_tasks(sql: Sql) -> None:
    cluster = Cluster(sql)
    array = cluster.submit(array="0-9%1")
    waiting = cluster.submit(dependency=f"afterok:{array}")
    cluster.plan()
    assert cluster.job(waiting)["why"][0]["text"] == (
        f"waits for job {array} to end successfully (afterok); 1 of its tasks is running, 9 wait"
    )


def test_a_dependency_that_can_still_be_met_is_not_called_impossible(sql: Sql) -> None:
    cluster = Cluster(sql)
    first, other = cluster.submit(), cluster.submit()
    waits = cluster.submit(dependency=f"afterok:{first}?afterok:{other}")
    cluster.plan()
    cluster.end(first, exit_code=1)
    assert cluster.job(waits)["reason"] == "Dependency"
    texts = {cause["text"] for cause in cluster.explain(waits)["why"]}
    assert texts == {
        f"one of its dependencies can no longer be met: it needed job {first} to end successfully "
        "(afterok); that job is FAILED",
        f"waits for job {other} to end successfully (afterok); that job is CONFIGURING",
    }
    cluster.end(other, exit_code=1)
    assert cluster.job(waits)["reason"] == "DependencyNeverSatisfied"
    assert all(cause["text"].startswith("can never") for cause in cluster.explain(waits)["why"])
