"""PostgreSQL partitions are created while odc works, are few, and are complete."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from odcd.errors import OdcError
from odcd.history.partitions import finish_indexes, make_partitions
from tests.support.builders.jobs import Queue, a_cluster
from tests.support.harness.database import Sql

PARENTS = ("job", "attempt", "prediction", "event")
UPPER = """
    select max((regexp_match(pg_get_expr(c.relpartbound, c.oid), 'TO \\(''(\\d+)'))[1]::bigint)
      from pg_inherits as i join pg_class as c on c.oid = i.inhrelid
     where i.inhparent = ('odc.' || $1)::regclass
"""
COUNT = "select count(*) from pg_inherits where inhparent = ('odc.' || $1)::regclass"
LOCKS = "select count(*) from pg_locks where pid = pg_backend_pid() and locktype = 'relation'"


@pytest.fixture
def sql(database_url: str) -> Iterator[Sql]:
    """A session that never waits long for a lock."""
    with Sql(database_url) as session:
        session.execute("set lock_timeout = '5s'")
        yield session


def use_up(sql: Sql) -> None:
    """Only a few ids are left below the highest bounds."""
    sql.execute("select setval('odc.job_id_seq', $1)", sql.value(UPPER, "job") - 10)
    sql.execute("select setval('odc.event_id_seq', $1)", sql.value(UPPER, "event") - 10)


def parts(sql: Sql) -> dict[str, int]:
    return {parent: sql.value(COUNT, parent) for parent in PARENTS}


def test_a_partition_is_created_while_a_reader_keeps_its_transaction_open(sql: Sql) -> None:
    a_cluster(sql, h100=1)
    queue = Queue(sql)
    queue.submit()
    with Sql(sql.dsn) as reader:
        reader.begin()
        reader.value("select count(*) from odc.job")
        reader.value("select count(*) from odc.event")
        before = parts(sql)
        use_up(sql)
        queue.sweep()
        asyncio.run(make_partitions(sql.dsn))
        assert {parent: parts(sql)[parent] - before[parent] for parent in PARENTS} == dict.fromkeys(
            PARENTS, 1
        )
        jobs = [queue.submit() for _ in range(15)]
        queue.sweep()
        assert queue.start()
        assert queue.state(jobs[-1]) in ("CONFIGURING", "PENDING")
        assert sql.value("select odc.show_jobs($1, null, $2)", jobs[0], queue.now)
        reader.rollback()
    assert sql.value("select tableoid::regclass::text from odc.job where id = $1", jobs[-1]) != (
        sql.value("select tableoid::regclass::text from odc.job where id = $1", jobs[0])
    )


def test_the_sweep_takes_no_lock_that_a_reader_must_wait_for(sql: Sql) -> None:
    use_up(sql)
    sql.begin()
    Queue(sql).sweep()
    strong = sql.values(
        "select relation::regclass::text from pg_locks where pid = pg_backend_pid() "
        "and locktype = 'relation' and mode in ('AccessExclusiveLock', 'ExclusiveLock')"
    )
    sql.rollback()
    assert strong == []


def test_a_new_partition_has_all_that_its_parent_has(sql: Sql) -> None:
    a_cluster(sql, h100=1)
    use_up(sql)
    sql.execute("select odc.make_partitions()")
    queue = Queue(sql)
    jobs = [queue.submit(gpus=1) for _ in range(15)]
    while started := queue.start():
        queue.end(*started)
    last = jobs[-1]
    assert queue.state(last) == "COMPLETED"
    assert queue.events(last) == ["submitted", "started", "ended"]
    # The triggers came with it: ended jobs stay ended, and a changed name is recorded.
    with pytest.raises(Exception, match="ended"):
        sql.execute("update odc.job set state = 'FAILED' where id = $1", last)
    sql.execute("update odc.job set name = 'other' where id = $1", last)
    assert sql.value("select count(*) from odc.job_past where id = $1", last) == 1
    for parent in PARENTS:
        assert sql.values(
            "select i.indexrelid::regclass::text from pg_index as i "
            "where i.indrelid = ('odc.' || $1)::regclass and not i.indisvalid",
            parent,
        ) == [], parent  # fmt: skip
        kinds = sql.values(
            "select count(*) from pg_inherits as h join pg_index as i on i.indrelid = h.inhrelid "
            "where h.inhparent = ('odc.' || $1)::regclass group by h.inhrelid",
            parent,
        )
        assert len(set(kinds)) == 1, (parent, kinds)


def test_partitions_of_two_million_ids_stay_and_the_next_one_begins_behind_them(sql: Sql) -> None:
    sql.execute("drop table odc.job_0")
    for n in range(2):
        sql.execute(
            f"create table odc.job_{n} partition of odc.job "
            f"for values from ({n * 2_000_000}) to ({(n + 1) * 2_000_000})"
        )
    sql.execute("select odc.make_partitions()")
    bounds = sql.values(
        "select pg_get_expr(relpartbound, oid) from pg_class "
        "where relispartition and relname ~ '^job_[0-9]+$' order by oid"
    )
    assert bounds[-1] == "FOR VALUES FROM ('4000000') TO ('104000000')"
    assert len(bounds) == 3
    assert sql.value("select odc.create_partitions()") == []


@pytest.mark.long
def test_a_partition_that_cannot_be_created_now_is_left_for_later(sql: Sql) -> None:
    use_up(sql)
    before = parts(sql)
    with Sql(sql.dsn) as other:
        other.begin()
        other.execute("lock table odc.job in share update exclusive mode")
        with pytest.raises(OdcError, match="not created"):
            asyncio.run(make_partitions(sql.dsn))
        other.rollback()
    assert parts(sql) == before
    assert asyncio.run(make_partitions(sql.dsn))
    assert min(parts(sql).values()) > min(before.values())


def test_two_that_create_partitions_at_once_do_not_fail(sql: Sql) -> None:
    """A daemon of the last release died of it while the database was migrated."""
    use_up(sql)
    with Sql(sql.dsn) as other:
        other.begin()
        assert other.value("select odc.create_partitions()") != []
        sql.execute("select odc.make_partitions()")
        other.rollback()


def test_an_index_missing_on_an_old_partition_is_built_concurrently(sql: Sql) -> None:
    sql.execute("drop index odc.job_ended")
    sql.execute("create index job_ended on only odc.job (state, ended_at) where state is not null")
    valid = "select indisvalid from pg_index where indexrelid = 'odc.job_ended'::regclass"
    assert sql.value(valid) is False
    assert asyncio.run(finish_indexes(sql.dsn)) == ["job_ended_job_0"]
    assert sql.value(valid) is True
    assert asyncio.run(finish_indexes(sql.dsn)) == []


def test_a_pass_takes_under_100_locks_after_a_year_of_a_million_jobs_a_day(sql: Sql) -> None:
    for day in range(1, 366):
        sql.execute("select setval('odc.job_id_seq', $1)", day * 1_000_000)
        sql.execute("select setval('odc.event_id_seq', $1)", day * 4_000_000)
        sql.execute("select odc.make_partitions()")
    a_cluster(sql, h100=2)
    queue = Queue(sql)
    fewest: dict[str, int] = {}

    def counted(name: str) -> None:
        fewest[name] = min(sql.value(LOCKS), fewest.get(name, 1_000_000))

    # Several times: a statement is planned at first and after an analyze, which takes more locks.
    sql.begin()
    sql.rollback()
    for _ in range(4):
        sql.execute("begin")
        job = queue.submit(gpus=8)
        counted("submit")
        sql.execute("commit; begin")
        assert queue.start() == [job]
        counted("pass")
        sql.execute("commit; begin")
        queue.end(job)
        counted("end")
        sql.execute("commit; begin")
        queue.sweep()
        counted("sweep")
        sql.execute("commit")
    assert max(fewest.values()) < 100, fewest
