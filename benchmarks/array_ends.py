"""How well one array keeps a cluster busy while its tasks end: python -m benchmarks.array_ends.

The planner, the reconciler and SQL are the daemon's own, on the real clock; the executor is
simulated.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from benchmarks.figures import Figure
from benchmarks.planning import served
from benchmarks.report import report
from benchmarks.results import ARRAY_ENDS
from odcd.clock import Clock, SystemClock
from odcd.database.pool import Database
from odcd.executor.simulated import Run, SimulatedExecutor
from odcd.jobs.submission import prepare
from odcd.jobs.submit_batches import SubmitBatcher
from odcd.loops.election import APPLICATION
from odcd.loops.executor_watch import take_over
from odcd.loops.lead import Lead, Pass
from odcd.loops.planner import Planner
from odcd.loops.reconciler import Reconciler
from odcd.records.dispatch import Dispatch
from odcd.records.job import Identity, JobSpec
from odcd.records.node import NodeReport
from odcd.stores.store import Store

NODES = 1000
GPUS = 8
ANN = Identity(user="ann", uid=1001, gid=1001, operator=False)


@dataclass(frozen=True, kw_only=True)
class Load:
    """tasks: the array's number of tasks; gpus: GPUs of each task; seconds: the run time of a task,
    plus or minus spread."""

    what: str
    tasks: int
    gpus: int
    seconds: float
    spread: float


RATES = [
    Load(what="40 ends per second", tasks=2400, gpus=GPUS, seconds=25, spread=1.0),
    Load(what="400 ends per second", tasks=16_000, gpus=GPUS, seconds=2.5, spread=1.0),
]
WAVES = [
    Load(what="8,000 tasks of 5 s and 8 GPUs", tasks=8000, gpus=8, seconds=5, spread=0),
    Load(what="8,000 tasks of 5 s and 1 GPU, all at once", tasks=8000, gpus=1, seconds=5, spread=0),
    Load(what="48,000 tasks of about 5 s and 1 GPU", tasks=48_000, gpus=1, seconds=5, spread=0.5),
]


@dataclass
class Seen:
    """The observed starts and ends, on the executor's own clock."""

    begins: dict[int, float] = field(default_factory=dict[int, float])
    ends: dict[int, float] = field(default_factory=dict[int, float])
    nodes: dict[int, str] = field(default_factory=dict[int, str])
    passes: list[Pass] = field(default_factory=list[Pass])


class Watched(SimulatedExecutor):
    """Records when each task started and when it will have ended."""

    def __init__(self, clock: Clock, load: Load, seen: Seen, nodes: Sequence[NodeReport]) -> None:
        super().__init__(clock, self._run_of, nodes)
        self._load = load
        self._seen = seen

    def _run_of(self, dispatch: Dispatch) -> Run:
        chance = random.Random(dispatch.job_id)
        seconds = self._load.seconds * (1 + self._load.spread * chance.uniform(-1, 1))
        begun = self._clock.now().timestamp()
        if dispatch.job_id not in self._seen.begins:
            self._seen.begins[dispatch.job_id] = begun
            self._seen.ends[dispatch.job_id] = begun + seconds
            self._seen.nodes[dispatch.job_id] = dispatch.members[0].node
        return Run(seconds=seconds)


def nodes() -> list[NodeReport]:
    return [
        NodeReport(name=f"n{i:04}", gpu_type="h100", gpus=GPUS, cpus=192, mem_mib=2_000_000,
                   efa_domain=f"pg{i // 64}", declared=True)
        for i in range(NODES)
    ]  # fmt: skip


