"""A pass and the removal of a node at the same time: the node has either the job or its end."""

from __future__ import annotations

import asyncio

import asyncpg

from tests.sql.scheduler.plan.test_concurrent_pass import run, sessions
from tests.support.builders.groups import Group, Groups
from tests.support.builders.jobs import NOW, Queue
from tests.support.harness.database import Sql
from tests.support.harness.races import until_it_waits

SHRINK = "select array(select * from odc.shrink_groups(0, $1))"
CONFIRM = "select odc.confirm_removal(0, 'i-00000001', $1)"


def an_empty_node(sql: Sql) -> Queue:
    """One that was empty for long, at NOW; and a job that fits."""
    queue = Queue(sql)
    groups = Groups(queue, Group("g", desired=1, idle_s=0, cooldown_s=3600))
    groups.launch("g")
    queue.submit(gpus=8, gpu_type="h100")
    return queue


def test_a_node_drained_after_the_plan_was_made_gets_no_job(database_url: str) -> None:
    with Sql(database_url) as sql:
        queue = an_empty_node(sql)

        async def remove(other: asyncpg.Connection) -> None:
            assert await other.fetchval(SHRINK, NOW) == ["node-0001"]
            assert await other.fetchval(CONFIRM, NOW)

        done = run(database_url, remove)
        assert (done["started"], done["replanned"]) == ([], True)
        assert queue.state(1) == "PENDING"


def test_a_node_on_which_a_pass_has_just_placed_a_job_is_not_drained(database_url: str) -> None:
    with Sql(database_url) as sql:
        queue = an_empty_node(sql)

        async def race(statement: str) -> object:
            async with sessions(database_url) as (leader, other, watcher):
                async with leader.transaction():
                    started = await leader.fetchval("select started from odc.plan_pass(0, $1)", NOW)
                    assert started == [1]
                    removing = asyncio.ensure_future(other.fetchval(statement, NOW))
                    await until_it_waits(watcher, other.get_server_pid())
                return await removing

        assert asyncio.run(race(SHRINK)) == []
        assert queue.state(1) == "CONFIGURING"
        assert queue.sql.values("select state from odc.elastic_instance") == ["IN"]
