"""Submits from two connections at once."""

from __future__ import annotations

import asyncio
import json

import asyncpg
import pytest

from odcd.database.pool import connect
from odcd.jobs.submission import prepare
from tests.support.builders.jobs import ALICE, NOW, a_cluster, a_job
from tests.support.harness.database import Sql
from tests.support.harness.races import until_it_waits

SUBMIT = "select job_id, code from odc.submit_jobs($1::jsonb, $2, $3, $4) order by request, ord"


def test_a_key_in_flight_on_another_connection_is_waited_for(database_url: str) -> None:
    with Sql(database_url) as sql:
        a_cluster(sql, h100=1)

    async def race() -> None:
        first, second = await connect(database_url), await connect(database_url)
        watcher = await connect(database_url)
        made = prepare(ALICE, [a_job()], key="k", dry_run=False)
        call = (
            SUBMIT, json.dumps([made.request]), list(made.texts), list(made.texts.values()), NOW,
        )  # fmt: skip
        transaction = first.transaction()
        await transaction.start()
        [one] = await first.fetch(*call)
        waiting = asyncio.create_task(second.fetch(*call))
        await until_it_waits(watcher, second.get_server_pid())
        await transaction.commit()
        assert [tuple(row) for row in await waiting] == [tuple(one)]
        assert await watcher.fetchval("select count(*) from odc.job") == 1
        for connection in (first, second, watcher):
            await connection.close()

    asyncio.run(race())


def test_a_key_whose_first_request_failed_is_taken_by_the_second(database_url: str) -> None:
    with Sql(database_url) as sql:
        a_cluster(sql, h100=1)

    async def race() -> None:
        first, second = await connect(database_url), await connect(database_url)
        watcher = await connect(database_url)
        made = prepare(ALICE, [a_job()], key="k", dry_run=False)
        call = (
            SUBMIT, json.dumps([made.request]), list(made.texts), list(made.texts.values()), NOW,
        )  # fmt: skip
        transaction = first.transaction()
        await transaction.start()
        await first.fetch(*call)
        waiting = asyncio.create_task(second.fetch(*call))
        await until_it_waits(watcher, second.get_server_pid())
        await transaction.rollback()
        [two] = await waiting
        assert await watcher.fetch("select id from odc.job") == [(two["job_id"],)]
        for connection in (first, second, watcher):
            await connection.close()

    asyncio.run(race())


@pytest.mark.parametrize("first_ends", ["commit", "rollback"])
def test_concurrent_submits_store_a_new_script_and_shape_once(
    database_url: str, first_ends: str
) -> None:
    with Sql(database_url) as sql:
        a_cluster(sql, h100=1)

    async def race() -> None:
        first, second = await connect(database_url), await connect(database_url)
        watcher = await connect(database_url)
        made = prepare(ALICE, [a_job(gpus=5)], key=None, dry_run=False)
        call = (
            SUBMIT, json.dumps([made.request]), list(made.texts), list(made.texts.values()), NOW,
        )  # fmt: skip
        transaction = first.transaction()
        await transaction.start()
        await first.fetch(*call)
        waiting = asyncio.create_task(second.fetch(*call))
        await until_it_waits(watcher, second.get_server_pid())
        await getattr(transaction, first_ends)()
        [two] = await waiting
        assert two["job_id"] is not None
        assert await watcher.fetchval("select count(*) from odc.shape") == 1
        assert await watcher.fetchval("select count(*) from odc.job_text") == 2
        jobs = await watcher.fetchval(
            "select count(*) from odc.job as j join odc.shape as s on s.id = j.shape_id "
            "join odc.job_text as t on t.digest = j.script_digest"
        )
        assert jobs == (2 if first_ends == "commit" else 1)
        for connection in (first, second, watcher):
            await connection.close()

    asyncio.run(race())


def test_a_partition_is_not_deleted_under_a_submit(database_url: str) -> None:
    delete = "select odc.delete_partition($1::jsonb, 'other', $2)"
    root = '{"user": "root", "uid": 0, "operator": true}'
    with Sql(database_url) as sql:
        a_cluster(sql, h100=1)
        sql.execute(
            "select odc.create_partition($1::jsonb, 'other', '{\"all_nodes\": true}', $2)",
            root,
            NOW,
        )

    async def race() -> None:
        first, second = await connect(database_url), await connect(database_url)
        watcher = await connect(database_url)
        made = prepare(ALICE, [a_job(partitions=["other"])], key=None, dry_run=False)
        call = (
            SUBMIT, json.dumps([made.request]), list(made.texts), list(made.texts.values()), NOW,
        )  # fmt: skip
        submitting = first.transaction()
        await submitting.start()
        [job] = await first.fetch(*call)
        assert job["job_id"] is not None, job
        waiting = asyncio.create_task(second.fetchval(delete, root, NOW))
        await until_it_waits(watcher, second.get_server_pid())
        await submitting.commit()
        with pytest.raises(asyncpg.PostgresError, match="is pending or running there"):
            await waiting
        for connection in (first, second, watcher):
            await connection.close()

    asyncio.run(race())
