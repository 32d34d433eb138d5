"""A busy database, and users who send too many requests at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from odcd.clock import SystemClock
from odcd.database.connections import API
from odcd.database.pool import Database
from odcd.database.schema import sql_folder
from odcd.database.slots import PER_USER, Slots
from odcd.jobs.submit_batches import SubmitBatcher
from odcd.stores.store import Store
from tests.odcd.api.service import ALICE, BOB, BODY, Service, serving
from tests.support.harness.database import Sql

PATIENCE_S = 60
SLOW = """
    create or replace function odc.list_policies(p_names text[] default null) returns text
    language sql as $$ select coalesce(nullif(pg_sleep(25)::text, ''), '[]') $$
"""


@pytest.fixture(autouse=True)
def _as_it_was(database_url: str) -> Iterator[None]:
    """The database is that of all tests of the API: SLOW must not outlive its test."""
    yield
    with Sql(database_url) as sql:
        path = sql_folder() / "functions/limits/partition/list_policies.sql"
        sql.execute(path.read_text("utf-8"))


@asynccontextmanager
async def limited(
    url: str, *, lock_s: float = 5, statement_s: float = 30, patience_s: float = 10
) -> AsyncGenerator[Service]:
    """A service whose requests have a pool with limits, as the daemon's."""
    kind = replace(API, lock_s=lock_s, statement_s=statement_s)
    slots = Slots(patience_s=patience_s)
    async with Database(url, kind=kind, size=10, slots=slots) as database:
        store = Store(database)
        batcher = SubmitBatcher(store.jobs, SystemClock())
        async with serving(url, store=store, batcher=batcher) as service:
            yield service


def run(work: Callable[[], Awaitable[None]]) -> None:
    from tests.support.harness import warm

    async def within() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await work()

    warm.run(within())


@pytest.mark.parametrize("table", ["job", "pending"])
def test_a_lock_conflict_answers_503_with_retry_after_and_changes_nothing(
    database_url: str, table: str
) -> None:
    async def work() -> None:
        async with limited(database_url, lock_s=0.2) as service, service.client() as client:
            async with service.database.dedicated() as other:
                await other.execute(f"begin; lock table odc.{table} in access exclusive mode")
                answer = await client.post("/v1/jobs", json=BODY)
                assert answer.status_code == 503
                assert answer.headers["retry-after"] == "1"
                problem = answer.json()
                assert (problem["code"], problem["title"]) == ("OD040", "DatabaseBusy")
                assert "Nothing was changed" in problem["hint"]
                await other.execute("rollback")
            assert await service.database.fetchval("select count(*) from odc.job") == 0
            assert (await client.post("/v1/jobs", json=BODY)).status_code == 201

    run(work)


def test_a_request_that_takes_too_long_answers_503_with_retry_after(database_url: str) -> None:
    async def work() -> None:
        async with limited(database_url, statement_s=0.3) as service, service.client() as client:
            await service.database.execute(SLOW)
            answer = await client.get("/v1/policies")
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
            assert answer.json()["code"] == "OD040"

    run(work)


@pytest.mark.long
def test_other_users_are_served_during_200_slow_requests_of_one_user(database_url: str) -> None:
    async def work() -> None:
        async with limited(database_url, patience_s=2) as service:
            await service.database.execute(SLOW)
            async with service.client(ALICE) as alice, service.client(BOB) as bob:
                flood = [asyncio.create_task(alice.get("/v1/policies")) for _ in range(200)]
                # All requests without a connection are refused with a Retry-After.
                while sum(task.done() for task in flood) < 200 - PER_USER:
                    await asyncio.sleep(0.01)
                    answer = await asyncio.create_task(bob.get("/v1/nodes"))
                    assert answer.status_code == 200
                refused = [task.result() for task in flood if task.done()]
                assert {answer.status_code for answer in refused} == {429}
                assert {answer.headers["retry-after"] for answer in refused} == {"1"}
                assert {answer.json()["code"] for answer in refused} == {"OD041"}
                for path in ("/health", "/ready", "/metrics"):
                    answer = await asyncio.create_task(alice.get(path))
                    assert answer.status_code == 200, path
                for task in flood:
                    task.cancel()
                await asyncio.gather(*flood, return_exceptions=True)

    run(work)


def test_long_polling_requests_hold_no_database_connection(database_url: str) -> None:
    async def work() -> None:
        async with limited(database_url, patience_s=2) as service:
            job_id = await service.submit()
            async with service.client(ALICE) as client:
                waits = [
                    asyncio.create_task(client.get(f"/v1/jobs/{job_id}?wait=50")) for _ in range(40)
                ]
                while len(service.hub._waits.get(job_id, ())) < 40:
                    await asyncio.sleep(0.01)
                answer = await asyncio.create_task(client.get("/v1/nodes"))
                assert answer.status_code == 200
                assert not any(task.done() for task in waits)
                for task in waits:
                    task.cancel()
                await asyncio.gather(*waits, return_exceptions=True)

    run(work)
