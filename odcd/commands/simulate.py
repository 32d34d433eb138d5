"""odcd simulate: replay a workload through the scheduler, and say what users would have waited."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odcctl.cli.plain import new_app
from odcd.cli.params import Command
from odcd.commands._simulate_options import (
    AsJson,
    Backfill,
    ClusterSize,
    EstimateKind,
    JobCount,
    MaxWait,
    NoEta,
    Out,
    Picture,
    PlanDepth,
    PolicyName,
    Recipe,
    Save,
    Traces,
)
from odcd.errors import BadRequest

if TYPE_CHECKING:
    from odcd.simulate.cluster import Cluster
    from odcd.simulate.estimates import Estimates
    from odcd.simulate.outcomes import Replayed
    from odcd.simulate.policy import Policy
    from odcd.simulate.progress import ReplayProgress
    from odcd.simulate.trace import Workload
    from odcd.simulate.workloads import Trace

DEFAULT_CLUSTER = "27x8"
EXAMPLE = "odcd simulate philly-sample --policy fifo --cluster 27x8 --picture week.svg"

app = new_app()


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    traces: Sequence[str]
    cluster: str | None
    policy: Policy
    estimates: Estimates
    predict: bool
    jobs: int | None
    generate: str | None
    save: str | None
    as_json: bool
    out: str | None
    picture: str | None


@app.command(cls=Command, epilog=EXAMPLE)
def simulate(
    traces: Traces = None,
    cluster: ClusterSize = None,
    policy: PolicyName = None,
    plan_depth: PlanDepth = None,
    backfill: Backfill = None,
    max_wait: MaxWait = None,
    estimates: EstimateKind = "user",
    no_eta: NoEta = False,
    jobs: JobCount = None,
    generate: Recipe = None,
    save: Save = None,
    as_json: AsJson = False,
    out: Out = None,
    picture: Picture = None,
) -> int:
    """Replay traces through the scheduler on a virtual clock, and print the results."""
    from odcd.simulate.policy import Policy

    chosen = Policy(name=policy, plan_depth=plan_depth, backfill=backfill, max_wait_s=max_wait)
    return run(
        Arguments(
            traces=traces or (), cluster=cluster, policy=chosen, estimates=estimates,
            predict=not no_eta, jobs=jobs, generate=generate, save=save, as_json=as_json, out=out,
            picture=picture,
        )
    )  # fmt: skip


def run(args: Arguments) -> int:
    # All is imported and read before the work begins: as root it is done by an account that may
    # not be able to read where odc is installed.
    from odcd.simulate import output, picture
    from odcd.simulate.estimates import with_estimates
    from odcd.simulate.figures import figures
    from odcd.simulate.outcomes import Replayed
    from odcd.simulate.progress import ReplayProgress
    from odcd.simulate.replay import read_sources, replay
    from odcd.simulate.server import in_private_database
    from odcd.simulate.trace import replayable

    _check(args)
    traces = _traces(args)
    sources = read_sources()
    results: list[dict[str, Any]] = []
    for trace in traces:
        cluster = _cluster(args, trace)
        workload = replayable(trace.name, with_estimates(args.estimates, trace.jobs), cluster)
        if args.jobs is not None:
            workload = workload.first(args.jobs)
        _report_left_out(workload, cluster)
        progress = ReplayProgress(trace.name, sys.stderr)
        work = partial(
            replay,
            sources=sources,
            workload=workload,
            cluster=cluster,
            policy=args.policy,
            estimates=args.estimates,
            predict=args.predict,
            progress=progress.show,
        )
        done = in_private_database(partial(_draw_progress, progress, work), Replayed)
        results.append(figures(done, workload, cluster))
        if args.out is not None:
            output.write_jobs(Path(args.out), done.jobs)
        if args.picture is not None:
            title = f"{trace.name} on {cluster}, policy {done.policy}"
            Path(args.picture).write_text(picture.picture(title, done.jobs, cluster), "utf-8")
    if args.as_json:
        print(json.dumps(results[0] if len(results) == 1 else results))
    else:
        print(output.table(results))
    return 0


async def _draw_progress(
    progress: ReplayProgress, work: Callable[[str], Awaitable[Replayed]], dsn: str
) -> Replayed:
    with progress:
        return await work(dsn)


def _check(args: Arguments) -> None:
    from odcd.simulate.picture import check_picture
    from odcd.simulate.saving import trace_form

    if bool(args.traces) == (args.generate is not None):
        raise BadRequest(
            "give either traces or --generate",
            "For example: odcd simulate philly-sample",
        )
    for option, target in (("out", args.out), ("picture", args.picture), ("save", args.save)):
        if target is None:
            continue
        if len(args.traces) > 1:
            raise BadRequest(
                f"--{option} is for one trace, but there are several", "Name one trace."
            )
        if not Path(target).parent.is_dir():
            raise BadRequest(f"--{option} {target}: the folder does not exist", "Create it first.")
    if args.picture is not None:
        check_picture(Path(args.picture))
    if args.save is not None:
        if args.generate is None:
            raise BadRequest(
                "--save is for workloads made with --generate",
                "Leave out --save, or use --generate.",
            )
        trace_form(Path(args.save))


def _traces(args: Arguments) -> list[Trace]:
    """Those named, or the one to be generated."""
    from odcd.simulate.cluster import parse_cluster
    from odcd.simulate.generator import generate, parse_recipe
    from odcd.simulate.saving import save_trace
    from odcd.simulate.workloads import Trace, read_trace

    if args.generate is None:
        return [read_trace(text) for text in args.traces]
    recipe = parse_recipe(args.generate)
    cluster = parse_cluster(args.cluster or DEFAULT_CLUSTER)
    jobs = generate(recipe, cluster)
    if args.save is not None:
        save_trace(Path(args.save), jobs, cluster, f"odcd simulate --generate {recipe}")
    return [Trace(name=str(recipe), jobs=jobs, machine=cluster)]


def _cluster(args: Arguments, trace: Trace) -> Cluster:
    from odcd.simulate.cluster import parse_cluster

    if args.cluster is not None:
        return parse_cluster(args.cluster)
    if trace.machine is None:
        raise BadRequest(
            f"trace {trace.name} does not describe the machine that it ran on",
            "Describe it: --cluster 27x8, or --cluster 100x1 for a flat machine.",
        )
    return trace.machine


def _report_left_out(workload: Workload, cluster: Cluster) -> None:
    counts = [
        (workload.too_wide, f"wider than {cluster}, left out"),
        (workload.empty, "did not run or requested nothing, left out"),
        (workload.cut, "cut at their time limit"),
    ]
    for count, what in counts:
        if count:
            print(f"{workload.name}: jobs {what}: {count}", file=sys.stderr)
