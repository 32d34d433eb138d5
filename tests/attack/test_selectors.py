"""Twenty characters name ten thousand ranges of tasks: ranges are counted, not characters."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Iterable
from typing import Any

import pytest
from starlette.requests import Request
from starlette.types import Message, Scope

from odcd.api.http.routing import Call
from odcd.api.http.streaming import ClientGone
from odcd.api.selectors import read_selectors
from odcd.errors import TooLarge
from odcd.slurm import lists
from tests.odcd.api.service import ALICE, BODY, Service, serve, until

SPARSE = "0-99999999:10001"
"""10,000 separate ranges of tasks, the maximum of one array."""


def sparse(count: int, job: int = 1) -> list[str]:
    return [f"{job}_[{SPARSE}]"] * count


@pytest.fixture
def merged(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of ranges in each list that was created."""
    made: list[int] = []
    real = lists._merge  # pyright: ignore

    def counted(ranges: Iterable[lists.Range]) -> tuple[lists.Range, ...]:
        found = real(ranges)
        made.append(len(found))
        return found

    monkeypatch.setattr(lists, "_merge", counted)
    return made


def refused(answer: Any) -> None:
    assert (answer.status_code, answer.json()["code"]) == (413, "OD017"), answer.text[:300]
    assert "20000 separate tasks or ranges" in answer.json()["detail"]
    assert answer.json()["hint"]


def test_a_list_of_many_sparse_selectors_is_refused(database_url: str, merged: list[int]) -> None:
    """Before: 11.5 KB blocked the event loop for 5 s and PostgreSQL worked for 16 s."""

    async def work(service: Service) -> None:
        async with service.client() as client:
            refused(await client.get("/v1/jobs", params={"job": ",".join(sparse(550))}))
            assert sum(merged) <= 20_000
            assert (await client.get("/v1/jobs", params={"job": ",".join(sparse(2))})).is_success

    serve(database_url, work)


def test_a_change_of_many_sparse_selectors_is_refused_and_changes_nothing(
    database_url: str, merged: list[int]
) -> None:
    """Before: 72 KB took 2 GB of memory and 40 s, and ended with a 500."""

    async def work(service: Service) -> None:
        job = await service.submit()
        async with service.client() as client:
            for verb in ("hold", "release", "requeue", "cancel"):
                merged.clear()
                body = {"ids": [str(job), *sparse(3000, job)]}
                refused(await client.post(f"/v1/jobs/{verb}", json=body))
                assert sum(merged) <= 20_000
            kinds = await service.database.fetch("select kind from odc.event order by id")
        assert [row["kind"] for row in kinds] == ["submitted"]

    serve(database_url, work)


def test_a_batch_of_many_sparse_arrays_is_refused_as_a_whole(
    database_url: str, merged: list[int]
) -> None:
    """Before: 16 KB took 12 s, and 160 KB blocked all users for 50 s."""

    async def work(service: Service) -> None:
        jobs = [{**BODY, "array": SPARSE, "hold": True}] * 60
        async with service.client() as client:
            for path in ("/v1/jobs/batch", "/v1/plan/what-if"):
                merged.clear()
                refused(await client.post(path, json={"jobs": jobs}))
                assert sum(merged) <= 20_000
            assert await service.database.fetchval("select count(*) from odc.job") == 0
            taken = await client.post("/v1/jobs/batch", json={"jobs": jobs[:2]})
            assert taken.status_code == 201, taken.text

    serve(database_url, work)


def test_many_whole_jobs_and_short_ranges_are_still_taken(database_url: str) -> None:
    async def work(service: Service) -> None:
        array = await service.submit(array="0-49999", hold=True)
        async with service.client() as client:
            ids = [f"{array}_{task}" for task in range(20_000)]
            answer = await client.post("/v1/jobs/cancel", json={"ids": ids}, timeout=300)
            assert answer.status_code == 200, answer.text[:300]

    serve(database_url, work)


def test_a_value_too_large_for_postgresql_is_refused_as_too_large(
    database_url: str,
) -> None:
    """Before: ProgramLimitExceededError, answered with 500."""

    async def work(service: Service) -> None:
        with pytest.raises(TooLarge) as raised:
            await service.database.fetchval("select repeat('a', 1200000000)")
        assert raised.value.hint

    serve(database_url, work)


def scope_of(path: str) -> Scope:
    return {
        "type": "http", "method": "POST", "path": path, "query_string": b"", "headers": [],
        "state": {"peer": ALICE},
    }  # fmt: skip


async def nothing_is_sent(message: Message) -> None:
    raise AssertionError(message)


def test_a_large_batch_of_a_disconnected_client_is_not_submitted(database_url: str) -> None:
    """Before: the work continued for a client that was already gone."""

    async def work(service: Service) -> None:
        body = json.dumps({"jobs": [BODY] * 300}).encode()
        messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Message:
            return messages.pop() if messages else {"type": "http.disconnect"}

        await service.app(scope_of("/v1/jobs/batch"), receive, nothing_is_sent)
        assert await service.database.fetchval("select count(*) from odc.job") == 0

    serve(database_url, work)


def test_a_large_batch_is_dropped_if_its_client_disconnects_while_it_waits(
    database_url: str,
) -> None:
    async def work(service: Service) -> None:
        first = await service.submit()
        body = json.dumps({"jobs": [BODY] * 300}).encode()
        leaves = asyncio.Event()
        messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Message:
            if messages:
                return messages.pop()
            await leaves.wait()
            return {"type": "http.disconnect"}

        async with service.database.dedicated() as other, service.client() as client:
            await other.execute("begin")
            await other.execute("lock table odc.job in exclusive mode")
            before = asyncio.create_task(client.post("/v1/jobs/batch", content=body))
            waiting = "select exists (select from pg_locks where not granted)"
            async with asyncio.timeout(60):
                while not await other.fetchval(waiting):
                    await asyncio.sleep(0.01)
            behind = asyncio.ensure_future(
                service.app(scope_of("/v1/jobs/batch"), receive, nothing_is_sent)
            )
            lane: Any = service.api.batcher._large  # pyright: ignore
            await until(lambda: bool(lane))
            leaves.set()
            await asyncio.wait_for(behind, 60)
            await other.execute("commit")
            taken = (await before).json()["ids"]
        rows = await service.database.fetch("select id from odc.job order by id")
        assert [row["id"] for row in rows] == [first, *taken]

    serve(database_url, work)


def test_selectors_of_a_client_that_has_gone_are_not_read_on() -> None:
    async def receive() -> Message:
        return {"type": "http.disconnect"}

    texts = deque(["7_1", "7_2", "7_3"])
    asking = (texts.popleft() for _ in range(3))

    async def read() -> None:
        call = Call(Request(scope_of("/v1/jobs/hold"), receive), None)
        await read_selectors(asking, call.turns(every_s=0))

    with pytest.raises(ClientGone):
        asyncio.run(read())
    assert list(texts) == ["7_2", "7_3"]
