"""odcd simulate: replay a workload through the scheduler, and say what users would have waited."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from odcctl.cli.plain import new_app
from odcd.cli.params import Command, DatabaseHome, Dsn
from odcd.commands import _simulate_history as _history
from odcd.commands._simulate_options import (
    Add,
    AsJson,
    Backfill,
    Change,
    ClusterSize,
    EstimateKind,
    History,
    JobCount,
    MaxWait,
    NoEta,
    Out,
    Picture,
    PlanDepth,
    PolicyName,
    Processes,
    Recipe,
    Remove,
    Save,
    Shake,
    Traces,
)
from odcd.errors import BadRequest

if TYPE_CHECKING:
    from odcd.simulate.cluster import Cluster
    from odcd.simulate.runs import Arguments
    from odcd.simulate.trace import Workload
    from odcd.simulate.workloads import Trace

DEFAULT_CLUSTER = "27x8"
EXAMPLE = "odcd simulate philly-sample --policy fifo --cluster 27x8 --picture week.svg"

app = new_app()


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
    shake: Shake = None,
    processes: Processes = None,
    generate: Recipe = None,
    save: Save = None,
    as_json: AsJson = False,
    out: Out = None,
    picture: Picture = None,
    history: History = None,
    add: Add = None,
    remove: Remove = None,
    change: Change = None,
    home: DatabaseHome = None,
    dsn: Dsn = None,
) -> int:
    """Replay traces, or your own history, through the scheduler on a virtual clock."""
    from odcd.simulate.policy import Policy
    from odcd.simulate.runs import Arguments

    policies = [
        Policy(name=name, plan_depth=plan_depth, backfill=backfill, max_wait_s=max_wait)
        for name in _names(policy)
    ]
    args = Arguments(
        traces=traces or (), cluster=cluster, policies=policies, estimates=estimates,
        predict=not no_eta, jobs=jobs, shake=shake, processes=processes, generate=generate,
        save=save, as_json=as_json, out=out, picture=picture,
    )  # fmt: skip
    options = _history.HistoryOptions(
        window_s=history, add=tuple(add or ()), remove=tuple(remove or ()),
        settings=tuple(change or ()), home=home, dsn=dsn,
    )  # fmt: skip
    if _history.wanted(args, options):
        return _history.run(args, options)
    return run(args)


def run(args: Arguments) -> int:
    # All is imported and read before the work begins: as root it is done by an account that may
    # not be able to read where odc is installed.
    from odcd.simulate import output, shake
    from odcd.simulate.replay import read_sources
    from odcd.simulate.runs import Run, all_shaken, replayed, workload_of

    _check(args)
    traces = [(trace, _cluster(args, trace)) for trace in _traces(args)]
    for trace, cluster in traces:
        _report_left_out(workload_of(args, trace, cluster), cluster)
    sources = read_sources()
    runs = [
        Run(args=args, sources=sources, trace=trace, cluster=cluster, policy=policy, seed=seed)
        for trace, cluster in traces
        for policy in args.policies
        for seed in range(1, (args.shake or 1) + 1)
    ]
    if args.shake is None:
        results = [replayed(one) for one in runs]
        text = output.table(results)
    else:
        results = shake.summaries(all_shaken(args, runs), args.shake, len(args.policies))
        text = output.shaken_table(results)
    print(json.dumps(results[0] if len(results) == 1 else results) if args.as_json else text)
    return 0


def _names(text: str | None) -> list[str | None]:
    """The policies of --policy; None is that of a new installation."""
    if text is None:
        return [None]
    names = [name.strip() for name in text.split(",")]
    if "" in names or len(set(names)) < len(names):
        raise BadRequest(
            f'--policy "{text}" names a policy twice or has an empty name',
            "For example --policy odc,wfp3.",
        )
    return [*names]


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
        if option != "save" and (args.shake is not None or len(args.policies) > 1):
            raise BadRequest(
                f"--{option} is for one replay, but there are several",
                "Name one policy, and leave out --shake.",
            )
        if not Path(target).parent.is_dir():
            raise BadRequest(f"--{option} {target}: the folder does not exist", "Create it first.")
    if args.picture is not None:
        check_picture(Path(args.picture))
    if args.processes is not None and args.shake is None:
        raise BadRequest("--processes needs --shake", "For example --shake 16 --processes 4.")
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
