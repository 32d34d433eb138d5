"""Replays through the real SQL, compared with a plain EASY implementation in this file."""

from __future__ import annotations

import asyncio
import heapq
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from odcd.errors import BadRequest
from odcd.simulate.cluster import Cluster, parse_cluster
from odcd.simulate.estimates import Planned, with_estimates
from odcd.simulate.outcomes import Replayed
from odcd.simulate.policy import Policy
from odcd.simulate.replay import read_sources, replay
from odcd.simulate.trace import TraceJob, replayable
from tests.support.harness.database import Sql, TestServer

pytestmark = pytest.mark.long


def replayed(
    server: TestServer, jobs: Sequence[TraceJob], cluster: str, *,
    policy: Policy | None = None, estimates: str = "user", predict: bool = False,
) -> Replayed:  # fmt: skip
    machine = parse_cluster(cluster)
    dsn = server.clone()
    try:
        return asyncio.run(
            replay(
                dsn,
                sources=read_sources(),
                workload=replayable("test", with_estimates(estimates, jobs), machine),
                cluster=machine,
                policy=policy or Policy(name="fifo", plan_depth=1),
                estimates=estimates,
                predict=predict,
                progress=lambda done, total: None,
            )
        )
    finally:
        server.drop(dsn)


def some_jobs(seed: int, count: int, gpus: int) -> list[TraceJob]:
    """Few lengths and gaps, so that many events fall on one second; each width has its own user."""
    chance = random.Random(seed)
    now = 0
    jobs: list[TraceJob] = []
    for _ in range(count):
        now += chance.choice([0, 0, 10, 30, 100])
        limit = chance.choice([10, 60, 100, 300, 1000])
        jobs.append(
            TraceJob(
                submit_s=now,
                run_s=max(1, round(limit * chance.choice([0.1, 0.5, 1.0, 1.0]))),
                gpus=(wide := min(gpus, chance.choice([1, 1, 2, 3, 5, 8]))),
                limit_s=limit,
                user=f"u{wide}",
            )
        )
    return jobs


Key = Callable[[TraceJob, int], float]
"""A job's place in the order, smallest first, after it has waited this long."""

ORDERS: dict[str, Key] = {
    "fifo": lambda job, wait_s: 0,
    "sjf": lambda job, wait_s: job.limit_s,
    "saf": lambda job, wait_s: job.limit_s * job.gpus,
    "wfp3": lambda job, wait_s: -((wait_s / job.limit_s) ** 3) * job.gpus,
}
BACKFILLS = {"fifo": ORDERS["fifo"], "sjbf": ORDERS["sjf"], "safbf": ORDERS["saf"]}


def easy(
    jobs: Sequence[TraceJob], processors: int, order: str = "fifo", backfill: str = "order",
    max_wait_s: int | None = None,
) -> list[int]:  # fmt: skip
    """Starts in an order, with one protected start, on a flat machine."""
    starts: dict[int, int] = {}
    ends: list[tuple[int, int]] = []
    queue: list[int] = []
    free = processors
    moments = sorted({job.submit_s for job in jobs}, reverse=True)

    def start(number: int) -> None:
        nonlocal free
        starts[number] = now
        free -= jobs[number].gpus
        queue.remove(number)
        heapq.heappush(ends, (now + jobs[number].run_s, number))

    def ordered(key: Key, capped: bool) -> list[int]:
        def place(number: int) -> tuple[bool, float, int]:
            wait_s = now - jobs[number].submit_s
            late = capped and max_wait_s is not None and wait_s > max_wait_s
            return not late, 0 if late else key(jobs[number], wait_s), number

        return sorted(queue, key=place)

    while moments or ends:
        now = min([*moments[-1:], *(end for end, _ in ends[:1])])
        while ends and ends[0][0] == now:
            free += jobs[heapq.heappop(ends)[1]].gpus
        if moments and moments[-1] == now:
            queue += [n for n, job in enumerate(jobs) if job.submit_s == moments[-1]]
            moments.pop()
        rest = ordered(ORDERS[order], capped=True)
        while rest and jobs[rest[0]].gpus <= free:
            start(rest.pop(0))
        if not rest:
            continue
        head = jobs[rest[0]]
        at, spare = now, free
        for end, gpus in sorted((starts[n] + jobs[n].limit_s, jobs[n].gpus) for _, n in ends):
            if spare >= head.gpus and end > at:
                break
            at, spare = end, spare + gpus
        spare -= head.gpus
        if backfill != "order":
            rest = [rest[0], *(n for n in ordered(BACKFILLS[backfill], False) if n != rest[0])]
        for number in rest[1:]:
            job = jobs[number]
            late = now + job.limit_s > at
            if job.gpus <= free and not (late and job.gpus > spare):
                spare -= job.gpus if late else 0
                start(number)
    return [starts[number] for number in range(len(jobs))]


