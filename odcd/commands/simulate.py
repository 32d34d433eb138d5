"""odcd simulate: replay a workload through the scheduler, and say what users would have waited."""

from __future__ import annotations

import json
import re
import sys
from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odcd.commands import Subparsers, describe
from odcd.errors import BadRequest
from odcd.slurm.times import parse_span

if TYPE_CHECKING:
    from odcd.simulate.cluster import Cluster
    from odcd.simulate.policy import Policy
    from odcd.simulate.trace import Workload
    from odcd.simulate.workloads import Trace

DEFAULT_CLUSTER = "27x8"


def add(subparsers: Subparsers) -> None:
    parser = describe(
        subparsers,
        "simulate",
        "Replay traces through the scheduler on a virtual clock, and print the results",
        "odcd simulate philly-sample --policy fifo --cluster 27x8 --picture week.svg",
    )
    parser.add_argument(
        "traces",
        nargs="*",
        metavar="TRACE",
        help="a file in the Standard Workload Format or a GPU CSV, plain or gzip; or philly-sample",
    )
    parser.add_argument(
        "--cluster",
        metavar="NODESxGPUS",
        help="27x8, or 100x1 for a flat machine; default: the size in the header of the trace",
    )
    parser.add_argument(
        "--policy", metavar="NAME", help="the policy; default: that of a new installation"
    )
    parser.add_argument(
        "--plan-depth", metavar="N|all", help="how many blocked jobs have a planned start"
    )
    parser.add_argument(
        "--backfill",
        choices=["order", "fifo", "sjbf", "safbf"],
        help="the order of backfill candidates",
    )
    parser.add_argument(
        "--max-wait", metavar="48h|none", help="jobs that have waited longer come first: 48h, 2-0"
    )
    parser.add_argument(
        "--estimates",
        choices=["user", "true", "last2"],
        default="user",
        help="plan with the users' limits (default), the true run times, or the mean of the user's "
        "last two, increased when a job runs longer; it never ends a job",
    )
    parser.add_argument(
        "--no-eta", action="store_true", help="do not predict starts, which is faster"
    )
    parser.add_argument("--jobs", metavar="N", help="replay the first N jobs only")
    parser.add_argument(
        "--generate",
        metavar="RECIPE",
        help="replay a generated workload: lublin,jobs=5000,load=0.8,users=50,seed=1",
    )
    parser.add_argument("--save", metavar="FILE", help="write it as a trace: .swf or .csv, or .gz")
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object; for several traces, a list"
    )
    parser.add_argument("--out", metavar="FILE", help="write a CSV: id, submit, start, end, nodes")
    parser.add_argument(
        "--picture", metavar="FILE.svg", help="draw allocated GPUs and waiting jobs over time"
    )
    parser.set_defaults(run=run)


def run(args: Namespace) -> int:
    # All is imported and read before the work begins: as root it is done by an account that may
    # not be able to read where odc is installed.
    from odcd.simulate import output, picture
    from odcd.simulate.estimates import with_estimates
    from odcd.simulate.figures import figures
    from odcd.simulate.outcomes import Replayed
    from odcd.simulate.progress import Progress
    from odcd.simulate.replay import read_sources, replay
    from odcd.simulate.server import in_private_database
    from odcd.simulate.trace import replayable

    _check(args)
    policy = _policy(args)
    count = _count(args.jobs, "--jobs")
    traces = _traces(args)
    sources = read_sources()
    results: list[dict[str, Any]] = []
    for trace in traces:
        cluster = _cluster(args, trace)
        workload = replayable(trace.name, with_estimates(args.estimates, trace.jobs), cluster)
        if count is not None:
            workload = workload.first(count)
        _print_left_out(workload, cluster)
        progress = Progress(trace.name, sys.stderr)
        work = partial(
            replay,
            sources=sources,
            workload=workload,
            cluster=cluster,
            policy=policy,
            estimates=args.estimates,
            predict=not args.no_eta,
            progress=progress.show,
        )
        done = in_private_database(work, Replayed)
        progress.clear()
        results.append(figures(done, workload, cluster))
        if args.out is not None:
            output.write_jobs(Path(args.out), done.jobs)
        if args.picture is not None:
            title = f"{trace.name} on {cluster}, policy {done.policy}"
            Path(args.picture).write_text(picture.picture(title, done.jobs, cluster), "utf-8")
    if args.json:
        print(json.dumps(results[0] if len(results) == 1 else results))
    else:
        print(output.table(results))
    return 0


def _check(args: Namespace) -> None:
    from odcd.simulate.picture import check_picture
    from odcd.simulate.saving import trace_form

    if bool(args.traces) == (args.generate is not None):
        raise BadRequest(
            "give either traces or --generate",
            "For example: odcd simulate philly-sample",
        )
    for option in ("out", "picture", "save"):
        target = getattr(args, option)
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


def _policy(args: Namespace) -> Policy:
    from odcd.simulate.policy import ALL, Policy

    depth = ALL if args.plan_depth == "all" else _count(args.plan_depth, "--plan-depth", least=0)
    return Policy(
        name=args.policy,
        plan_depth=depth,
        backfill=args.backfill,
        max_wait_s=_max_wait_s(args.max_wait),
    )


def _max_wait_s(text: str | None) -> int | None:
    if text is None or text == "none":
        return None if text is None else 0
    return parse_span(text, "--max-wait")


def _count(text: str | None, option: str, least: int = 1) -> int | None:
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,9}", text) or int(text) < least:
        raise BadRequest(f'{option} "{text}" is not a number', f"It is {least} or more.")
    return int(text)


def _traces(args: Namespace) -> list[Trace]:
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


def _cluster(args: Namespace, trace: Trace) -> Cluster:
    from odcd.simulate.cluster import parse_cluster

    if args.cluster is not None:
        return parse_cluster(args.cluster)
    if trace.machine is None:
        raise BadRequest(
            f"trace {trace.name} does not describe the machine that it ran on",
            "Describe it: --cluster 27x8, or --cluster 100x1 for a flat machine.",
        )
    return trace.machine


def _print_left_out(workload: Workload, cluster: Cluster) -> None:
    left_out = [
        (workload.too_wide, f"wider than {cluster}, left out"),
        (workload.empty, "did not run or requested nothing, left out"),
        (workload.cut, "cut at their time limit"),
    ]
    for count, what in left_out:
        if count:
            print(f"{workload.name}: jobs {what}: {count}", file=sys.stderr)
