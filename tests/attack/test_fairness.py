"""No user can keep the daemon busy at the expense of others: requests, streams, terminals, submits,
pending jobs."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from odcd.api.http.identity import Peer
from odcd.database.session import Session
from odcd.errors import BadRequest, TooManyRequests
from odcd.fairness.limits import Buckets, Fairness
from odcd.fairness.settings import FairnessSettings, read_fairness
from odcd.jobs.submission import prepare
from odcd.jobs.submit_batches import SubmitBatcher
from odcd.records.job import Identity, JobSpec
from tests.odcd.api.service import ALICE, BOB, BODY, OPERATOR, Service, serve, until
from tests.odcd.api.test_who_may import _attach  # pyright: ignore[reportPrivateUsage]
from tests.support.fakes.clock import VirtualClock

EVE = Identity(user="eve", uid=64001, gid=64001, operator=False)


def limited(**limits: int) -> dict[str, Any]:
    """Options of a service with these limits, and no others."""
    settings = FairnessSettings(**{**{name: 0 for name in FairnessSettings.__slots__}, **limits})
    return {"fairness": Fairness(settings)}


def refused(answer: httpx.Response) -> dict[str, Any]:
    """The problem in an answer that asks the user to wait."""
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (429, "OD041"), answer.text
    assert int(answer.headers["retry-after"]) >= 1
    assert problem["hint"]
    return problem


async def metric(service: Service, limit: str) -> float:
    async with service.client(OPERATOR) as client:
        text = (await client.get("/metrics")).text
    name = f'odcd_requests_limited_total{{limit="{limit}"}} '
    return float(next(line for line in text.splitlines() if line.startswith(name)).split()[-1])


def test_only_the_user_who_floods_the_daemon_is_limited(database_url: str) -> None:
    """Before: one user's requests were served for as long as more of them came."""

    async def work(service: Service) -> None:
        async with service.client(ALICE) as client:
            answers = [await client.get("/v1/nodes") for _ in range(40)]
        codes = [answer.status_code for answer in answers]
        assert codes[:10] == [200] * 10
        problem = refused(answers[-1])
        assert problem["detail"].endswith("sends more than 1 requests per second")
        for peer in (BOB, OPERATOR):
            async with service.client(peer) as client:
                assert (await client.get("/v1/nodes")).status_code == 200
        assert await metric(service, "requests") == codes.count(429)

    serve(database_url, work, **limited(requests=1))


@pytest.mark.parametrize("path", ["/v1/jobs/1/attach", "/v1/reservations/1/ssh"])
def test_requests_for_terminals_and_tunnels_count_as_requests(database_url: str, path: str) -> None:
    """Before: only those that were open counted, so refused ones came without a limit, and their
    statements were not counted for their user either."""

    async def work(service: Service) -> None:
        codes = [(await _attach(service, path, ALICE))[0] for _ in range(40)]
        assert 429 not in codes[:10]
        assert codes[-1] == 429
        assert (await _attach(service, path, BOB))[0] != 429

    serve(database_url, work, **limited(requests=1))


def test_the_streams_of_a_user_are_limited_until_some_end(database_url: str) -> None:
    async def work(service: Service) -> None:
        job = await service.submit(BOB)

        async def follow(path: str) -> httpx.Response:
            async with service.client(ALICE) as client:
                return await client.get(path)

        open_ones = [
            asyncio.create_task(follow(f"/v1/jobs/{job}?wait=60")),
            asyncio.create_task(follow("/v1/events?after=0")),
        ]
        await until(lambda: service.hub.clients)
        async with service.client(ALICE) as client:
            answer = await client.get("/v1/events?after=0")
            while answer.status_code == 200:
                answer = await client.get("/v1/events?after=0&follow=false")
            assert "has 2 streams open" in refused(answer)["detail"]
            refused(await client.get(f"/v1/jobs/{job}?wait=60"))
        assert (await asyncio.wait_for(_once(service, BOB), 60)).status_code == 200
        await service.plan()
        await service.end(job)
        await open_ones[0]
        assert (await asyncio.wait_for(_once(service, ALICE), 60)).status_code == 200
        assert await metric(service, "streams") == 2
        service.hub.close()
        await asyncio.wait(open_ones)

    serve(database_url, work, **limited(streams=2))


