"""Users, submits and the leader at the same time, each on its own connection."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from odcd.database.pool import connect
from odcd.jobs.submission import prepare
from tests.support.builders.jobs import ALICE, NOW, Queue, a_cluster, a_job
from tests.support.harness.database import Sql
from tests.support.harness.races import until_it_waits

ACTOR = json.dumps({"user": "alice", "uid": 1001, "operator": False})


@pytest.fixture
def first_job(database_url: str) -> int:
    with Sql(database_url) as sql:
        a_cluster(sql, h100=1)
        return Queue(sql).submit(name="first")


@asynccontextmanager
async def connections(url: str) -> AsyncIterator[tuple[asyncpg.Connection, ...]]:
    """Sessions of the leader, of a user, and of an observer."""
    opened = (await connect(url), await connect(url), await connect(url))
    try:
        yield opened
    finally:
        for connection in opened:
            await connection.close()


async def plan(leader: asyncpg.Connection) -> list[int]:
    return await leader.fetchval("select started from odc.plan_pass(0, $1)", NOW)


async def end(leader: asyncpg.Connection, *jobs: int) -> None:
    n = len(jobs)
    await leader.fetch(
        "select * from odc.record_facts(0, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        list(jobs), [1] * n, [0] * n, ["exited"] * n, [NOW] * n, [0] * n, [None] * n, [None] * n,
        [None] * n, NOW,
    )  # fmt: skip


async def cancel(user: asyncpg.Connection, filters: dict[str, Any]) -> dict[int, str]:
    text = await user.fetchval(
        "select odc.cancel_jobs($1::jsonb, $2::jsonb, $3)", ACTOR, json.dumps(filters), NOW
    )
    return {answer["job_id"]: answer["outcome"] for answer in json.loads(text)}


async def send(user: asyncpg.Connection, **fields: Any) -> int:
    made = prepare(ALICE, [a_job(**fields)], key=None, dry_run=False)
    return await user.fetchval(
        "select job_id from odc.submit_jobs($1::jsonb, $2, $3, $4)",
        json.dumps([made.request]), list(made.texts), list(made.texts.values()), NOW,
    )  # fmt: skip


async def meanwhile(
    holder: asyncpg.Connection, waiter: asyncpg.Connection, watcher: asyncpg.Connection,
    first: Callable[[], Awaitable[Any]], second: Callable[[], Awaitable[Any]],
) -> Any:  # fmt: skip
    """Run the first, commit it once the second waits for it, and return the second's result."""
    transaction = holder.transaction()
    await transaction.start()
    await first()
    waiting = asyncio.ensure_future(second())
    await until_it_waits(watcher, waiter.get_server_pid())
    await transaction.commit()
    return await waiting


def test_a_job_that_starts_while_it_is_cancelled_is_asked_to_end(
    database_url: str, first_job: int
) -> None:
    async def race() -> None:
        async with connections(database_url) as (leader, user, watcher):
            outcome = await meanwhile(
                leader, user, watcher,
                lambda: plan(leader), lambda: cancel(user, {"job_ids": [first_job]}),
            )  # fmt: skip
            assert outcome == {first_job: "cancelling"}
            assert await watcher.fetchval("select intent::text from odc.running") == "cancel"
            assert await watcher.fetchval("select count(*) from odc.pending") == 0

    asyncio.run(race())


def test_a_job_that_is_cancelled_while_a_pass_starts_it_does_not_start(
    database_url: str, first_job: int
) -> None:
    async def race() -> None:
        async with connections(database_url) as (leader, user, watcher):
            started = await meanwhile(
                user, leader, watcher,
                lambda: cancel(user, {"job_ids": [first_job]}), lambda: plan(leader),
            )  # fmt: skip
            assert started == []
            assert await plan(leader) == []
            assert await watcher.fetch("select * from odc.check_books()") == []

    asyncio.run(race())


def test_a_job_that_ends_while_another_begins_to_wait_for_it_is_seen(
    database_url: str, first_job: int
) -> None:
    async def race() -> None:
        async with connections(database_url) as (leader, user, watcher):
            await plan(leader)
            settler = await connect(database_url)
            waiting = await meanwhile(
                settler, user, watcher,
                lambda: end(settler, first_job),
                lambda: send(user, dependency=f"afterok:{first_job}"),
            )  # fmt: skip
            assert await plan(leader) == [waiting]
            again = await send(user, hold=True, dependency="singleton", name="x")
            await meanwhile(
                user, settler, watcher,
                lambda: send(user, name="late", dependency=f"afterok:{waiting}"),
                lambda: end(settler, waiting),
            )  # fmt: skip
            late = await watcher.fetchval("select max(id) from odc.job where name = 'late'")
            assert await plan(leader) == [late]
            assert again != late
            await settler.close()

    asyncio.run(race())


def test_a_pass_that_is_older_than_a_dependency_on_its_start_still_sees_it(
    database_url: str, first_job: int
) -> None:
    async def race() -> None:
        async with connections(database_url) as (leader, user, watcher):
            started = await meanwhile(
                user, leader, watcher,
                lambda: send(user, dependency=f"after:{first_job}"), lambda: plan(leader),
            )  # fmt: skip
            assert started == [first_job]
            waiting = await watcher.fetchval("select max(id) from odc.job")
            assert await plan(leader) == [waiting]

    asyncio.run(race())


def test_changes_passes_and_ends_at_once_never_deadlock_and_keep_the_books(
    database_url: str, first_job: int
) -> None:
    """Jobs that wait for one another, selected by filters, ids and passes in every order."""
    rounds = 60

    async def users(connection: asyncpg.Connection, chance: random.Random) -> None:
        for turn in range(rounds):
            known = await connection.fetchval("select array_agg(id order by id) from odc.job")
            some = chance.sample(known, min(len(known), 6))
            match turn % 5:
                case 0:
                    targets = ":".join(map(str, some[:3]))
                    await send(connection, name="n", dependency=f"afterany:{targets}")
                case 1:
                    await send(connection, name="n", array="0-5%2", dependency="singleton")
                case 2:
                    await send(connection, name="m", dependency=f"after:{some[0]}")
                case 3:
                    await cancel(connection, {"job_ids": some})
                case _:
                    await cancel(connection, {"name": ["m"]})

    async def leads(connection: asyncpg.Connection, chance: random.Random) -> None:
        for _ in range(rounds):
            await plan(connection)
            running = await connection.fetch("select job_id, attempt from odc.running")
            await end(connection, *(r["job_id"] for r in chance.sample(running, len(running) // 2)))
            await connection.fetchval("select odc.sweep(0, $1)", NOW)

    async def storm() -> None:
        async with connections(database_url) as (leader, one, two):
            await asyncio.gather(
                leads(leader, random.Random(1)),
                users(one, random.Random(2)),
                users(two, random.Random(3)),
            )
            assert await one.fetch("select * from odc.check_books()") == []
            deadlocks = await one.fetchval(
                "select deadlocks from pg_stat_database where datname = current_database()"
            )
            assert deadlocks == 0

    asyncio.run(storm())
