"""The output of an array: that of every task, each line labelled with its task."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from odcctl.ended import end_text
from odcctl.exits import DONE, REFUSED, Refused
from odcctl.follow import Patience, output
from odcctl.http.client import Client, Params
from odcctl.listing import fetch_jobs
from odcctl.text.complaints import describe
from odcctl.text.jobs import ENDED, job_id
from odcctl.text.render import counted, note

FIELDS = "id,array_job_id,array_task_id,array_tasks,array_progress,state,started_at,end_detail"

Job = dict[str, Any]


def tasks_of(client: Client, selector: str) -> list[Job] | None:
    """The tasks, if the selector names an array or several tasks; None if it names one job."""
    array, _, tasks = selector.partition("_")
    if tasks.isdecimal():
        return None
    found = fetch_jobs(client, {"job": selector, "ended": "true", "fields": FIELDS}).jobs
    if not any(job["array_job_id"] == int(array) for job in found):
        return None
    return sorted(found, key=lambda job: (job["array_task_id"] is None, job["array_task_id"] or 0))


def print_tasks(client: Client, tasks: Sequence[Job], params: Params) -> int:
    """Print the output of the tasks that have started, in the order of their numbers."""
    code = DONE
    for task in tasks:
        if task["started_at"] is None:
            continue
        label = f"{job_id(task)}: ".encode()
        try:
            pieces = output(client, str(task["id"]), params, Patience(), resumable=False)
            wrote = _print_labelled(pieces, label)
        except Refused as refused:
            note(describe(refused, f"output of {job_id(task)} not printed"))
            code = REFUSED
            continue
        if not wrote and task["state"] in ENDED and (text := end_text(task)):
            note(f"odcctl: job {job_id(task)} is {task['state']} and wrote nothing: {text}")
    progress = next((task["array_progress"] for task in tasks if task["array_progress"]), None)
    if progress and progress["pending"]:
        note(f"odcctl: {counted(progress['pending'], 'task')} of the array have not started")
    return code


def _print_labelled(pieces: Iterable[bytes], label: bytes) -> bool:
    """Whether there was any output."""
    out, rest, wrote = sys.stdout.buffer, b"", False
    for piece in pieces:
        wrote = True
        *lines, rest = (rest + piece).split(b"\n")
        out.write(b"".join(label + line + b"\n" for line in lines))
    if rest:
        out.write(label + rest + b"\n")
    out.flush()
    return wrote
