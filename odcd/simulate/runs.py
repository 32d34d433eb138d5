"""The replays that one command asks for: each trace under each policy, once or shaken."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from odcd.simulate import output, picture
from odcd.simulate.apart import available_cores, run_apart
from odcd.simulate.cluster import Cluster
from odcd.simulate.estimates import Estimates, with_estimates
from odcd.simulate.figures import figures
from odcd.simulate.outcomes import Replayed
from odcd.simulate.policy import Policy
from odcd.simulate.progress import ReplayProgress
from odcd.simulate.replay import Sources, replay
from odcd.simulate.server import in_private_database
from odcd.simulate.shake import shaken
from odcd.simulate.trace import Workload, replayable
from odcd.simulate.workloads import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    traces: Sequence[str]
    cluster: str | None
    policies: Sequence[Policy]
    estimates: Estimates
    predict: bool
    jobs: int | None
    shake: int | None
    processes: int | None
    generate: str | None
    save: str | None
    as_json: bool
    out: str | None
    picture: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One replay. seed: how its submissions are moved, with --shake."""

    args: Arguments
    sources: Sources
    trace: Trace
    cluster: Cluster
    policy: Policy
    seed: int


def replayed(run: Run) -> dict[str, Any]:
    """Replay here; show the progress, write the requested files and return the figures."""
    args, trace, cluster = run.args, run.trace, run.cluster
    workload = workload_of(args, trace, cluster)
    progress = ReplayProgress(trace.name, sys.stderr)
    work = _work(run, workload, progress.show)
    done = in_private_database(partial(_draw_progress, progress, work), Replayed)
    if args.out is not None:
        output.write_jobs(Path(args.out), done.jobs)
    if args.picture is not None:
        title = f"{trace.name} on {cluster}, policy {done.policy}"
        Path(args.picture).write_text(picture.picture(title, done.jobs, cluster), "utf-8")
    return figures(done, workload, cluster)


def all_shaken(args: Arguments, runs: Sequence[Run]) -> list[dict[str, Any]]:
    """The figures of each run, several at once."""
    progress = ReplayProgress("runs", sys.stderr)
    with progress:
        return run_apart(
            [partial(_shaken_once, run) for run in runs],
            args.processes or available_cores(),
            progress.show,
        )


def _shaken_once(run: Run) -> dict[str, Any]:
    workload = workload_of(run.args, run.trace, run.cluster, seed=run.seed)
    done = in_private_database(_work(run, workload, lambda done, total: None), Replayed)
    return figures(done, workload, run.cluster)


def workload_of(
    args: Arguments, trace: Trace, cluster: Cluster, *, seed: int | None = None
) -> Workload:
    # The first jobs of the trace: moving them may change which jobs are the first.
    workload = replayable(trace.name, with_estimates(args.estimates, trace.jobs), cluster)
    if args.jobs is not None:
        workload = workload.first(args.jobs)
    return workload if seed is None else shaken(workload, seed)


def _work(
    run: Run, workload: Workload, progress: Callable[[int, int], None]
) -> Callable[[str], Awaitable[Replayed]]:
    return partial(
        replay, sources=run.sources, workload=workload, cluster=run.cluster, policy=run.policy,
        estimates=run.args.estimates, predict=run.args.predict, progress=progress,
    )  # fmt: skip


async def _draw_progress(
    progress: ReplayProgress, work: Callable[[str], Awaitable[Replayed]], dsn: str
) -> Replayed:
    with progress:
        return await work(dsn)