async def drive(dsn: str, load: Load) -> Seen:
    """Submit the array and run it to its end."""
    clock, seen = SystemClock(), Seen()
    executor = Watched(clock, load, seen, nodes())
    async with (
        Database(dsn) as database,
        database.dedicated(name=APPLICATION) as session,
    ):
        store = Store(database)
        row = await session.fetchrow("select term, beat from odc.read_term()")
        assert row is not None
        term = await session.fetchval(
            "select odc.take_term(p_term => $1, p_beat => $2, p_holder => 'bench', "
            "p_host => 'bench', p_now => $3)",
            row["term"], row["beat"], clock.now(),
        )  # fmt: skip
        lead = Lead(term, session, clock)
        planner = Planner(
            lead, store.dispatches, executor, clock, timedelta(seconds=30), seen.passes.append
        )
        reconciler = Reconciler(
            lead, store, executor, clock, grace=timedelta(seconds=30), node_grace=None,
            every=timedelta(seconds=30), on_change=planner.wake,
        )  # fmt: skip
        await executor.open(term)
        await store.nodes.register(term, nodes(), clock.now(), whole=True)
        await take_over(lead, store.attempts, executor, planner)
        spec = JobSpec(
            script="#!/bin/sh\n", work_dir="/tmp", name="sweep", gpus=load.gpus, gpu_type="h100",
            cpus_per_task=load.gpus, array=f"0-{load.tasks - 1}", time_limit_s=3600,
        )  # fmt: skip
        await SubmitBatcher(store.jobs, clock).submit(prepare(ANN, [spec], key=None, dry_run=False))
        async with asyncio.TaskGroup() as group:
            working = [group.create_task(planner.run()), group.create_task(reconciler.run())]
            while await database.fetchval(
                "select exists (select from odc.pending) or exists (select from odc.running)"
            ):
                await clock.sleep(0.5)
            for task in working:
                task.cancel()
    return seen


def idle_ms(seen: Seen) -> list[float]:
    """How long the GPUs of a node were idle before each start except its first. For whole-node
    tasks."""
    last: dict[str, float] = {}
    rested: list[float] = []
    for job_id in sorted(seen.begins, key=seen.begins.__getitem__):
        node = seen.nodes[job_id]
        if node in last:
            rested.append((seen.begins[job_id] - last[node]) * 1000)
        last[node] = seen.ends[job_id]
    return rested


def used(seen: Seen, load: Load) -> float:
    """The percentage of GPU time used by tasks, from the first start until no tasks are left to
    start. If the whole array starts at once: until its end."""
    first, last_begin = min(seen.begins.values()), max(seen.begins.values())
    until = last_begin if load.tasks * load.gpus > NODES * GPUS else max(seen.ends.values())
    busy = sum(min(seen.ends[j], until) - min(seen.begins[j], until) for j in seen.begins)
    return 100 * busy * load.gpus / (NODES * GPUS * (until - first))


def run(load: Load) -> tuple[Seen, int]:
    with served() as sql:
        before = sql.value(
            "select xact_rollback from pg_stat_database where datname = current_database()"
        )
        seen = asyncio.run(drive(sql.dsn, load))
        assert len(seen.begins) == load.tasks
        assert sql.values("select odc.check_books()") == []
        sql.execute("select pg_stat_force_next_flush()")
        after = sql.value(
            "select xact_rollback from pg_stat_database where datname = current_database()"
        )
    return seen, after - before


def measured(options: argparse.Namespace) -> Iterator[Figure]:
    for load in RATES:
        seen, rolled_back = run(load)
        gaps = idle_ms(seen)
        took = [p.took_ms for p in seen.passes]
        p99 = statistics.quantiles(took, n=100)[98]
        note = (
            f"{len(took)} passes, {sum(p.replanned for p in seen.passes)} decided twice; a pass "
            f"took {statistics.median(took):.1f} ms (median), {p99:.1f} ms (p99)"
        )
        yield Figure(
            f"passes rolled back at {load.what} of one array", [rolled_back], "", note=note
        )
        yield Figure(
            f"time until idle GPUs are used again, median, {load.what}",
            [statistics.median(gaps)],
            "ms",
            100,
        )
        yield Figure(
            f"time until idle GPUs are used again, p99, {load.what}",
            [statistics.quantiles(gaps, n=100)[98]],
            "ms",
            100,
        )
    for load in WAVES:
        seen, _ = run(load)
        took = [p.took_ms for p in seen.passes if p.started]
        yield Figure(
            f"GPU time used by {load.what}", [used(seen, load)], "%", 95, at_least=True,
            note=f"{len(took)} passes that started tasks took {statistics.median(took):.0f} ms "
            "(median)",
        )  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.array_ends", description=__doc__)
    setting = (
        "1,000 nodes of 8 GPUs; planner, reconciler and SQL are the daemon's, on the real clock; "
        "the "
        "executor is simulated and ends each task on time."
    )
    return report(parser, ARRAY_ENDS, setting, measured)


if __name__ == "__main__":
    sys.exit(main())
