"""A pass between its snapshot and its writes, while other sessions commit.

Another session holds the turn, so that the pass has decided and waits; what that session commits
then is what the pass must respect.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from odcd.database.pool import connect
from odcd.records.job import ComponentSpec
from tests.support.builders.jobs import NOW, Queue, a_cluster
from tests.support.harness.database import Sql
from tests.support.harness.races import until_it_waits

OPERATOR = json.dumps({"user": "root", "uid": 0, "operator": True})


@asynccontextmanager
async def sessions(url: str) -> AsyncIterator[tuple[asyncpg.Connection, ...]]:
    """Sessions of the leader, of another daemon, and of an observer."""
    opened = [await connect(url) for _ in range(3)]
    try:
        yield tuple(opened)
    finally:
        for connection in opened:
            await connection.close()


async def pass_meanwhile(
    url: str, change: Callable[[asyncpg.Connection], Awaitable[Any]]
) -> asyncpg.Record:
    """Run a pass that decides before the change commits and writes after it."""
    async with sessions(url) as (leader, other, watcher):
        transaction = other.transaction()
        await transaction.start()
        await other.execute("select odc._take_turn($1)", NOW)
        passing = asyncio.ensure_future(leader.fetchrow("select * from odc.plan_pass(0, $1)", NOW))
        await until_it_waits(watcher, leader.get_server_pid())
        await change(other)
        await transaction.commit()
        done = await passing
        assert done is not None
        assert await watcher.fetch("select * from odc.check_books()") == []
        replayed = await watcher.fetchval("select odc.replay_pass((select max(id) from odc.pass))")
        if replayed is not None:
            replay = json.loads(replayed)
            assert replay["equal"], replay["differences"]
        return done


def run(url: str, change: Callable[[asyncpg.Connection], Awaitable[Any]]) -> asyncpg.Record:
    return asyncio.run(pass_meanwhile(url, change))


@pytest.fixture
def queue(database_url: str) -> Any:
    with Sql(database_url) as sql:
        a_cluster(sql, h100=2)
        sql.execute("update odc.partition set policy = 'fifo'")
        yield Queue(sql)


def test_a_node_drained_after_the_plan_gets_no_job_and_the_pass_still_starts_it_elsewhere(
    database_url: str, queue: Queue
) -> None:
    job = queue.submit(gpus=8)

    async def drain(other: asyncpg.Connection) -> None:
        await other.fetchval(
            "select odc.set_node_state($1::jsonb, '{h100-1}', 'DRAIN', 'broken', $2)", OPERATOR, NOW
        )

    done = run(database_url, drain)
    assert (done["started"], done["replanned"]) == ([job], True)
    assert queue.sql.values(
        "select n.name from odc.allocation as a join odc.node as n on n.id = a.node_id"
    ) == ["h100-2"]


def test_foreign_use_after_the_plan_drops_only_starts_that_no_longer_fit(
    database_url: str, queue: Queue
) -> None:
    big, small = queue.submit(gpus_per_node=8, node_count=2), queue.submit(gpus=4)

    async def foreign(other: asyncpg.Connection) -> None:
        rows = await other.fetch("select name, gpus, cpus, mem_mib from odc.node order by name")
        body = [
            {**dict(row), "gpu_type": "h100", "declared": True,
             "foreign_gpus": 3 if row["name"] == "h100-1" else 0}
            for row in rows
        ]  # fmt: skip
        await other.execute(
            "select odc.register_nodes(0, $1::jsonb, true, $2)", json.dumps(body), NOW
        )

    done = run(database_url, foreign)
    assert done["started"] == [small]
    assert done["replanned"]
    assert queue.state(big) == "PENDING"


@pytest.mark.parametrize("cancelled", [0, 1])
def test_a_job_cancelled_after_the_plan_drops_out_and_the_rest_starts(
    database_url: str, queue: Queue, cancelled: int
) -> None:
    jobs = [queue.submit(gpus=8), queue.submit(gpus=8)]

    async def cancel(other: asyncpg.Connection) -> None:
        await other.fetchval(
            "select odc.cancel_jobs($1::jsonb, $2::jsonb, $3)",
            OPERATOR, json.dumps({"job_ids": [jobs[cancelled]]}), NOW,
        )  # fmt: skip

    done = run(database_url, cancel)
    assert done["started"] == [jobs[1 - cancelled]]
    assert done["more"]
    assert not done["replanned"]
    assert queue.sql.value("select dropped from odc.pass order by id desc limit 1") == [
        jobs[cancelled]
    ]


def test_a_throttle_lowered_after_the_plan_is_respected(database_url: str, queue: Queue) -> None:
    array = queue.submit(gpus=2, array="0-7")

    async def throttle(other: asyncpg.Connection) -> None:
        await other.fetchval(
            "select odc.update_jobs($1::jsonb, $2::jsonb, $3, $4::jsonb)",
            OPERATOR, json.dumps({"job_ids": [array]}), NOW, json.dumps({"array_throttle": 3}),
        )  # fmt: skip

    done = run(database_url, throttle)
    assert len(done["started"]) == 3
    assert queue.sql.value("select count(*) from odc.running") == 3


def test_a_time_limit_raised_after_the_plan_drops_the_start(
    database_url: str, queue: Queue
) -> None:
    """The plan used the old limit; with the new one the job may run into a planned start."""
    job = queue.submit(gpus=8, time_limit_s=600)

    async def raise_limit(other: asyncpg.Connection) -> None:
        await other.fetchval(
            "select odc.update_jobs($1::jsonb, $2::jsonb, $3, $4::jsonb)",
            OPERATOR, json.dumps({"job_ids": [job]}), NOW, json.dumps({"time_limit_s": 86_000}),
        )  # fmt: skip

    done = run(database_url, raise_limit)
    assert done["started"] == []
    assert done["more"]
    assert queue.start() == [job]


def test_a_protected_job_cancelled_after_the_plan_leaves_no_planned_start(
    database_url: str, queue: Queue
) -> None:
    queue.submit(gpus=8)
    queue.submit(gpus=8)
    queue.start()
    waiting = queue.submit(gpus_per_node=8, node_count=2)

    async def cancel(other: asyncpg.Connection) -> None:
        await other.fetchval(
            "select odc.cancel_jobs($1::jsonb, $2::jsonb, $3)",
            OPERATOR, json.dumps({"job_ids": [waiting]}), NOW,
        )  # fmt: skip

    run(database_url, cancel)
    assert queue.sql.values("select job_id from odc.planned") == []


def test_an_edit_that_did_not_take_the_turn_is_waited_for(database_url: str, queue: Queue) -> None:
    """An operator with psql: the pass sees the edit, not the old limit."""
    queue.sql.execute("insert into odc.licence (name, total) values ('matlab', 1)")
    job = queue.submit(gpus=1, licences={"matlab": 1})

    async def race() -> asyncpg.Record | None:
        async with sessions(database_url) as (leader, other, watcher):
            transaction = other.transaction()
            await transaction.start()
            await other.execute("update odc.licence set total = 0 where name = 'matlab'")
            passing = asyncio.ensure_future(
                leader.fetchrow("select * from odc.plan_pass(0, $1)", NOW)
            )
            await until_it_waits(watcher, leader.get_server_pid())
            await transaction.commit()
            return await passing

    done = asyncio.run(race())
    assert done is not None
    assert (done["started"], done["replanned"]) == ([], True)
    assert queue.state(job) == "PENDING"


def test_a_licence_added_after_the_plan_moves_a_reservation(
    database_url: str, queue: Queue
) -> None:
    """One licence was free, and kept for the job that is planned in an hour. With two, another job
    has its own: the pass decides again, and its replay reads the same ends of running jobs."""
    hour_s = 3600
    queue.sql.execute("insert into odc.licence (name, total) values ('matlab', 2)")
    holders = [
        queue.submit(gpus=2, licences={"matlab": 1}, time_limit_s=hour_s),
        queue.submit(gpus=1, time_limit_s=hour_s),
    ]
    assert queue.start() == holders
    first = queue.submit(node_count=2, gpus_per_node=7, licences={"matlab": 2}, time_limit_s=hour_s)
    long = queue.submit(gpus=1, licences={"matlab": 1}, time_limit_s=10 * hour_s)
    assert queue.start() == []

    async def add(other: asyncpg.Connection) -> None:
        await other.fetchval("select odc.set_licence($1::jsonb, 'matlab', 3, $2)", OPERATOR, NOW)

    done = run(database_url, add)
    assert (done["started"], done["replanned"]) == ([long], True)
    assert queue.sql.values("select job_id from odc.planned") == [first]


def test_an_unchanged_inventory_locks_nothing(database_url: str, queue: Queue) -> None:
    """Thirty thousand nodes are observed twice a minute; this never waits for the turn."""

    async def inventory() -> None:
        async with sessions(database_url) as (leader, other, _), other.transaction():
            await other.execute("select odc._take_turn($1)", NOW)
            await other.execute("select from odc.node_free for update")
            rows = await leader.fetch("select name, gpus, cpus, mem_mib from odc.node")
            body = [{**dict(row), "gpu_type": "h100", "declared": True} for row in rows]
            await leader.execute("set lock_timeout = '5s'")
            await leader.execute(
                "select odc.register_nodes(0, $1::jsonb, true, $2)", json.dumps(body), NOW
            )

    asyncio.run(inventory())


def test_a_beat_does_not_wait_for_holders_of_the_term(database_url: str, queue: Queue) -> None:
    async def beat() -> None:
        async with sessions(database_url) as (leader, other, watcher):
            async with other.transaction():
                await other.execute("select odc._hold_term(0)")
                await leader.execute("set lock_timeout = '5s'")
                await leader.execute("select odc.beat_term(0)")
                # But a session that raises the term waits.
                raising = asyncio.ensure_future(
                    leader.fetchval("select odc.take_term(0, 1, 'x', 'x', $1)", NOW)
                )
                await until_it_waits(watcher, leader.get_server_pid())
            assert await raising == 1

    asyncio.run(beat())


def test_decide_reads_one_snapshot_because_all_it_calls_is_stable(sql: Sql) -> None:
    """A volatile function inside would see commits made while decide runs."""
    assert (
        sql.values(
            """
            with recursive source as materialized (
                select p.proname::text as name, bool_or(p.provolatile = 'v') as volatile,
                       string_agg(pg_get_functiondef(p.oid), E'\n') as text
                  from pg_proc as p where p.pronamespace = 'odc'::regnamespace and p.prokind = 'f'
                 group by p.proname
            ), needed (name) as (
                select unnest('{decide,_policy_version,_facts_of_jobs}'::text[])
                 union
                select c.called[1] from needed as n join source as s on s.name = n.name
                 cross join lateral regexp_matches(s.text, '(\\w+)\\(', 'g') as c (called)
            )
            select s.name from needed as n join source as s on s.name = n.name
             where s.volatile order by 1
            """
        )
        == []
    )


# The tables that `decide` trusts without a row in the plan, the free amounts of nodes and the use
# of running jobs: see 0024_facts.sql.
TRUSTED = (
    "booking|booking_node|licence|resource_limit|association|account|qos|partition|partition_node"
    "|policy|priority_weight|priority_setting|account_setting|node_free|running_use"
)
# submit_jobs makes a new user's association; nothing of a plan can refer to one before.
NO_TURN = {
    "submit_jobs", "preview_jobs", "make_partitions", "create_partitions", "finish_restore",
    "replay_pass",
}  # fmt: skip


def test_every_edit_of_facts_used_by_plans_takes_the_turn_first(sql: Sql) -> None:
    rows = sql.rows(
        """
        with recursive source as materialized (
            select p.proname::text as name,
                   p.prosrc || coalesce(pg_get_function_sqlbody(p.oid), '') as text
              from pg_proc as p where p.pronamespace = 'odc'::regnamespace and p.prokind = 'f'
        ), call as materialized (
            select distinct s.name, c.called[1] as called
              from source as s
             cross join lateral regexp_matches(s.text, '(\\w+)\\(', 'g') as c (called)
        ), edits (name) as (
            select s.name from source as s
             where s.text ~ ('\\m(update|insert into|delete from)\\s+(odc\\.)?(' || $1 || ')\\M')
             union
            select c.name from edits as e join call as c on c.called = e.name
        )
        select distinct e.name from edits as e join source as s on s.name = e.name
         where e.name !~ '^_' and s.text !~ '_take_turn\\(' order by 1
        """,
        TRUSTED,
    )
    assert {row["name"] for row in rows} - NO_TURN == set()


@pytest.mark.parametrize("changed", [False, True])
def test_a_preemptor_whose_qos_changed_after_the_plan_ends_no_job(
    database_url: str, queue: Queue, changed: bool
) -> None:
    queue.sql.execute(
        "with low as (insert into odc.qos (name) values ('scavenger') returning id) "
        "insert into odc.qos (name, preempts) select 'urgent', array[id] from low"
    )
    victims = [queue.submit(gpus=8, qos="scavenger") for _ in range(2)]
    assert queue.start() == victims
    preemptor = queue.submit(gpus=8, qos="urgent")

    async def change(other: asyncpg.Connection) -> None:
        if changed:
            await other.fetchval(
                "select odc.update_jobs($1::jsonb, $2::jsonb, $3, $4::jsonb)",
                OPERATOR, json.dumps({"job_ids": [preemptor]}), NOW, json.dumps({"qos": "normal"}),
            )  # fmt: skip

    run(database_url, change)
    ending = queue.sql.value("select count(*) from odc.running where intent = 'preempt'")
    assert ending == (0 if changed else 1)


COMPONENTS = [ComponentSpec(gpus=8), ComponentSpec(gpus=4), ComponentSpec(gpus=4)]


def test_a_heterogeneous_job_cancelled_after_the_plan_is_left_out_with_all_components(
    database_url: str, queue: Queue
) -> None:
    job = queue.submit(launch="first", components=COMPONENTS)

    async def cancel(other: asyncpg.Connection) -> None:
        await other.execute(
            "select odc.cancel_jobs($1::jsonb, $2::jsonb, $3, null)", OPERATOR,
            json.dumps({"job_ids": [job]}), NOW,
        )  # fmt: skip

    done = run(database_url, cancel)
    assert (done["started"], queue.state(job)) == ([], "CANCELLED")
    assert queue.sql.value("select count(*) from odc.allocation") == 0


def test_a_heterogeneous_job_loses_the_node_of_one_component_after_the_plan_and_starts_nowhere(
    database_url: str, queue: Queue
) -> None:
    job = queue.submit(launch="first", components=COMPONENTS)

    async def drain(other: asyncpg.Connection) -> None:
        await other.fetchval(
            "select odc.set_node_state($1::jsonb, '{h100-2}', 'DRAIN', 'broken', $2)", OPERATOR, NOW
        )

    done = run(database_url, drain)
    assert (done["started"], queue.state(job)) == ([], "PENDING")
    assert queue.sql.value("select count(*) from odc.allocation") == 0
    queue.sql.execute(
        "select odc.set_node_state($1::jsonb, '{h100-2}', 'UP', null, $2)", OPERATOR, NOW
    )
    assert queue.start() == [job]
    assert queue.sql.value("select count(*) from odc.allocation") == 3
