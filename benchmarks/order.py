"""Judge a candidate for the order of policy `odc` against the default, in shaken replays:
python -m benchmarks.order TRACE --cluster 100x1 --shake 16.

The candidate differs in three parts, each of which --parts can leave out:

- score: (1 + 2 fair) * ((wait + 4 h) * (s / max(limit, 15 min) + 1 / 1 day) + (wait / 2 days)^2)
  with s = (16 * size / capacity)^(-1/4), between 0.8 and 2;
- backfill: candidates for backfill in the order of their predicted run times instead of limits.

It is loaded over the scheduler's functions in the database of the replay, so the product's own
passes decide. docs/concepts/policies/odc.md has the result.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from odcd.database.schema import sql_folder
from odcd.simulate import output
from odcd.simulate.apart import available_cores, run_apart
from odcd.simulate.cluster import Cluster, parse_cluster
from odcd.simulate.figures import figures
from odcd.simulate.outcomes import Replayed
from odcd.simulate.policy import Policy
from odcd.simulate.progress import ReplayProgress
from odcd.simulate.replay import Sources, read_sources, replay
from odcd.simulate.server import in_private_database
from odcd.simulate.shake import shaken, summaries
from odcd.simulate.trace import Workload, replayable
from odcd.simulate.workloads import read_trace

PLAN = "functions/scheduler/plan"
CALLS = (
    ("_plan_slice.sql", "c.backfill, c.limit_s,",
     "c.backfill, case when p_backfill then simulate.p50(c.uid, c.shape_id, c.limit_s) "
     "else c.limit_s end,"),
    ("_plan_more.sql", "p_backfill_order, p_limit_s, p_size",
     "p_backfill_order, case when p_backfill then simulate.p50(p_uid, p_shape_id, p_limit_s) "
     "else p_limit_s end, p_size"),
)  # fmt: skip
"""The two calls of _rank_job, with the run time that orders candidates for backfill."""
END_OF_FACTS = "    if p_requests is not null then"


def candidate(sources: Sources, cluster: Cluster, parts: set[str]) -> Sources:
    """The SQL of a replay under the candidate."""
    text = Path(__file__).with_name("candidate.sql").read_text("utf-8")
    prediction, score = text.split("\n\n", 1)
    step = sources.step
    if "backfill" in parts:
        step = _swap(step, END_OF_FACTS, f"    perform _fold_run_times();\n{END_OF_FACTS}")
        step += prediction
        for name, call, changed in CALLS:
            function = (sql_folder() / PLAN / name).read_text("utf-8")
            step += _swap(function, call, changed)
    if "score" in parts:
        step += score.replace("CAPACITY", f"{cluster.gpus}::float8")
    return replace(sources, step=step)


def _swap(text: str, old: str, new: str) -> str:
    if text.count(old) != 1:
        raise ValueError(f"the scheduler's functions have changed: no single {old!r}")
    return text.replace(old, new)


def _run(sources: Sources, workload: Workload, cluster: Cluster, seed: int, name: str) -> Any:
    moved = shaken(workload, seed)
    work = partial(
        replay, sources=sources, workload=moved, cluster=cluster, policy=Policy(name="odc"),
        estimates="user", predict=False, progress=lambda done, total: None,
    )  # fmt: skip
    done = in_private_database(work, Replayed)
    return {**figures(done, moved, cluster), "policy": name}


def main() -> None:
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.order")
    arguments.add_argument("trace")
    arguments.add_argument("--cluster", required=True)
    arguments.add_argument("--shake", type=int, default=16)
    arguments.add_argument("--jobs", type=int)
    arguments.add_argument("--parts", default="score,backfill")
    arguments.add_argument("--processes", type=int, default=available_cores())
    arguments.add_argument("--json", type=Path)
    asked = arguments.parse_args()
    trace, cluster = read_trace(asked.trace), parse_cluster(asked.cluster)
    workload = replayable(trace.name, trace.jobs, cluster)
    if asked.jobs:
        workload = workload.first(asked.jobs)
    plain = read_sources()
    changed = candidate(plain, cluster, set(asked.parts.split(",")))
    progress = ReplayProgress("runs", sys.stderr)
    seeds = range(1, asked.shake + 1)
    # A seed's two runs one after the other: both meet the same load of this machine.
    works = [
        partial(_run, sources, workload, cluster, seed, name)
        for seed in seeds
        for name, sources in (("odc", plain), ("candidate", changed))
    ]
    with progress:
        results = run_apart(works, asked.processes, progress.show)
    summed = summaries([*results[::2], *results[1::2]], asked.shake, 2)
    if asked.json is not None:
        asked.json.write_text(json.dumps(summed), "utf-8")
    print(output.shaken_table(summed))


if __name__ == "__main__":
    main()
