"""An update brings no job past a limit on submitted jobs."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import asyncpg
import pytest

from odcd.database.pool import connect
from odcd.jobs.submission import prepare
from tests.odcd.api.service import ALICE, OPERATOR, Service, serve
from tests.support.builders.jobs import ALICE as OWNER
from tests.support.builders.jobs import NOW, Queue, a_cluster, a_job
from tests.support.harness.database import Sql
from tests.support.harness.races import until_it_waits

ACTOR = json.dumps({"user": "alice", "uid": 1001, "operator": False})


async def made(service: Service, path: str, body: Any) -> None:
    async with service.client(OPERATOR) as client:
        answer = await client.post(path, json=body)
    assert answer.status_code < 300, answer.text


async def update(service: Service, selector: int | str, body: Any) -> list[Any]:
    """Outcome and message of each job."""
    async with service.client(ALICE) as client:
        answer = await client.patch(f"/v1/jobs/{selector}", json=body)
    assert answer.status_code == 200, answer.text
    return [(job["outcome"], job["message"]) for job in answer.json()["jobs"]]


@pytest.mark.parametrize(
    ("path", "name", "holder"),
    [
        ("/v1/accounts", "account", "account lab may have 2 submitted jobs"),
        ("/v1/qos", "qos", "QOS lab may have 2 submitted jobs"),
        ("/v1/partitions", "partitions", "partition lab may have 2 submitted jobs"),
    ],
)
def test_a_job_is_not_moved_under_a_limit_that_is_reached(
    database_url: str, path: str, name: str, holder: str
) -> None:
    """Before: jobs that were submitted elsewhere could be moved there, any number of them."""

    async def work(service: Service) -> None:
        there = ["lab"] if name == "partitions" else "lab"
        more = {"all_nodes": True} if name == "partitions" else {}
        await made(service, path, {"name": "lab", "limits": {"group": {"submitted": 2}}, **more})
        first = await service.submit()
        array = await service.submit(array="0-2")
        async with service.client(ALICE) as client:  # separate rows
            await client.post(f"/v1/jobs/{array}_[0-1]/hold")
        assert await update(service, first, {name: there}) == [("updated", None)]
        # The limit allows one more job, also if one request names several.
        (one, _), (other, why) = await update(service, f"{array}_[0-1]", {name: there})
        assert (one, other) == ("updated", "refused")
        assert why.startswith(f"{holder}, and 1 more would make 3 (")
        # A job that is there already can still be changed.
        again = await update(service, first, {name: there, "comment": "x"})
        assert again == [("updated", None)]

    serve(database_url, work)


@pytest.fixture
def two_jobs(database_url: str) -> tuple[int, int]:
    with Sql(database_url) as sql:
        a_cluster(sql, h100=1)
        sql.execute("insert into odc.account (name) values ('lab')")
        sql.execute(
            "insert into odc.resource_limit "
            "select 'account', id, 'group', 'submitted', 1 from odc.account where name = 'lab'"
        )
        queue = Queue(sql)
        return queue.submit(gpus=1, array="0-1"), queue.submit(gpus=1)


async def move(user: asyncpg.Connection, ids: list[dict[str, Any]]) -> list[str]:
    text = await user.fetchval(
        "select odc.update_jobs($1::jsonb, $2::jsonb, $3, $4::jsonb)",
        ACTOR, json.dumps({"ids": ids}), NOW, json.dumps({"account": "lab"}),
    )  # fmt: skip
    return [answer["outcome"] for answer in json.loads(str(text))]


def test_each_task_of_an_array_counts_and_a_refused_array_stays_whole(
    database_url: str, two_jobs: tuple[int, int]
) -> None:
    async def work() -> None:
        user = await connect(database_url)
        array, _ = two_jobs
        assert await move(user, [{"job_id": array}]) == ["refused"]
        assert await user.fetchval("select count(*) from odc.job") == 2
        assert await move(user, [{"job_id": array, "tasks": "{[0,1)}"}]) == ["updated"]
        assert await move(user, [{"job_id": array}]) == ["refused", "updated"]
        await user.close()

    asyncio.run(work())


@pytest.mark.parametrize("submits", [True, False])
def test_two_sessions_at_once_do_not_pass_the_limit(
    database_url: str, two_jobs: tuple[int, int], submits: bool
) -> None:
    """A submission and an update, in both orders, lock the same limit."""

    async def race() -> None:
        one, two, watcher = [await connect(database_url) for _ in range(3)]

        async def submit() -> str | None:
            sent = prepare(
                OWNER, [a_job(account="lab", gpus=1)], key=None, dry_run=False
            )  # fmt: skip
            row = await (one if submits else two).fetchrow(
                "select * from odc.submit_jobs($1::jsonb, $2, $3, $4)",
                json.dumps([sent.request]), list(sent.texts), list(sent.texts.values()), NOW,
            )  # fmt: skip
            assert row is not None
            return row["code"]

        async def change() -> list[str]:
            return await move(two if submits else one, [{"job_id": two_jobs[1]}])

        transaction = one.transaction()
        await transaction.start()
        first = await (submit() if submits else change())
        waiting = asyncio.ensure_future(change() if submits else submit())
        await until_it_waits(watcher, two.get_server_pid())
        await transaction.commit()
        answers = (first, await waiting)
        assert answers == ((None, ["refused"]) if submits else (["updated"], "OD009"))
        for connection in (one, two, watcher):
            await connection.close()

    asyncio.run(race())
