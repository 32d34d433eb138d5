"""Workloads without a trace: widths, run times and arrivals by the model of Lublin and Feitelson,
plus users and their estimates, which it omits.

Users repeat themselves: their next job usually has the same width, name and limit, and about the
same run time. Limits are round: the run time, divided by the used share of the limit (uniform),
rounded up to the next value of a menu. One job in ten exceeds a limit that is too low. On nodes
with several GPUs, widths are powers of two within a node and whole nodes above.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from itertools import accumulate
from random import Random

from odcd.errors import BadRequest
from odcd.simulate import lublin
from odcd.simulate.cluster import Cluster
from odcd.simulate.trace import TraceJob

MENU_S = tuple(
    [60 * m for m in (5, 10, 15, 30)]
    + [3600 * h for h in (1, 2, 3, 4, 6, 8, 12, 18)]
    + [86_400 * d for d in (1, 2, 3, 5, 7, 14, 30)]
)
REPEATS = 0.75
SPREAD = 0.4
"""For run times within a series: the standard deviation of their logarithm."""
TOO_LOW = 0.1
LEAST_USED = 0.05
MAX_JOBS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """load: GPU-seconds requested, divided by those that the machine has until the last submit."""

    jobs: int = 5000
    load: float = 0.8
    users: int = 50
    seed: int = 1

    def __str__(self) -> str:
        return f"lublin,jobs={self.jobs},load={self.load:g},users={self.users},seed={self.seed}"


def parse_recipe(text: str) -> Recipe:
    """lublin,jobs=5000,load=0.8,users=50,seed=1; all but the first word may be left out.

    Raises BadRequest.
    """
    model, *rest = text.split(",")
    hint = f"Write it like {Recipe()}; these are the defaults."
    if model != "lublin":
        raise BadRequest(f'workload model "{model}" does not exist', hint)
    recipe = Recipe()
    known: set[str] = set()
    for part in rest:
        name, equals, value = part.partition("=")
        if name not in ("jobs", "load", "users", "seed") or not equals or name in known:
            raise BadRequest(f'"{part}" is not part of a workload description', hint)
        known.add(name)
        try:
            number = float(value) if name == "load" else int(value)
        except ValueError:
            raise BadRequest(f'{name} is not a number: "{value}"', hint) from None
        recipe = replace(recipe, **{name: number})
    if not (
        1 <= recipe.jobs <= MAX_JOBS and 0.01 <= recipe.load <= 10 and 1 <= recipe.users <= 100_000
    ):
        raise BadRequest(
            f"{recipe} is out of range",
            f"Use jobs from 1 to {MAX_JOBS}, load from 0.01 to 10, users from 1 to 100000.",
        )
    return recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class _Series:
    name: str
    gpus: int
    log_run: float
    used: float
    too_low: bool


def generate(recipe: Recipe, cluster: Cluster) -> list[TraceJob]:
    """Returns the same jobs for the same recipe and cluster, in order of submission."""
    random = Random(recipe.seed)
    arrivals = lublin.Arrivals()
    own = arrivals.draw(random, recipe.jobs)
    chosen = list(accumulate(1 / (rank + 1) for rank in range(recipe.users)))
    series: dict[int, _Series] = {}
    begun: dict[int, int] = {}
    jobs: list[TraceJob] = []
    for _ in range(recipe.jobs):
        user = bisect_right(chosen, random.random() * chosen[-1])
        if user not in series or random.random() >= REPEATS:
            begun[user] = begun.get(user, 0) + 1
            series[user] = _begin(random, cluster, f"app{begun[user]}")
        jobs.append(_job(random, series[user], f"u{user + 1}"))
    # Stretch the time to get the requested load; days remain days.
    area = sum(job.gpus * job.run_s for job in jobs)
    last_s = area / (cluster.gpus * recipe.load)
    stretch = arrivals.own(last_s) / own[-1] if own[-1] else 0.0
    return [
        replace(job, submit_s=round(arrivals.clock(stretch * at)))
        for job, at in zip(jobs, own, strict=True)
    ]


def _begin(random: Random, cluster: Cluster, name: str) -> _Series:
    gpus = lublin.width(random, cluster.gpus)
    if cluster.gpus_per_node > 1:
        gpus = _on_nodes(gpus, cluster)
    return _Series(
        name=name,
        gpus=gpus,
        log_run=math.log(lublin.run_s(random, gpus)),
        used=random.uniform(LEAST_USED, 1.0),
        too_low=random.random() < TOO_LOW,
    )


def _on_nodes(gpus: int, cluster: Cluster) -> int:
    if gpus > cluster.gpus_per_node:
        return min(cluster.nodes, round(gpus / cluster.gpus_per_node)) * cluster.gpus_per_node
    return min(cluster.gpus_per_node, 2 ** round(math.log2(gpus)))


def _job(random: Random, series: _Series, user: str) -> TraceJob:
    run_s = max(1, round(math.exp(series.log_run + random.gauss(0.0, SPREAD))))
    # The limit belongs to the series, because the user does not know this run's length.
    sampled_s = math.exp(series.log_run) / series.used
    at = min(bisect_left(MENU_S, sampled_s), len(MENU_S) - 1)
    if series.too_low:
        at = max(0, bisect_left(MENU_S, run_s) - 1)
    limit_s = MENU_S[at]
    return TraceJob(
        submit_s=0,
        run_s=min(run_s, limit_s),
        gpus=series.gpus,
        limit_s=limit_s,
        user=user,
        name=series.name,
    )
