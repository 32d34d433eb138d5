"""A site's replays compared with what really happened: waits in all, and by user, account, size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from odcd.simulate.figures import percentile
from odcd.simulate.site.records import Site, SiteJob, Task
from odcd.simulate.site.starts import Done, Start, compared

NEAR_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One job or task that really started in the window. Times in seconds since its start.

    since_s: when it could start: after its submission, hold and begin time. starts_s: the starts in
    the replays, in their order.
    """

    job_id: int
    number: int | None
    user: str
    account: str
    size: str
    since_s: int
    real_s: int
    starts_s: tuple[int | None, ...]

    @property
    def real_wait_s(self) -> int:
        return max(0, self.real_s - self.since_s)

    def wait_s(self, replay: int) -> int:
        start_s = self.starts_s[replay]
        assert start_s is not None
        return max(0, start_s - self.since_s)


def matched(site: Site, replays: Sequence[Done]) -> list[Compared]:
    """The jobs that really started in the window, with their starts in the replays."""
    accounts = {row["id"]: row["name"] for row in site.tables["account"]}
    shapes = {row["id"]: row for row in site.tables["shape"]}
    found: list[dict[tuple[int, int | None], Start]] = [
        {(start.job_id, start.number): start for start in done.starts} for done in replays
    ]
    rows: list[Compared] = []
    for job, task in _started(site):
        starts = [one.get((job.id, task.number)) for one in found]
        assert task.first_start_s is not None
        rows.append(
            Compared(
                job_id=job.id, number=task.number, user=job.user, account=accounts[job.account_id],
                size=_size(shapes[job.shape_id]), since_s=max(job.submit_s, job.ready_s),
                real_s=task.first_start_s,
                starts_s=tuple(None if one is None else one.start_s for one in starts),
            )
        )  # fmt: skip
    return rows


def _started(site: Site) -> list[tuple[SiteJob, Task]]:
    return [(job, task) for job in site.jobs for task in job.tasks if compared(task)]


def _size(shape: dict[str, Any]) -> str:
    gpus, nodes = shape["gpus_per_node"], shape["node_count"]
    if not gpus:
        return "no GPU"
    return f"{gpus} GPU" + "s" * (gpus > 1) if nodes == 1 else f"{nodes}x{gpus} GPUs"


def comparison(site: Site, replays: Sequence[Done], scenario: str) -> dict[str, Any]:
    """The object that --json prints. replays: with the site's own settings, then as changed."""
    rows = matched(site, replays)
    both = [row for row in rows if None not in row.starts_s]
    names = ("replayed", "changed")[: len(replays)]
    waits = {"real": _waits([row.real_wait_s for row in both])}
    for at, name in enumerate(names):
        waits[name] = _waits([row.wait_s(at) for row in both])
    return {
        "start": site.start.isoformat(),
        "length_s": site.length_s,
        "nodes": len(site.tables["node"]),
        "gpus": sum(row["gpus"] for row in site.tables["node"]),
        "jobs": len(rows),
        "scenario": scenario,
        "closeness": _closeness([row for row in rows if row.starts_s[0] is not None]),
        "compared": len(both),
        "waits": waits,
        "not_started": {
            name: sum(1 for row in rows if row.starts_s[at] is None)
            for at, name in enumerate(names)
        },
        "refused": _refused(site, replays[-1]),
        "preempted": {
            "real": sum(task.preempted for job in site.jobs for task in job.tasks),
            **{
                name: sum(start.preempted for start in done.starts)
                for name, done in zip(names, replays, strict=True)
            },
        },
        "left_out": {
            "never_ready": site.left_out.never_ready,
            "unstarted_tasks": site.left_out.unstarted_tasks,
        },
        "by_user": _groups(both, names, lambda row: row.user),
        "by_account": _groups(both, names, lambda row: row.account),
        "by_size": _groups(both, names, lambda row: row.size),
    }


def _closeness(rows: Sequence[Compared]) -> dict[str, float | None]:
    """How far the starts of the replay with the site's own settings are from the real ones."""
    errors = [abs(start_s - row.real_s) for row in rows if (start_s := row.starts_s[0]) is not None]
    if not errors:
        return dict.fromkeys(("median_s", "p95_s", "within_60_s"))
    return {
        "median_s": median(errors),
        "p95_s": percentile(errors, 0.95),
        "within_60_s": round(fmean(error <= NEAR_S for error in errors), 4),
    }


def _waits(waits: Sequence[int]) -> dict[str, float | None]:
    if not waits:
        return dict.fromkeys(("mean_s", "median_s", "p95_s", "max_s"))
    return {
        "mean_s": round(fmean(waits), 1),
        "median_s": median(waits),
        "p95_s": percentile(waits, 0.95),
        "max_s": max(waits),
    }


def _groups(
    rows: Sequence[Compared], names: Sequence[str], key: Callable[[Compared], str]
) -> list[dict[str, Any]]:
    """The mean waits of each group, and how much longer the last replay's is than the real one."""
    groups: defaultdict[str, list[Compared]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    found: list[dict[str, Any]] = []
    for name, members in groups.items():
        real = fmean(row.real_wait_s for row in members)
        means = [fmean(row.wait_s(at) for row in members) for at in range(len(names))]
        found.append(
            {
                "name": name,
                "jobs": len(members),
                "real_s": round(real, 1),
                **{f"{one}_s": round(mean, 1) for one, mean in zip(names, means, strict=True)},
                "difference_s": round(means[-1] - real, 1),
            }
        )
    found.sort(key=lambda one: (-one["jobs"], one["name"]))
    return found


def _refused(site: Site, done: Done) -> list[dict[str, Any]]:
    """The jobs that no node of the replay can run, by reason."""
    counts: defaultdict[str, int] = defaultdict(int)
    for job in site.jobs:
        if job.shape_id in done.refused:
            counts[done.refused[job.shape_id]] += len(job.tasks)
    return [{"jobs": counts[reason], "reason": reason} for reason in sorted(counts)]
