"""Rows of arrays: all live tasks as one row, or each pending task as a row of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from odcctl.text.jobs import LIVE

MAX_EXPANDED = 10_000
"""Pending tasks of one array; the others stay one row."""

Job = Mapping[str, Any]


def grouped(jobs: Iterable[Job]) -> list[Job]:
    """The live tasks of each array as one job, where the first of them stands.

    The row shows the state of the first task, which runs if any task runs, and the reason and the
    planned start of the pending ones.
    """
    rows: list[Job] = []
    places: dict[int, int] = {}
    for job in jobs:
        array = job.get("array_job_id")
        if array is None or job["state"] not in LIVE or not job.get("array_progress"):
            rows.append(job)
        elif array not in places:
            places[array] = len(rows)
            rows.append(_as_array(job))
        elif job["state"] == "PENDING" and not rows[places[array]].get("reason"):
            pending = {key: job[key] for key in ("reason", "why", "planned_start_at") if key in job}
            rows[places[array]] = {**rows[places[array]], **pending}
    return rows


def _as_array(job: Job) -> Job:
    return {**job, "array_task_id": None, "array_tasks": None, "whole_array": True}


def progress(job: Job) -> str:
    """3 of 10 done, 2 running, 1 failed; empty unless the row is a whole array."""
    if not job.get("whole_array"):
        return ""
    counts = job["array_progress"]
    parts = [f"{counts['done']} of {counts['tasks']} done"]
    parts += [f"{counts[word]} {word}" for word in ("running", "failed") if counts[word]]
    return ", ".join(parts)


def expanded(jobs: Iterable[Job]) -> Iterator[Job]:
    """A row for each pending task of an array."""
    for job in jobs:
        if job["state"] == "PENDING" and job.get("array_tasks"):
            yield from _each_task(job)
        else:
            yield job


def _each_task(job: Job) -> Iterator[Job]:
    """The tasks of 3-9,12%2; ranges that the daemon left out ("...") stay one row."""
    ranges, _, throttle = job["array_tasks"].partition("%")
    left = MAX_EXPANDED
    parts = ranges.split(",")
    for at, part in enumerate(parts):
        first, _, last = part.partition("-")
        tasks = range(int(first), int(last or first) + 1) if first.isdecimal() else range(0)
        if not tasks or len(tasks) > left:
            rest = ",".join(parts[at:]) + (f"%{throttle}" if throttle else "")
            yield {**job, "array_tasks": rest}
            return
        left -= len(tasks)
        for task in tasks:
            yield {**job, "array_task_id": task, "array_tasks": None}
