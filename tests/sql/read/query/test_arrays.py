"""The progress of an array, on each of its rows."""

from __future__ import annotations

from tests.sql.read.query.cluster import Cluster
from tests.support.harness.database import Sql


def test_every_row_of_an_array_has_its_progress(sql: Sql) -> None:
    cluster = Cluster(sql)
    array = cluster.submit(array="0-4%3")
    alone = cluster.submit()
    cluster.plan()
    rows, _ = cluster.list({"state": ["RUNNING", "CONFIGURING"]})
    tasks = [job["id"] for job in rows if job["array_job_id"] == array]
    assert len(tasks) == 3
    cluster.end(tasks[0])
    rows, _ = cluster.list({})
    found = {job["id"]: job["array_progress"] for job in rows}
    assert found[alone] is None
    progress = {"tasks": 5, "pending": 2, "running": 2, "done": 1, "failed": 0}
    assert [found[task] for task in tasks[1:]] == [progress, progress]
    assert found[array] == progress


def test_jobs_can_be_listed_by_when_they_ended(sql: Sql) -> None:
    cluster = Cluster(sql)
    jobs = [cluster.submit() for _ in range(3)]
    cluster.plan()
    ends: list[str] = []
    for job in jobs:
        cluster.move(60)
        ends.append(cluster.now.isoformat())
        cluster.end(job)
    page, _ = cluster.list({"ended_before": ends[2], "ended_since": ends[1]}, ended=True)
    assert [job["id"] for job in page] == [jobs[1]]
