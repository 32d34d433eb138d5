"""The output of pods, which is kept in the database, does not fill its disk."""

from __future__ import annotations

import asyncio
import os
import zlib
from datetime import timedelta

from odcd.database.pool import Database
from odcd.stores.outputs import GONE, OutputStore
from tests.support.builders.jobs import ALICE, BOB, Queue, a_cluster
from tests.support.harness.database import Sql

SIZE = 100_000


def test_output_in_the_database_is_limited(database_url: str) -> None:
    """Before: each pod of every job left up to 1 MiB there, forever."""
    with Sql(database_url) as sql:
        a_cluster(sql, h100=1)
        queue = Queue(sql)
        keep = "select odc.keep_output($1, 1, 0, $2, $3, $4)"
        jobs = [queue.submit(who) for who in [ALICE] * 30 + [BOB] * 2]
        for job in jobs:
            queue.now += timedelta(seconds=1)
            sql.execute(keep, job, os.urandom(SIZE), SIZE, queue.now)

    async def work() -> list[int]:
        async with Database(database_url, size=1) as database:
            store = OutputStore(database)
            gone = [await store.drop(0, most) for most in (100 * SIZE, 10 * SIZE, 10 * SIZE)]
            stored = await store.get((jobs[0], 1, 0))
            assert stored is not None
            assert (zlib.decompress(stored.content), stored.written) == (GONE, SIZE)
            return gone

    assert asyncio.run(work()) == [0, 22, 0]
    with Sql(database_url) as sql:
        kept = "select job_id from odc.kept_output where octet_length(content) = $1 order by 1"
        assert sql.values(kept, SIZE) == jobs[22:]
