"""No user's jobs make the usage of all users slow."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from tests.support.builders.jobs import Queue, a_cluster
from tests.support.harness.database import Sql

JOBS, ACCOUNTS = 6_000, 40


@pytest.fixture
def queue(database_url: str) -> Iterator[Queue]:
    with Sql(database_url) as sql:
        sql.begin()
        a_cluster(sql, h100=1)
        yield Queue(sql)
        sql.rollback()


def test_the_time_for_usage_grows_with_the_jobs_and_not_with_their_square(queue: Queue) -> None:
    """Before: each job was compared with each attempt. Two thousand ended jobs of one user made
    `odcctl usage` take 10 s for everybody, and ten thousand made it time out."""
    job = queue.submit(gpus_per_node=1, time_limit_s=600)
    queue.start()
    queue.move(60)
    queue.end(job)
    for table, key in (("job", "id"), ("attempt", "job_id")):
        columns = queue.sql.value(
            "select string_agg(quote_ident(attname), ', ') from pg_attribute "
            "where attrelid = ('odc.' || $1)::regclass and attnum > 0 and not attisdropped "
            "and attgenerated = '' and attname <> $2",
            table, key,
        )  # fmt: skip
        queue.sql.execute(
            f"insert into odc.{table} ({key}, {columns}) overriding system value "
            f"select {key} + n, {columns} from odc.{table}, generate_series(1, {JOBS}) as n"
        )
    queue.sql.execute(
        "insert into odc.account (name, parent) "
        f"select 'a' || n, 1 from generate_series(1, {ACCOUNTS}) as n"
    )
    # Linear, it takes a fraction of a second.
    queue.sql.execute("set local statement_timeout = '20s'")
    queue.sql.execute("set local plan_cache_mode = force_generic_plan")
    usage = queue.sql.value(
        "select odc.list_usage('{user}', '{}', $1, $2, $2)",
        queue.now - timedelta(days=7), queue.now,
    )  # fmt: skip
    assert f'"jobs" : {JOBS + 1}' in usage
