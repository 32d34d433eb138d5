"""Why a job waits, or ended as it did, and where else its output is."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from odcctl.http.client import Client, quote
from odcctl.text.jobs import ENDED, job_id, place
from odcctl.text.render import clean, duration, local_moments, note

MAX_EXPLAINED = 10
"""A command that ends with many failed jobs explains only the first."""


def end_text(job: Mapping[str, Any]) -> str:
    """The executor's report about the end; empty if there is none."""
    return local_moments(clean(job.get("end_detail") or ""))


def exit_text(job: Mapping[str, Any]) -> str:
    """How the script of a failed job ended; empty if the job did not fail, or has no exit code."""
    if job["state"] == "TIMEOUT":
        return f"it reached its time limit of {duration(job['time_limit_s'])}"
    if job["state"] != "FAILED" or job.get("exit_code") is None:
        return ""
    if job.get("signal"):
        return f"signal {job['signal']} ended its script"
    return f"its script exited with code {job['exit_code']}"


def find_ends(client: Client, selector: str) -> list[str]:
    """How this job or this array's tasks ended, each text once: the executor's report, else the
    exit code."""
    found = client.get(f"/v1/jobs/{quote(selector)}").json()["jobs"]
    tasks: dict[str, list[str]] = {}
    for job in sorted(found, key=lambda job: job.get("array_task_id") or 0):
        if text := end_text(job) or exit_text(job):
            tasks.setdefault(text, []).append(job_id(job))
    if len(found) == 1:
        return list(tasks)
    lines = [
        f"{ids[0]}{f' and {len(ids) - 1} more' if len(ids) > 1 else ''}: {text}"
        for text, ids in tasks.items()
    ]
    rest = len(lines) - MAX_EXPLAINED
    return lines[:MAX_EXPLAINED] + ([f"and {rest} other causes"] if rest > 0 else [])


def explain_ends(client: Client, ended: Iterable[Mapping[str, Any]]) -> None:
    """Print on standard error why jobs failed, unless they have an exit code."""
    failed = [job for job in ended if job["state"] != "COMPLETED" and job["exit_code"] is None]
    for one in failed[:MAX_EXPLAINED]:
        job = _job(client, str(one["id"]))
        if job is not None and (text := end_text(job)):
            note(f"odcctl: job {job_id(job)} is {job['state']}: {text}")
    if len(failed) > MAX_EXPLAINED:
        note(f"odcctl: {len(failed) - MAX_EXPLAINED} more have failed; `odcctl show ID` says why")


def explain_silence(client: Client, selector: str, *, stderr: bool) -> None:
    """Print on standard error why a job has no output, if it has ended."""
    job = _job(client, selector)
    if job is None or job["state"] not in ENDED:
        return
    stream = "standard error" if stderr else "standard output"
    text = end_text(job)
    note(
        f"odcctl: job {job_id(job)} is {job['state']} and wrote nothing to {stream}"
        + (f": {text}" if text else "")
    )
    if not stderr and job.get("stderr"):
        note(f"  Its standard error is in {clean(job['stderr'])}: odcctl logs {selector} --stderr")


def explain_wait(client: Client, selector: str) -> None:
    """Print on standard error why nothing of the selector has started, if that is so."""
    found = client.get(f"/v1/jobs/{quote(selector)}").json()["jobs"]
    if found and all(job["state"] == "PENDING" for job in found):
        report_wait(selector, found[0])


def report_wait(selector: str, job: Mapping[str, Any]) -> None:
    why = place(job, time.time())
    note(f"odcctl: job {selector} waits" + (f": {why}" if why else ""))


def _job(client: Client, selector: str) -> Mapping[str, Any] | None:
    """The job of the selector; None unless it is a single one."""
    found = client.get(f"/v1/jobs/{quote(selector)}").json()["jobs"]
    return found[0] if len(found) == 1 else None
