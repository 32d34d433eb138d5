"""Sessions that run freely at the same time, at the sizes at which the defects were found."""

from __future__ import annotations

import asyncio
import json
from collections import Counter

import asyncpg
import pytest

from odcd.database.pool import connect
from tests.interleave.programs import RECORD
from tests.interleave.stage import PLANNER
from tests.support.builders.jobs import ALICE, NOW, Queue, a_cluster
from tests.support.harness.database import Sql

RUNNING = (
    "select r.job_id, r.attempt, a.rank from odc.running as r "
    "join odc.allocation as a using (job_id) order by 1, 3 limit $1"
)


async def end(session: asyncpg.Connection, count: int) -> int:
    """As an executor that reports so many members at once."""
    members = await session.fetch(RUNNING, count)
    n = len(members)
    await session.fetch(
        RECORD, 0, [m[0] for m in members], [m[1] for m in members], [m[2] for m in members],
        ["exited"] * n, [NOW] * n, [0] * n, [None] * n, [None] * n, [None] * n, NOW,
    )  # fmt: skip
    return n


async def a_pass(session: asyncpg.Connection, rolled_back: Counter[str]) -> int:
    try:
        return len(await session.fetchval("select started from odc.plan_pass(0, $1)", NOW))
    except asyncpg.PostgresError as error:
        rolled_back[str(error.sqlstate)] += 1
        return 0


def inventory(count: int, turn: int) -> str:
    return json.dumps([
        {"name": f"h100-{n}", "gpu_type": "h100", "gpus": 8, "cpus": 64, "mem_mib": 64_000,
         "declared": True, "foreign_gpus": (n + turn) % 3}
        for n in range(1, count + 1)
    ])  # fmt: skip


@pytest.mark.long
def test_inventories_of_400_nodes_beside_passes_and_ends_keep_the_books(database_url: str) -> None:
    """The books contradicted themselves within four inventories, and two jobs got the same GPU."""
    nodes, inventories = 400, 8
    with Sql(database_url) as sql:
        a_cluster(sql, h100=nodes)
        queue = Queue(sql)
        queue.submit(array="0-3999", gpus=1, gpu_type="h100")
        queue.submit(ALICE, array="0-499", gpus=3, gpu_type="h100")
        queue.start()

    async def storm() -> tuple[list[str], Counter[str]]:
        planner = await connect(database_url, isolation=PLANNER)
        settler, keeper, watcher = [await connect(database_url) for _ in range(3)]
        over = asyncio.Event()
        rolled_back: Counter[str] = Counter()

        async def plans() -> None:
            while not over.is_set():
                await a_pass(planner, rolled_back)

        async def settles() -> None:
            while not over.is_set():
                await end(settler, 10)

        async def keeps() -> list[str]:
            try:
                for turn in range(inventories):
                    await keeper.execute(
                        "select odc.register_nodes(0, $1::jsonb, true, $2)",
                        inventory(nodes, turn), NOW,
                    )  # fmt: skip
                    wrong = await watcher.fetch("select odc.check_books()")
                    if wrong:
                        return [row[0] for row in wrong]
                return []
            finally:
                over.set()

        *_, wrong = await asyncio.gather(plans(), settles(), keeps())
        for session in (planner, settler, keeper, watcher):
            await session.close()
        return wrong, rolled_back

    wrong, rolled_back = asyncio.run(storm())
    assert wrong == []
    assert rolled_back == {}


def test_passes_under_the_ends_of_one_array_are_never_rolled_back(database_url: str) -> None:
    """At 40 ends per second, 99 % of the passes were rolled back, and nothing started on idle
    GPUs."""
    with Sql(database_url) as sql:
        a_cluster(sql, h100=10)
        Queue(sql).submit(array="0-1999", gpus=8, gpu_type="h100")

    async def storm() -> tuple[int, Counter[str], int]:
        planner = await connect(database_url, isolation=PLANNER)
        settler = await connect(database_url)
        rolled_back: Counter[str] = Counter()
        started = await a_pass(planner, rolled_back)
        over = asyncio.Event()

        async def ends() -> int:
            ended = 0
            while ended < 60 and not over.is_set():
                ended += await end(settler, 1)
            return ended

        settling = asyncio.create_task(ends())
        # So many passes only when none of them comes through.
        for _ in range(1000):
            if settling.done():
                break
            started += await a_pass(planner, rolled_back)
        over.set()
        assert await settling == 60
        started += await a_pass(planner, rolled_back)
        idle = await planner.fetchval("select count(*) from odc.node_free where gpus > 0")
        wrong = await planner.fetch("select odc.check_books()")
        await planner.close()
        await settler.close()
        assert wrong == []
        return started, rolled_back, idle

    started, rolled_back, idle = asyncio.run(storm())
    assert rolled_back == {}
    assert idle == 0
    assert started == 70
