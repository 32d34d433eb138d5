"""Steps in the lists of squeue, sacct and scontrol, and their ends by scancel."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from odcd.api.slurm.fetch import MAX_ROWS
from odcd.api.slurm.remote import Finished, Remote
from odcd.api.slurm.srun import steps_of
from odcd.errors import BadRequest, NotOwner, UnknownJob
from odcd.slurm.columns import values
from odcd.slurm.columns.used import Used
from odcd.slurm.columns.values import JobRow
from odcd.slurm.commands.srun import KILL_WAIT_S
from odcd.slurm.commands.usage import Usage, fail
from odcd.slurm.hostlists import compress_hosts
from odcd.slurm.lists import is_number, parse_selector

_JOB = re.compile(r"[0-9]{1,18}(?:_[0-9]{1,10})?")
STEP_FIELDS = frozenset({
    "id", "array_job_id", "array_task_id", "partition", "user", "started_at", "node_names", "asked",
})  # fmt: skip
"""The fields of jobs that list_live reads."""
_RUNNING = ("RUNNING", "COMPLETING", "SUSPENDED")
_HEADER = f"{'STEPID':>15} {'NAME':>8} {'PARTITION':>9} {'USER':>8} {'TIME':>9} NODELIST"


async def steps_of_jobs(remote: Remote, rows: Sequence[JobRow]) -> dict[int, list[JobRow]]:
    """The steps of these jobs as rows of sacct, by job."""
    jobs = {row.id: row for row in rows if row.started_at is not None}
    found: dict[int, list[JobRow]] = {}
    if not jobs:
        return found
    turns = remote.call.turns()
    for step in await _some(remote, list(jobs)):
        if turns.are_due():
            await turns.take()
        if not step["is_last_start"]:
            continue
        job = jobs[step["job_id"]]
        code, number = _exit(step)
        found.setdefault(job.id, []).append(replace(
            job, step=str(step["step"]), step_name=step["name"], step_tasks=sum(step["tasks"]),
            state=step["state"], started_at=step["started_at"], ended_at=step["ended_at"],
            exit_code=code, signal=number, node_names=step["node_names"],
            node_count=len(step["node_names"]),
            cpus_per_node=-(-sum(step["cpus"]) // len(step["node_names"])),
            gpus=sum(step["gpus"]),
            step_used=Used.of(step["used"]) if step["used"] else None,
        ))  # fmt: skip
    return found


async def _some(
    remote: Remote, job_ids: Sequence[int] | None, *, live: bool = False
) -> list[dict[str, Any]]:
    """Raises Usage if there are too many: a job may have 40,000."""
    found = await remote.api.store.steps.list(job_ids, live=live, limit=MAX_ROWS + 1)
    if len(found) > MAX_ROWS:
        raise fail(remote.name, f"the jobs have more than {MAX_ROWS} steps: name fewer jobs")
    return found


def _exit(step: dict[str, Any]) -> tuple[int | None, int | None]:
    """The exit code and the signal of the task that decided srun's exit code."""
    code = step["exit_code"]
    for status in map(int, step["statuses"] or {}):
        if os.WIFSIGNALED(status) and 128 + os.WTERMSIG(status) == code:
            return 0, os.WTERMSIG(status)
    return code, None


async def list_live(remote: Remote, rows: Sequence[JobRow], *, header: bool) -> Finished:
    """squeue -s: the running steps of these jobs, and their batch scripts."""
    running = {row.id: row for row in rows if row.state in _RUNNING and row.started_at is not None}
    steps: dict[int, list[dict[str, Any]]] = {}
    for step in await _some(remote, list(running), live=True) if running else []:
        steps.setdefault(step["job_id"], []).append(step)

    def lines() -> Iterator[str]:
        if header:
            yield _HEADER
        for job in running.values():
            for step in steps.get(job.id, []):
                yield _line(job, str(step["step"]), step["name"], step["node_names"],
                            _age_s(remote, step["started_at"]))  # fmt: skip
            if has_script(job):
                yield _line(job, "batch", "batch", job.node_names[:1], values.elapsed_s(job))

    return Finished(out=await remote.lines(lines()))


def has_script(job: JobRow) -> bool:
    """Not those of salloc, and of srun outside a job."""
    line = (job.asked and job.asked.submit_line) or ""
    return line.partition(" ")[0] not in ("salloc", "srun")


def _line(job: JobRow, step: str, name: str, nodes: Sequence[str], age_s: float) -> str:
    one = job.id if job.array_task_id is None else f"{job.array_job_id}_{job.array_task_id}"
    id_, passed = f"{one}.{step}", values.clock(max(0, int(age_s)))
    return (
        f"{id_:>15.15} {name:>8.8} {job.partition or '':>9.9} {job.user:>8.8} {passed:>9.9} "
        f"{compress_hosts(nodes)}"
    )


def _age_s(remote: Remote, since: datetime) -> float:
    return (remote.api.clock.now() - since).total_seconds()


async def show_step(remote: Remote, words: Sequence[str], one_line: bool) -> Finished:
    """scontrol show step [JOB[.STEP]]: running steps."""
    job, _, number = (words[0] if words else "").partition(".")
    if job and not (is_number(job, 18) and (is_number(number) or not number)):
        raise Usage(f"slurm_get_job_steps error: Invalid job id specified: {words[0][:40]}\n")
    rows = await _some(remote, [int(job)] if job else None, live=True)
    rows = [row for row in rows if not number or row["step"] == int(number)]
    if not rows:
        raise Usage(f"Job step {words[0]} not found\n" if words else "No job steps in the system\n")
    zone = remote.now().tzinfo

    def text(row: dict[str, Any]) -> str:
        started = row["started_at"].astimezone(zone).strftime("%Y-%m-%dT%H:%M:%S")
        lines = [
            f"StepId={row['job_id']}.{row['step']} UserId={row['uid']} StartTime={started} "
            "TimeLimit=UNLIMITED",
            f"State=RUNNING Partition={row['partition']} "
            f"NodeList={compress_hosts(row['node_names'])}",
            f"Nodes={len(row['node_names'])} CPUs={sum(row['cpus'])} Tasks={sum(row['tasks'])} "
            f"Name={row['name'].replace(' ', '_')} Network=(null)",
        ]  # fmt: skip
        return (" " if one_line else "\n   ").join(lines) + ("" if one_line else "\n")

    return Finished(out=await remote.lines(map(text, rows)))


def is_step(text: str) -> bool:
    job, _, step = text.rpartition(".")
    return _JOB.fullmatch(job) is not None and is_number(step)


async def cancel_step(remote: Remote, text: str, signal: int | None) -> str | None:
    """Ends a step, or sends it a signal; returns the reason if that is refused. An unknown step, or
    one that has ended, is no error."""
    job, _, number = text.rpartition(".")
    try:
        job_id = await remote.api.own_job(remote.who, parse_selector(job))
    except NotOwner:
        return "Access/permission denied"
    except (UnknownJob, BadRequest):
        return None
    steps = steps_of(remote.api.executor(), "scancel")
    for row in await remote.api.store.steps.list([job_id], live=True):
        if row["step"] == int(number):
            key = job_id, row["attempt"], row["step"]
            if signal is None:
                await steps.stop(key, 15, KILL_WAIT_S)
            else:
                await steps.signal(key, signal)
    return None
