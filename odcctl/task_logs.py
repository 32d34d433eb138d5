"""The output of an array: that of every task, each line labelled with its task."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from odcctl.ended import end_text
from odcctl.exits import DONE, REFUSED, Refused
from odcctl.follow import Patience, output
from odcctl.http.client import Client, Params, quote
from odcctl.listing import fetch_jobs
from odcctl.resumed import ByLabel, names_one
from odcctl.text.complaints import describe
from odcctl.text.jobs import ENDED, job_id
from odcctl.text.render import counted, note

FIELDS = "id,array_job_id,array_task_id,array_tasks,array_progress,state,started_at,end_detail"

Job = dict[str, Any]


def tasks_of(client: Client, selector: str) -> list[Job] | None:
    """The tasks, if the selector names an array or several tasks; None if it names one job."""
    if names_one(selector):
        return None
    array = selector.partition("_")[0]
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
            pieces = output(client, job_id(task), params, Patience(), resumed=None)
            wrote = _print_labelled(pieces, label)
        except Refused as refused:
            note(describe(refused, f"output of {job_id(task)} not printed"))
            code = REFUSED
            continue
        if not wrote:
            _explain_silence(task)
    progress = next((task["array_progress"] for task in tasks if task["array_progress"]), None)
    if progress and progress["pending"]:
        note(f"odcctl: {counted(progress['pending'], 'task')} of the array have not started")
    return code


def is_array(client: Client, selector: str) -> bool:
    """Whether the selector names an array or several tasks."""
    if names_one(selector):
        return False
    found = client.get(f"/v1/jobs/{quote(selector)}", {"limit": 1}).json()["jobs"]
    array = selector.partition("_")[0]
    return any(str(job["array_job_id"]) == array for job in found)


def follow_tasks(client: Client, selector: str, pieces: Iterable[bytes], resumed: ByLabel) -> int:
    """Print the labelled output of all tasks as it arrives. resumed: what the pieces went
    through."""
    for piece in pieces:
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    wrote = {label.partition(b":")[0].decode() for label in resumed.seen}
    for task in tasks_of(client, selector) or ():
        if job_id(task) not in wrote:
            _explain_silence(task)
    return DONE


def _explain_silence(task: Job) -> None:
    """Print why a task that wrote nothing ended, if that is known."""
    if task["started_at"] and task["state"] in ENDED and (text := end_text(task)):
        note(f"odcctl: job {job_id(task)} is {task['state']} and wrote nothing: {text}")


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