@pytest.mark.parametrize("max_wait_s", [0, 333], ids=["uncapped", "capped"])
@pytest.mark.parametrize("backfill", ["order", *BACKFILLS])
@pytest.mark.parametrize("order", ORDERS)
def test_every_order_is_its_easy_on_a_flat_machine(
    postgres_server: TestServer, order: str, backfill: str, max_wait_s: int
) -> None:
    jobs = some_jobs(len(order + backfill), count=40, gpus=8)
    jobs = [replace(job, submit_s=job.submit_s - jobs[0].submit_s) for job in jobs]
    policy = Policy(name=order, plan_depth=1, backfill=backfill, max_wait_s=max_wait_s)
    done = replayed(postgres_server, jobs, "8x1", policy=policy)
    assert [job.start_s for job in done.jobs] == easy(jobs, 8, order, backfill, max_wait_s or None)
    assert [job.end_s - job.start_s for job in done.jobs] == [job.run_s for job in jobs]


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 4])
def test_a_spare_node_that_one_job_wanted_is_spare_for_the_next(
    postgres_server: TestServer, seed: int
) -> None:
    chance = random.Random(seed)
    widths = [1, 2, 3, 5, 8, 12, 20, 28]
    jobs = some_jobs(seed, count=120, gpus=30)
    jobs = [
        replace(job, submit_s=job.submit_s - jobs[0].submit_s, gpus=chance.choice(widths))
        for job in jobs
    ]
    done = replayed(postgres_server, jobs, "30x1")
    assert [job.start_s for job in done.jobs] == easy(jobs, 30)


@pytest.mark.long
def test_a_replay_repeats_to_the_node(postgres_server: TestServer) -> None:
    jobs = some_jobs(7, count=80, gpus=16)
    one, two = (replayed(postgres_server, jobs, "2x8") for _ in range(2))
    assert one.jobs == two.jobs
    assert {node for job in one.jobs for node in job.nodes} == {"n1", "n2"}


@pytest.mark.long
def test_predictions_do_not_change_the_schedule(
    postgres_server: TestServer,
) -> None:
    jobs = some_jobs(3, count=80, gpus=8)
    plain = replayed(postgres_server, jobs, "8x1")
    one, two = (replayed(postgres_server, jobs, "8x1", predict=True) for _ in range(2))
    assert one.jobs == two.jobs
    assert [replace(job, predicted=None) for job in one.jobs] == list(plain.jobs)
    waited = [job for job in one.jobs if job.wait_s > 0]
    assert waited
    for job in waited:
        assert job.predicted is not None
        assert job.submit_s <= job.predicted[0] <= job.predicted[1] <= job.predicted[2]
    assert all(job.predicted is None for job in one.jobs if job.wait_s == 0)


def test_a_wide_job_holds_whole_nodes(postgres_server: TestServer) -> None:
    wide = TraceJob(submit_s=0, run_s=50, gpus=12, limit_s=50)
    narrow = TraceJob(submit_s=1, run_s=10, gpus=4, limit_s=10)
    done = replayed(postgres_server, [wide, narrow], "2x8")
    assert [(job.start_s, job.gpus, job.nodes) for job in done.jobs] == [
        (0, 16, ("n1", "n2")), (50, 4, ("n1",))
    ]  # fmt: skip


