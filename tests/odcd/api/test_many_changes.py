"""A change of many jobs is made in parts, so that other requests are served in between."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from odcd.database.pool import Database
from odcd.errors import DatabaseBusy
from odcd.stores.jobs import JobStore
from tests.odcd.api.service import ALICE, BODY, Service, serve
from tests.odcd.api.test_changes import change

VERBS = ("cancel_jobs", "hold_jobs", "release_jobs", "requeue_jobs", "update_jobs")
JOBS = 250


class Watched:
    """The database of a store, which records each transaction that changes jobs."""

    def __init__(self, service: Service, before: Callable[[int], Awaitable[None]]) -> None:
        self._database: Database = service.database
        self.before = before
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    async def fetchval(self, query: str, *args: Any, **more: Any) -> Any:
        if any(f"odc.{verb}(" in query for verb in VERBS):
            await self.before(len(self.calls))
            self.calls.append(query)
        return await self._database.fetchval(query, *args, **more)


async def nothing(_: int) -> None:
    """Between two parts."""


def watched(service: Service, before: Callable[[int], Awaitable[None]] = nothing) -> Watched:
    database = Watched(service, before)
    service.store.jobs = JobStore(cast(Database, database))
    return database


async def sizes(service: Service, kind: str) -> list[int]:
    """For each transaction, the number of events of this kind that it wrote."""
    rows = await service.database.fetch(
        "select count(*) as n from odc.event where kind = $1 group by xid order by min(id)", kind
    )
    return [row["n"] for row in rows]


async def many(service: Service, **fields: Any) -> list[int]:
    async with service.client() as client:
        body = {"jobs": [{**BODY, **fields}] * JOBS}
        answer = await client.post("/v1/jobs/batch", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["ids"]


def test_many_jobs_are_cancelled_in_parts(database_url: str) -> None:
    async def work(service: Service) -> None:
        jobs = await many(service)
        outcomes = await change(service, "/v1/jobs/cancel", {"all": True})
        assert [one.job_id for one in outcomes] == jobs
        assert {one.outcome for one in outcomes} == {"cancelled"}
        assert await sizes(service, "ended") == [100, 100, 50]
        ids = [str(job) for job in jobs]
        outcomes = await change(service, "/v1/jobs/cancel", {"ids": ids})
        assert {one.outcome for one in outcomes} == {"ended"}

    serve(database_url, work)


@pytest.mark.parametrize(
    ("verb", "body", "kind", "expected"),
    [
        ("hold", {}, "held", 100),
        ("release", {}, "released", 100),
        ("", {"nice": 7}, "updated", 20),
        pytest.param("", {"dependency": "singleton"}, "updated", 5, marks=pytest.mark.long),
    ],
)
def test_separately_named_tasks_are_changed_in_parts(
    database_url: str, verb: str, body: dict[str, Any], kind: str, expected: int
) -> None:
    """Before: one transaction gave each of them its own row."""

    async def work(service: Service) -> None:
        array = await service.submit(array="0-999999", hold=verb == "release")
        path = f"/v1/jobs/{array}_[1-999:4]" + (f"/{verb}" if verb else "")
        method = "POST" if verb else "PATCH"
        outcomes = await change(service, path, body, method=method)
        assert [one.array_task_id for one in outcomes] == list(range(1, 1000, 4))
        assert {one.outcome for one in outcomes} == {kind}
        sent = await sizes(service, kind)
        assert sum(sent) == 250
        assert max(sent) == expected
        again = await change(service, path, body, method=method)
        assert {one.job_id for one in again} == {one.job_id for one in outcomes}

    serve(database_url, work)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/jobs/hold", {"ids": ["{a}_[1-999999:102]"]}),
        ("POST", "/v1/jobs/release", {"ids": ["{a}_[1-600]", "{b}_[1-600]"]}),
        ("PATCH", "/v1/jobs/{a}_[1-999999:102]", {"nice": 1}),
    ],
)
def test_too_many_separately_named_tasks_are_refused_and_nothing_changes(
    database_url: str, method: str, path: str, body: dict[str, Any]
) -> None:
    async def work(service: Service) -> None:
        a = await service.submit(array="0-999999", hold=True)
        b = await service.submit(array="0-999999", hold=True)

        def filled(text: str) -> str:
            return text.replace("{a}", str(a)).replace("{b}", str(b))

        request = {k: [filled(i) for i in v] if k == "ids" else v for k, v in body.items()}
        async with service.client(ALICE) as client:
            answer = await client.request(method, filled(path), json=request)
        problem = answer.json()
        assert (answer.status_code, problem["code"]) == (413, "OD017"), answer.text
        assert "1,000" in problem["hint"]
        assert await service.database.fetchval("select count(*) from odc.pending") == 2

    serve(database_url, work)


def test_a_whole_array_is_cancelled_with_the_tasks_that_start_meanwhile(database_url: str) -> None:
    async def work(service: Service) -> None:
        jobs = await many(service, hold=True)
        array = await service.submit(array="0-99")

        async def start(calls: int) -> None:
            if calls == 1:
                assert len(await service.plan()) == 8

        database = watched(service, start)
        ids = [str(job) for job in (*jobs, array)]
        outcomes = await change(service, "/v1/jobs/cancel", {"ids": ids})
        assert len(database.calls) == 4
        results = [one.outcome for one in outcomes]
        assert (results.count("cancelled"), results.count("cancelling")) == (JOBS + 1, 8)
        left = "select count(*) from odc.running where intent is distinct from 'cancel'"
        assert await service.database.fetchval(left) == 0

    serve(database_url, work)


def test_a_filter_still_narrows_when_its_turn_comes(database_url: str) -> None:
    """A job that started between two parts is no longer pending."""

    async def work(service: Service) -> None:
        jobs = await many(service)
        started: list[int] = []

        async def start(calls: int) -> None:
            if calls == 1:
                started.extend(await service.plan())

        watched(service, start)
        outcomes = await change(service, "/v1/jobs/cancel", {"state": "PENDING"})
        assert started == jobs[100:108]
        assert [one.job_id for one in outcomes] == jobs[:100] + jobs[108:]
        intents = "select count(*) from odc.running where intent is null"
        assert await service.database.fetchval(intents) == 8

    serve(database_url, work)


def test_jobs_that_a_busy_database_skipped_are_reported_and_can_be_retried(
    database_url: str,
) -> None:
    async def work(service: Service) -> None:
        jobs = await many(service)

        async def fail(calls: int) -> None:
            if calls == 1:
                raise DatabaseBusy("the database is busy", "Try again.")

        database = watched(service, fail)
        ids = [str(job) for job in jobs]
        outcomes = await change(service, "/v1/jobs/hold", {"ids": ids})
        assert [one.job_id for one in outcomes] == jobs
        assert [one.outcome for one in outcomes] == ["held"] * 100 + ["refused"] * 150
        assert {one.code for one in outcomes[100:]} == {"OD040"}
        database.before = nothing
        outcomes = await change(service, "/v1/jobs/hold", {"ids": ids})
        assert {one.outcome for one in outcomes} == {"held"}

    serve(database_url, work)
