"""Learned run times: independent of when they are read, and the most similar jobs first."""

from __future__ import annotations

import random
from typing import Any

from tests.support.builders.jobs import ALICE, BOB, Queue
from tests.support.harness.database import Sql

HOUR = 3600
KEYS = "uid, shape_id, time_limit_s, name_key, parts, sorted, learnt, last_at"


def ran(queue: Queue, seconds: int, limit_s: int = HOUR, *, how: str = "end", **fields: Any) -> int:
    """A job that starts at once and ends after this time."""
    job = queue.submit(time_limit_s=limit_s, **fields)
    assert queue.start() == [job]
    queue.move(seconds)
    if how == "end":
        queue.end(job)
    elif how == "cancel":
        queue.cancel(job)
        queue.end(job)
    return job


def fold(sql: Sql) -> int:
    return sql.value("select odc._fold_run_times()")


def learnt(sql: Sql) -> list[dict[str, Any]]:
    return sql.rows(f"select {KEYS} from odc.run_time order by 1, 2, 3, 4")


def parts(sql: Sql, uid: int, shape_id: int, limit_s: int) -> list[int]:
    return sql.value(
        "select parts from odc.run_time where uid = $1 and shape_id = $2 and time_limit_s = $3 "
        "and name_key = 0",
        uid, shape_id, limit_s,
    )  # fmt: skip


def predicted(
    sql: Sql, job_id: int, elapsed_s: int = -1, **changed: Any
) -> tuple[int, int, int, int]:
    """p10, p50, p90 and the key's number, for a job like this one."""
    job = sql.row("select uid, shape_id, time_limit_s, name from odc.job where id = $1", job_id)
    job |= changed
    row = sql.row(
        "select * from odc._predict_run_times(array[$1::integer], array[odc._run_name($2)], "
        "array[$3::integer], array[$4::integer], array[$5::integer])",
        job["uid"], job["name"], job["shape_id"], job["time_limit_s"], elapsed_s,
    )  # fmt: skip
    return row["p10_s"], row["p50_s"], row["p90_s"], row["level"]


def test_learning_bit_by_bit_is_learning_at_once(queue: Queue) -> None:
    chance = random.Random(5)
    sql = queue.sql
    for _ in range(60):
        ran(
            queue, chance.randint(1, 900), chance.choice([900, HOUR]),
            name=chance.choice(["train-1", "train-2", "eval"]),
            gpus_per_node=chance.choice([0, 1]), who=chance.choice([ALICE, BOB]),
        )  # fmt: skip
        if chance.random() < 0.4:
            fold(sql)
    fold(sql)
    bit_by_bit = learnt(sql)
    assert max(row["learnt"] for row in bit_by_bit) == 60

    sql.execute("delete from odc.run_time")
    sql.execute(
        "insert into odc.run_time_new (job_id) select id from odc.job order by ended_at, id"
    )
    assert fold(sql) == 60
    assert learnt(sql) == bit_by_bit


def test_a_key_remembers_the_last_twelve(queue: Queue) -> None:
    jobs = [ran(queue, 10 * n) for n in range(1, 15)]
    assert fold(queue.sql) == 14
    shape = queue.job(jobs[0])["shape_id"]
    kept = parts(queue.sql, ALICE.uid, shape, HOUR)
    assert kept == [round(10 * n * 1_000_000 / HOUR) for n in range(14, 2, -1)]
    assert len(parts(queue.sql, -1, 0, 0)) == 14
    assert fold(queue.sql) == 0


def test_run_times_of_cancelled_jobs_count_and_of_lost_or_requeued_jobs_do_not(
    queue: Queue,
) -> None:
    ran(queue, 60, how="cancel")
    again = queue.submit(time_limit_s=HOUR, requeue=True)
    assert queue.start() == [again]
    queue.move(300)
    queue.requeue(again)
    queue.end(again)
    never = queue.submit(time_limit_s=HOUR)
    queue.cancel(never)
    fold(queue.sql)
    assert parts(queue.sql, -1, 0, 0) == [round(60 * 1_000_000 / HOUR)]


def test_the_most_similar_jobs_are_used_first(queue: Queue) -> None:
    sql = queue.sql
    job = ran(queue, 100, name="train-7")
    assert predicted(sql, job) == (360, 1800, 3600, 8)
    ran(queue, 100, name="train-8")
    fold(sql)
    ran(queue, 900, name="other")
    ran(queue, 900, name="other")
    fold(sql)
    assert predicted(sql, job)[1:] == (100, 100, 1)
    assert predicted(sql, job, name="new")[3] == 2
    assert predicted(sql, job, shape_id=-5)[3] == 3
    assert predicted(sql, job, shape_id=-5, time_limit_s=7200)[1:] == (1000, 1800, 4)
    assert predicted(sql, job, uid=9)[3] == 5
    assert predicted(sql, job, uid=9, shape_id=-5)[3] == 6
    assert predicted(sql, job, uid=9, shape_id=-5, time_limit_s=60)[3] == 7


def test_a_running_job_is_compared_with_jobs_that_ran_at_least_as_long(queue: Queue) -> None:
    sql = queue.sql
    job = 0
    for seconds in (10, 10, 10, 1000, 2000, 3000):
        job = ran(queue, seconds)
    fold(sql)
    assert predicted(sql, job)[1] == 505
    assert predicted(sql, job, elapsed_s=11)[1] == 2000
    assert predicted(sql, job, elapsed_s=1500)[1] == 2500
    # Only one job ran longer, which is too few: half of the rest.
    assert predicted(sql, job, elapsed_s=2200)[1:] == (2899, 3600, 8)


def test_a_prediction_never_exceeds_the_time_limit(queue: Queue) -> None:
    job = ran(queue, HOUR)
    ran(queue, HOUR)
    fold(queue.sql)
    for limit in (1, 60, HOUR, 2_147_483_647):
        for elapsed in (-1, 0, 59, 5000):
            p10, p50, p90, _ = predicted(queue.sql, job, elapsed_s=elapsed, time_limit_s=limit)
            assert 0 <= p10 <= p50 <= p90 <= limit


def test_jobs_without_a_limit_are_compared_in_seconds(queue: Queue) -> None:
    queue.sql.execute("update odc.partition set max_time_limit_s = null")
    job = 0
    for seconds in (1000, 2000, 3000):
        job = ran(queue, seconds, 2_147_483_647)
    fold(queue.sql)
    p10, p50, p90, _ = predicted(queue.sql, job)
    assert abs(p10 - 1000) <= 3
    assert abs(p50 - 2000) <= 3
    assert abs(p90 - 3000) <= 3
