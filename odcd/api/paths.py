"""Where the output of started jobs is: what Job.stdout and Job.stderr tell of a single job."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from odcd.clock import Turns
from odcd.executor.output import PathTooLong, default_stdout, expand
from odcd.stores.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    """The first member of a job, as file patterns see it."""

    job_id: int
    array_job_id: int | None
    array_task_id: int | None
    name: str
    user: str
    work_dir: str
    node: str
    rank: int = 0


async def with_paths(jobs: str, store: Store) -> str:
    """The same JSON array of jobs; of those that have started, patterns became rank 0's paths."""
    found: list[dict[str, Any]] = json.loads(jobs)
    started = {job["id"]: job for job in found if job["started_at"] and job["node_names"]}
    if not started:
        return jobs
    turns = Turns()
    for job_id in started.keys() - await store.without_files(list(started)):
        _expand(started[job_id])
        if turns.are_due():
            await turns.take()
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))


def _expand(job: dict[str, Any]) -> None:
    names = _Names(
        job_id=job["id"],
        array_job_id=job["array_job_id"],
        array_task_id=job["array_task_id"],
        name=job["name"],
        user=job["user"],
        work_dir=job["work_dir"],
        node=job["node_names"][0],
    )
    # A path that is too long was never opened: show the pattern.
    with suppress(PathTooLong):
        job["stdout"] = expand(job["stdout"] or default_stdout(names), names, names)
    with suppress(PathTooLong):
        job["stderr"] = job["stderr"] and expand(job["stderr"], names, names)
