"""Lists of ended jobs: the last end first, page by page, and by index."""

from __future__ import annotations

import json
from typing import Any

from tests.sql.read.query.cluster import BOB, Cluster
from tests.support.harness.database import Sql

ENDED = ["COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED",
         "DEADLINE", "BOOT_FAIL"]  # fmt: skip


def ids(cluster: Cluster, *, after: int | None = None, limit: int = 1000, **filters: Any) -> Any:
    page, cursor = cluster.list({"state": ENDED, **filters}, ended=True, after=after, limit=limit)
    return [job["id"] for job in page], cursor


def some_that_ended(sql: Sql) -> tuple[Cluster, list[int]]:
    """The longer a job has waited, the later it ends."""
    cluster = Cluster(sql)
    jobs = [cluster.submit() for _ in range(6)]
    cluster.plan()
    for job in reversed(jobs[1:]):
        cluster.move(60)
        cluster.end(job)
    return cluster, jobs


def test_ended_jobs_are_listed_by_their_end_the_last_first(sql: Sql) -> None:
    cluster, jobs = some_that_ended(sql)
    assert ids(cluster)[0] == jobs[1:]
    page, cursor = ids(cluster, limit=2)
    assert page == jobs[1:3]
    # Jobs that end now are before the cursor: they are on no later page, and no page loses a job.
    cluster.move(60)
    cluster.end(jobs[0])
    page, cursor = ids(cluster, limit=2, after=cursor)
    assert page == jobs[3:5]
    assert ids(cluster, limit=2, after=cursor) == ([jobs[5]], None)
    assert ids(cluster)[0] == jobs


def test_jobs_that_ended_at_once_are_paged_by_their_id(sql: Sql) -> None:
    cluster = Cluster(sql)
    jobs = [cluster.submit() for _ in range(5)]
    cluster.plan()
    for job in jobs:
        cluster.end(job)
    seen: list[int] = []
    cursor = None
    while True:
        page, cursor = ids(cluster, limit=2, after=cursor)
        seen += page
        if cursor is None:
            break
    assert seen == jobs[::-1]


def test_ended_jobs_of_several_users_and_states_are_one_list(sql: Sql) -> None:
    cluster = Cluster(sql)
    a, b, c = cluster.submit(), cluster.submit(BOB), cluster.submit()
    cluster.plan()
    for job, code in ((b, 0), (a, 1), (c, 0)):
        cluster.move(60)
        cluster.end(job, exit_code=code)
    assert ids(cluster, user=["alice", "bob"])[0] == [c, a, b]
    assert ids(cluster, user="bob")[0] == [b]
    assert ids(cluster, user=["alice"], state=["FAILED"])[0] == [a]
    assert ids(cluster, state=["FAILED", "COMPLETED"], partition=["main"])[0] == [c, a, b]
    assert ids(cluster, user=["alice", "alice"], limit=1)[0] == [c]


def test_a_page_behind_a_job_that_retention_deleted_is_empty(sql: Sql) -> None:
    cluster, jobs = some_that_ended(sql)
    _, cursor = ids(cluster, limit=4)
    sql.execute("delete from odc.job where id = any ($1)", jobs[4:])
    assert ids(cluster, limit=4, after=cursor) == ([], None)


def test_a_page_of_ended_jobs_reads_little_of_a_long_history(sql: Sql) -> None:
    cluster, [first, *_] = some_that_ended(sql)
    columns = sql.values(
        "select quote_ident(attname) from pg_attribute where attrelid = 'odc.job'::regclass "
        "and attnum > 0 and attname not in ('id', 'user_name', 'state', 'ended_at')"
    )
    sql.execute(
        f"insert into odc.job (id, user_name, state, ended_at, {', '.join(columns)}) "
        "select 10000000 + n, 'user' || n % 50, 'COMPLETED', "
        "$1::timestamptz + n * interval '1 second', "
        f"{', '.join(columns)} from generate_series(1, 20000) as n, odc.job where id = $2",
        cluster.now, first,
    )  # fmt: skip
    sql.execute("analyze odc.job")
    for filters, after in (
        ({"state": ENDED}, None),
        ({"state": ENDED}, 10_010_000),
        ({"state": ENDED, "user": ["user7"]}, None),
        ({"state": ENDED, "user": ["nobody"]}, None),
        ({"state": ["FAILED"]}, None),
    ):
        query = sql.value("select odc._page_of_ended($1::jsonb)", json.dumps(filters))
        plan = json.loads(
            sql.value(
                "explain (analyze, timing off, format json) "
                + query.replace("$1", "$1::jsonb").replace("$2", "$2::bigint"),
                json.dumps(filters), after, 50,
            )
        )  # fmt: skip
        assert most_rows(plan[0]["Plan"]) < 1000, (filters, json.dumps(plan, indent=1))


def most_rows(node: dict[str, Any]) -> float:
    """The rows that each step of the query plan read."""
    own = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
    return max([own, *(most_rows(child) for child in node.get("Plans", ()))])
