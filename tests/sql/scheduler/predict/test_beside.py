"""Expected starts are computed beside the leader's other work: it does not wait for them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from odcd.database.pool import connect
from odcd.errors import LeadershipLost
from tests.support.builders.jobs import NOW, Queue, a_cluster
from tests.support.harness.database import Sql
from tests.support.harness.races import until_it_waits

REFRESH = "select foreseen, kept from odc.refresh_eta(0, $1)"
ACTOR = json.dumps({"user": "alice", "uid": 1001, "operator": False})


@pytest.fixture
def waiting(database_url: str) -> list[int]:
    with Sql(database_url) as sql:
        a_cluster(sql, h100=1)
        queue = Queue(sql)
        queue.submit(gpus=8, time_limit_s=3600)
        queue.start()
        return [queue.submit(gpus=8, time_limit_s=3600) for _ in range(2)]


@asynccontextmanager
async def _computing(url: str) -> AsyncGenerator[tuple[asyncio.Task[object], asyncpg.Connection]]:
    """A refresh whose forecast has begun and goes on when the block ends; another connection."""
    forecaster, blocker, other = [await connect(url) for _ in range(3)]
    try:
        blocking = blocker.transaction()
        await blocking.start()
        # The last table that the forecast reads, behind its snapshot.
        await blocker.execute("lock table odc.eta_class in access exclusive mode")
        pid: int | None = await forecaster.fetchval("select pg_backend_pid()")
        assert pid is not None
        refresh = asyncio.create_task(forecaster.fetchrow(REFRESH, NOW))
        await until_it_waits(other, pid)
        yield refresh, other
        await blocking.rollback()
        await asyncio.wait([refresh])
    finally:
        for connection in (forecaster, blocker, other):
            await connection.close()


def test_the_term_is_free_while_starts_are_computed(database_url: str, waiting: list[int]) -> None:
    async def work() -> None:
        async with _computing(database_url) as (refresh, other):
            await other.execute("set lock_timeout = '5s'")
            async with other.transaction():
                await other.fetch("select from odc.term for update")
            await other.execute("select odc.beat_term(0)")
        assert dict(refresh.result()) == {"foreseen": 2, "kept": 2}  # type: ignore[call-overload]

    asyncio.run(work())


def test_a_job_that_leaves_the_queue_meanwhile_gets_no_prediction(
    database_url: str, waiting: list[int]
) -> None:
    async def work() -> None:
        async with _computing(database_url) as (_, other):
            await other.execute("set lock_timeout = '5s'")
            ids = json.dumps({"ids": [{"job_id": waiting[0], "tasks": None}]})
            await other.execute("select odc.cancel_jobs($1::jsonb, $2::jsonb, $3)", ACTOR, ids, NOW)
        check = await connect(database_url)
        assert [r[0] for r in await check.fetch("select job_id from odc.eta")] == waiting[1:]
        found = await check.fetch("select distinct job_id from odc.prediction where open")
        assert [r[0] for r in found] == waiting[1:]
        await check.close()

    asyncio.run(work())


def test_nothing_is_kept_when_the_term_ends_meanwhile(
    database_url: str, waiting: list[int]
) -> None:
    async def work() -> None:
        async with _computing(database_url) as (refresh, other):
            await other.execute("set lock_timeout = '5s'")
            await other.execute("update odc.term set term = term + 1")
        error = refresh.exception()
        assert isinstance(error, asyncpg.PostgresError)
        assert getattr(error, "sqlstate", None) == LeadershipLost.code
        check = await connect(database_url)
        assert await check.fetch("select from odc.eta union all select from odc.prediction") == []
        await check.close()

    asyncio.run(work())