def test_users_stay_apart(postgres_server: TestServer) -> None:
    dsn = postgres_server.clone()
    machine = Cluster(nodes=1, gpus_per_node=8)
    workload = replayable("test", some_jobs(1, count=10, gpus=8), machine)
    asyncio.run(
        replay(dsn, sources=read_sources(), workload=workload, cluster=machine,
               policy=Policy(name="fifo"), estimates="user", predict=False,
               progress=lambda done, total: None)
    )  # fmt: skip
    with Sql(dsn) as sql:
        rows = sql.rows("select distinct user_name, uid from odc.job")
    assert len(rows) == len({job.user for job in workload.jobs}) == len({r["uid"] for r in rows})
    postgres_server.drop(dsn)


def test_true_estimates_plan_with_the_run_times(postgres_server: TestServer) -> None:
    jobs = [
        TraceJob(submit_s=0, run_s=100, gpus=1, limit_s=1000),
        TraceJob(submit_s=0, run_s=10, gpus=2, limit_s=10),
        TraceJob(submit_s=0, run_s=150, gpus=1, limit_s=150),
        TraceJob(submit_s=0, run_s=80, gpus=1, limit_s=40),
    ]
    # By the users' limits the second starts at 1000, so that 150 s fit before; in truth at 100.
    assert [j.start_s for j in replayed(postgres_server, jobs, "2x1").jobs] == [0, 150, 0, 100]
    truly = replayed(postgres_server, jobs, "2x1", estimates="true")
    assert [j.start_s for j in truly.jobs] == [0, 100, 110, 0]
    assert [j.run_s for j in truly.jobs] == [100, 10, 150, 80]


def test_last2_plans_with_earlier_run_times_and_ends_no_job(
    postgres_server: TestServer,
) -> None:
    jobs = [
        TraceJob(submit_s=0, run_s=10, gpus=1, limit_s=1000, user="ann"),
        TraceJob(submit_s=20, run_s=400, gpus=1, limit_s=1000, user="ann"),
        TraceJob(submit_s=20, run_s=50, gpus=2, limit_s=50, user="bob"),
        # Planned with 205 s, so it fits before bob's 430 only because ann's second job, planned
        # with 10 s, has been raised to 370 and then to 910 by then.
        TraceJob(submit_s=425, run_s=5, gpus=1, limit_s=1000, user="ann"),
    ]
    done = replayed(postgres_server, jobs, "2x1", estimates="last2")
    assert [j.start_s for j in done.jobs] == [0, 20, 420, 470]
    assert [j.run_s for j in done.jobs] == [10, 400, 50, 5]


def test_limits_of_last2_match_a_hand_calculation() -> None:
    planned = Planned("last2")
    job = TraceJob(submit_s=0, run_s=100, gpus=1, limit_s=1000, user="ann")
    assert planned.limit_s(job) == 1000
    planned.ended(job)
    assert planned.limit_s(job) == 100
    planned.ended(TraceJob(submit_s=0, run_s=301, gpus=1, limit_s=1000, user="ann"))
    assert planned.limit_s(job) == 200
    planned.ended(TraceJob(submit_s=0, run_s=5000, gpus=1, limit_s=9000, user="ann"))
    assert planned.limit_s(job) == 1000
    assert [planned.raised_s(job, 200, limit) for limit in (200, 260, 500)] == [260, 500, 1000]


def test_an_unknown_policy_is_refused_with_those_there_are(postgres_server: TestServer) -> None:
    with pytest.raises(BadRequest, match='policy "lifo" does not exist') as refused:
        replayed(postgres_server, some_jobs(0, 3, 1), "1x1", policy=Policy(name="lifo"))
    assert "fifo" in (refused.value.hint or "")