async def _once(service: Service, peer: Peer) -> httpx.Response:
    async with service.client(peer) as client:
        return await client.get("/v1/events?after=0&follow=false")


def test_the_terminals_of_a_user_are_limited(database_url: str) -> None:
    async def work(service: Service) -> None:
        who = EVE
        with service.api.fairness.socket(who):
            for path in ("/v1/jobs/1/attach", "/v1/reservations/1/ssh"):
                status, text = await _attach(service, path, ALICE)
                assert (status, "OD041" in text) == (429, True), text
                status, _ = await _attach(service, path, BOB)
                assert status in (404, 4004)
        status, _ = await _attach(service, "/v1/jobs/1/attach", ALICE)
        assert status == 404
        assert await metric(service, "sockets") == 2

    serve(database_url, work, **limited(sockets=1))


def test_a_user_who_submits_too_fast_gets_a_retry_time(database_url: str) -> None:
    async def work(service: Service) -> None:
        async with service.client(ALICE) as client:
            batch = {"jobs": [BODY] * 10}
            assert (await client.post("/v1/jobs/batch", json=batch)).status_code == 201
            problem = refused(await client.post("/v1/jobs", json=BODY))
            assert "more than 10 jobs per minute" in problem["detail"]
            assert "ODC_USER_SUBMITS" in problem["hint"]
            # A what-if request is not a submit.
            answer = await client.post("/v1/plan/what-if", json={"jobs": [BODY]})
            assert answer.status_code == 200
        for peer in (BOB, OPERATOR):
            async with service.client(peer) as client:
                batch = {"jobs": [BODY] * (12 if peer is OPERATOR else 2)}
                assert (await client.post("/v1/jobs/batch", json=batch)).status_code == 201
        assert await metric(service, "submits") == 1

    serve(database_url, work, **limited(submits=10))


def batcher(service: Service, pending: int) -> SubmitBatcher:
    """Stands for another daemon, with its own statements."""
    return SubmitBatcher(service.store.jobs, service.api.clock, pending=pending)


class Stubborn:
    """The API's batcher with a limit on pending jobs."""

    def __init__(self, pending: int) -> None:
        self.pending = pending
        self.inner: SubmitBatcher | None = None

    async def submit(self, prepared: Any) -> Any:
        assert self.inner is not None
        return await self.inner.submit(prepared)


def serve_pending(url: str, work: Any, pending: int) -> None:
    stubborn = Stubborn(pending)

    async def work_in(service: Service) -> None:
        stubborn.inner = batcher(service, pending)
        await work(service)

    serve(url, work_in, batcher=stubborn)


def test_pending_jobs_of_a_user_are_limited_by_task(database_url: str) -> None:
    """Before: a user could fill the queue without bound."""

    async def work(service: Service) -> None:
        async with service.client(ALICE) as client:
            first = await client.post("/v1/jobs", json={**BODY, "array": "1-90"})
            assert first.status_code == 201
            many = await client.post("/v1/jobs/batch", json={"jobs": [BODY] * 11})
            assert (
                "may have 100 pending jobs, and 11 more would make 101" in refused(many)["detail"]
            )
            assert many.headers["retry-after"] == "5"
            more = await client.post("/v1/jobs", json={**BODY, "array": "1-11"})
            refused(more)
            assert (await client.post("/v1/jobs/batch", json={"jobs": [BODY] * 10})).is_success
            problem = refused(await client.post("/v1/jobs", json=BODY))
            assert "ODC_USER_PENDING" in problem["hint"]
        await service.submit(BOB)
        await service.submit(OPERATOR, array="1-500")
        # They are counted again once some seconds have passed.
        async with service.client(ALICE) as client:
            await client.post("/v1/jobs/cancel", json={"ids": [str(first.json()["id"])]})
            refused(await client.post("/v1/jobs", json=BODY))
        await service.database.execute(
            "update odc.pending_bound set counted_at = counted_at - interval '5 seconds'"
        )
        await service.submit(ALICE, array="1-90")
        assert await metric(service, "pending") == 4

    serve_pending(database_url, work, 100)


