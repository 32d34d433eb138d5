"""/v1/idle and gpu_use of jobs follow their schemas; unknown names are refused."""

from __future__ import annotations

from datetime import timedelta

import pytest

from odcd.api.answers.jobs import Jobs
from odcd.api.idle import IdleList
from odcd.records.gpu_use import AttemptUsage, CurrentUsage
from odcd.records.node import NodeReport
from tests.odcd.api.service import ALICE, BOB, Service, serve
from tests.odcd.api.test_accounts import ask, read

AN_HOUR = timedelta(hours=1)


async def resting(service: Service) -> int:
    """A job with two GPUs that have been idle for an hour, and a job that waits."""
    store, now = service.store, service.api.clock.now()
    node = NodeReport(name="n1", gpu_type="h100", gpus=2, cpus=64, mem_mib=64_000)
    await store.nodes.register(0, [node], now, whole=True)
    await store.gpu_use.set_meter(0, "prometheus", 0.05, timedelta(minutes=15))
    job = await service.submit(ALICE, gpus=2)
    assert job in await service.plan()
    await service.database.execute(
        "update odc.running set state = 'RUNNING', started_at = $1, running_at = $1",
        now - AN_HOUR,
    )
    await service.submit(BOB)
    look = CurrentUsage(
        job_id=job, attempt=1, util_ratio=0.0, mem_used_mib=None, idle_gpus=["GPU-a"], gpus=[]
    )
    await store.gpu_use.record_current(0, [look], now - AN_HOUR, now + AN_HOUR, now)
    return job


def test_idle_gpus_and_their_jobs_are_shown_to_all_users(database_url: str) -> None:
    async def work(service: Service) -> None:
        assert read(IdleList, await ask(service, "GET", "/v1/idle")).jobs == []
        job = await resting(service)
        idle = read(IdleList, await ask(service, "GET", "/v1/idle"))
        assert [(one.id, one.idle_gpus, one.gpus) for one in idle.jobs] == [(job, 1, 2)]
        assert idle.jobs[0].lost_gpu_s >= 3600
        assert [(one.gpu_type, one.jobs, one.gpus) for one in idle.waiting] == [("h100", 1, 1)]
        for query, found in (("user=64001", 1), ("kind=reservation", 0), ("gpu_type=l4", 0)):
            answer = await ask(service, "GET", f"/v1/idle?{query}")
            assert len(read(IdleList, answer).jobs) == found

    serve(database_url, work, nodes=0)


def test_a_job_shows_its_gpu_usage_while_it_runs_and_after_it_ends(database_url: str) -> None:
    async def work(service: Service) -> None:
        job = await resting(service)
        answer = await ask(service, "GET", f"/v1/jobs?job={job}&fields=gpu_use")
        [shown] = answer.json()["jobs"]
        assert shown["gpu_use"]["now"]["idle_gpus"] == 1
        await service.end(job)
        figures = AttemptUsage(job_id=job, attempt=1, covered_s=3600, busy_gpu_s=1800, gpu_uuids=[])
        assert await service.store.gpu_use.save(0, [figures], service.api.clock.now()) == 1
        answer = await ask(service, "GET", f"/v1/jobs/{job}")
        use = read(Jobs, answer).jobs[0].gpu_use
        assert use is not None
        assert (use.now, use.owed, use.busy_gpu_s) == (None, 0, 1800)

    serve(database_url, work, nodes=0)


@pytest.mark.parametrize(
    ("query", "status"), [("kind=task", 400), ("user=nobody-at-all", 404), ("colour=red", 400)]
)
def test_invalid_queries_are_refused(database_url: str, query: str, status: int) -> None:
    async def work(service: Service) -> None:
        answer = await ask(service, "GET", f"/v1/idle?{query}")
        assert answer.status_code == status, answer.text

    serve(database_url, work)
