"""How `why` explains a limit: with numbers and the jobs that use it up; and it is true."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.sql.limits.account.books import a_limit, an_account, has_used
from tests.support.builders.jobs import BOB, ROOT, Queue


def why(queue: Queue, job: int) -> list[dict[str, Any]]:
    return queue.sql.rows("select * from odc._why_limits($1, $2)", job, queue.now)


def test_a_limit_is_explained_with_the_jobs_that_use_it_up(queue: Queue) -> None:
    queue.sql.execute("update odc.partition set policy = 'fifo'")
    a_limit(queue.sql, "qos", 1, "user", "gpus", 6)
    first = queue.submit(gpus=4, gpu_type="h100", time_limit_s=7200)
    second = queue.submit(gpus=2, gpu_type="h100", time_limit_s=3600)
    third = queue.submit(gpus=4, gpu_type="h100", time_limit_s=3600)
    assert queue.start() == [first, second]
    limit, *jobs = why(queue, third)
    assert limit["cause"] == "limit"
    assert limit["reason"] == limit["limit"] == "QOSMaxGRESPerUser"
    assert limit["text"] == (
        f"user alice in QOS normal has 6 of the 6 GPUs allowed, and this job needs 4; "
        f"jobs {second}, {first} use them; the first ends by 2026-01-01T01:00:00Z"
    )
    # Two GPUs come free at 1:00, the four that it needs at 2:00.
    assert limit["until"] == queue.running(first)["ends_at"]
    assert [(j["job_id"], j["gpus"], j["until"]) for j in jobs] == [
        (second, 2, queue.running(second)["ends_at"]),
        (first, 4, queue.running(first)["ends_at"]),
    ]


def test_root_is_a_user_like_others(queue: Queue) -> None:
    """uid 0 is not "all users"."""
    a_limit(queue.sql, "qos", 1, "user", "gpus", 6)
    a_limit(queue.sql, "qos", 1, "user", "submitted", 2)
    queue.submit(gpus=6, gpu_type="h100")
    first = queue.submit(ROOT, gpus=4, gpu_type="h100")
    second = queue.submit(ROOT, gpus=4, gpu_type="h100")
    queue.start()
    limit, *jobs = why(queue, second)
    assert limit["text"].startswith("user root in QOS normal has 4 of the 6 GPUs allowed")
    assert [job["job_id"] for job in jobs] == [first]
    assert (
        "user root in QOS normal may have 2 submitted jobs" in queue.refused(ROOT, gpus=1).message
    )


def test_when_the_jobs_named_end_the_job_starts(queue: Queue) -> None:
    a_limit(queue.sql, "account", 1, "group", "jobs", 2)
    first, second = (queue.submit(BOB, gpus=1) for _ in range(2))
    third = queue.submit(gpus=1)
    assert queue.start() == [first, second]
    limit, *jobs = why(queue, third)
    assert limit["text"].startswith("account default has 2 of the 2 running jobs allowed; jobs ")
    queue.end(jobs[0]["job_id"])
    assert why(queue, third) == []
    assert queue.start() == [third]


def test_a_job_within_its_limits_has_no_such_cause(queue: Queue) -> None:
    a_limit(queue.sql, "qos", 1, "user", "gpus", 6)
    assert why(queue, queue.submit(gpus=6, gpu_type="h100")) == []


def test_a_limit_that_no_end_of_a_job_can_free_has_no_time(queue: Queue) -> None:
    queue.sql.execute("update odc.qos set deny_on_limit = false")
    lab = an_account(queue.sql, "lab")
    a_limit(queue.sql, "account", lab, "group", "gpu_minutes", 100)
    a_limit(queue.sql, "qos", 1, "job", "wall_s", 60)
    has_used(queue.sql, lab, BOB, 90 * 60_000)
    job = queue.submit(account="lab", gpus=2, time_limit_s=1200)
    assert [(w["limit"], w["text"], w["until"]) for w in why(queue, job)] == [
        ("QOSMaxWallDurationPerJobLimit",
         "it needs a time limit of 20:00, more than the 1:00 allowed for a job in QOS "
         "normal; it cannot start unless one of the two is changed", None),
        ("AssocGrpGRESMinutes",
         "account lab has used, or reserved for running jobs, 90 of the 100 GPU-minutes allowed, "
         "and this job needs 40", None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("scope", "per", "what", "value", "text"),
    [
        ("qos", "user", "gpus", 4,
         "a limit of QOS normal, or of the partition, leaves its user too few GPUs"),
        ("partition", "group", "cpus", 4,
         "a limit of QOS normal, or of the partition, leaves it too few CPUs"),
        ("qos", "account", "jobs", 1,
         "a limit of QOS normal, or of the partition, leaves its account no more running jobs"),
        ("account", "group", "gpu_minutes", 250,
         "a limit of account default, or of one above it, leaves it too few GPU-minutes"),
        ("account", "job", "wall_s", 60,
         "a limit of account default, or of one above it, allows a job less time"),
    ],
)  # fmt: skip
def test_lists_show_which_limit_a_job_waits_for(
    queue: Queue, scope: str, per: str, what: str, value: int, text: str
) -> None:
    if per == "job":
        queue.sql.execute("update odc.qos set deny_on_limit = false")
    a_limit(queue.sql, scope, 1, per, what, value)
    queue.submit(gpus=4, cpus_per_task=4, time_limit_s=3600)
    last = queue.submit(gpus=4, cpus_per_task=4, time_limit_s=3600)
    queue.start()
    [why] = json.loads(queue.sql.value("select why from odc.pending_job where id = $1", last))
    assert why["text"] == text


def test_lists_show_which_licences_a_job_waits_for(queue: Queue) -> None:
    queue.sql.execute("insert into odc.licence (name, total) values ('matlab', 2)")
    waits = queue.submit(licences={"matlab": 2})
    queue.sql.execute("update odc.licence set total = 1")
    queue.start()
    [why] = json.loads(queue.sql.value("select why from odc.pending_job where id = $1", waits))
    assert why["text"] == "too few licences are free; it needs matlab: 2"