def test_concurrent_submits_through_two_daemons_keep_the_limit(database_url: str) -> None:
    async def work(service: Service) -> None:
        daemons = [batcher(service, 50) for _ in range(4)]
        spec = JobSpec(script="#!/bin/sh\ntrue\n", work_dir="/tmp", gpus=1)

        async def submit(number: int) -> int:
            prepared = prepare(EVE, [spec] * 3, key=None, dry_run=False)
            answers = await daemons[number % 4].submit(prepared)
            return sum(answer.job_id is not None for answer in answers)

        taken = await asyncio.gather(*(submit(number) for number in range(40)))
        pending = await service.database.fetchval("select count(*) from odc.pending")
        assert sum(taken) == pending == 48

    serve(database_url, work)


def test_a_large_batch_of_one_user_does_not_delay_the_submissions_of_others(
    database_url: str,
) -> None:
    """Before: one sender wrote all requests as they came, so all waited for the slowest."""

    async def work(service: Service) -> None:
        sharing = batcher(service, 10_000)
        specs = [
            JobSpec(script="#!/bin/sh\ntrue\n", work_dir="/tmp", gpus=1, mem_per_node_mib=n)
            for n in range(1, 302)
        ]
        bob = Identity(user="bob", uid=64002, gid=64002, operator=False)

        def submit(who: Identity, jobs: list[JobSpec]) -> asyncio.Task[Any]:
            prepared = prepare(who, jobs, key=None, dry_run=False)
            return asyncio.create_task(sharing.submit(prepared))

        await submit(EVE, specs[:1])
        async with service.database.dedicated() as other:
            await other.execute("begin")
            await other.execute("select from odc.pending_bound where uid = $1 for update", EVE.uid)
            large = [submit(EVE, specs) for _ in range(2)]
            await _until_a_lock_is_waited_for(other)
            small = submit(EVE, specs[:1])
            # Also for data that Eve's batch requests first: its shapes are not written yet.
            for job in (specs[0], specs[200]):
                answers = await asyncio.wait_for(submit(bob, [job]), 60)
                assert answers[0].job_id is not None
            assert not any(task.done() for task in (*large, small))
            await other.execute("commit")
        for task in (*large, small):
            assert all(answer.job_id is not None for answer in await task)

    serve(database_url, work)


async def _until_a_lock_is_waited_for(session: Session) -> None:
    waiting = "select exists (select from pg_locks where not granted)"
    while not await session.fetchval(waiting):
        await asyncio.sleep(0.01)


def test_a_bucket_refills_over_time() -> None:
    clock = VirtualClock(datetime(2026, 1, 1, tzinfo=UTC))
    bucket = Buckets(clock, per_s=2, size=10)
    assert bucket.take(1, 10) == 0
    assert bucket.take(1, 1) == 0.5
    assert bucket.take(2, 1) == 0
    clock.move(0.5)
    assert bucket.take(1, 1) == 0
    clock.move(5)
    # A request that waited for a full bucket may take more than the bucket has; the rest becomes a
    # debt.
    assert bucket.take(1, 30) == 0
    assert bucket.take(1, 1) == 10.5


def test_limits_are_read_from_the_environment() -> None:
    assert read_fairness({}) == FairnessSettings()
    assert read_fairness({"ODC_USER_REQUESTS": "0", "ODC_USER_PENDING": ""}).requests == 0
    for text in ("-1", "x", "1.5", "9" * 20, "²"):
        with pytest.raises(BadRequest, match="ODC_USER_SUBMITS"):
            read_fairness({"ODC_USER_SUBMITS": text})


def test_operators_have_no_limits() -> None:
    settings = FairnessSettings(requests=1, streams=1, sockets=1, submits=1, pending=1)
    fairness = Fairness(settings)
    root = Identity(user="root", uid=0, gid=0, operator=True)
    for _ in range(100):
        fairness.request(root)
        fairness.submit(root, 1000)
    with fairness.stream(root), fairness.stream(root):
        pass
    with fairness.stream(EVE), pytest.raises(TooManyRequests), fairness.stream(EVE):
        pass
    with fairness.stream(EVE):
        pass
