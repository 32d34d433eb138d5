"""How the jobs of a site enter a replay."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from odcd.simulate.site.events import Submission
from odcd.simulate.site.records import SiteJob

DIGEST = hashlib.sha256(b"#!/bin/sh").hexdigest()


def submissions(jobs: Iterable[SiteJob], left_out: Collection[int]) -> list[Submission]:
    """The submissions in order. left_out: shapes that no node can run.

    Tasks that ran when the window began are jobs of their own: they start on their own nodes.
    """
    kept = [job for job in jobs if job.shape_id not in left_out]
    next_id = max((job.id for job in kept), default=0) + 1
    found: list[Submission] = []
    for job in kept:
        rest = [task for task in job.tasks if not (task.spans and task.spans[0].start_s < 0)]
        for task in job.tasks:
            if task.spans and task.spans[0].start_s < 0:
                own = task.number is None
                start_s = task.spans[0].start_s
                found.append(
                    Submission(
                        id=job.id if own else next_id, job=job, tasks=(task,), pinned_s=start_s
                    )
                )
                next_id += not own
        if rest:
            found.append(Submission(id=job.id, job=job, tasks=tuple(rest)))
    found.sort(key=lambda one: (one.job.submit_s, one.id))
    return found


def begin_s(submission: Submission) -> int:
    """When the job may start, apart from its dependencies: never before the window began."""
    if submission.pinned_s is not None:
        return submission.pinned_s
    return max(submission.job.ready_s, 0 if submission.job.submit_s < 0 else -(1 << 40))


def request(submission: Submission, start: datetime, present: Collection[int]) -> dict[str, Any]:
    """The job as odc.submit_jobs takes it. present: jobs of the replay, by their own id."""
    job = submission.job
    job_request: dict[str, Any] = {
        "name": job.name, "script_digest": DIGEST, "environment_digest": DIGEST, "work_dir": "/",
        "nice": job.nice, "requeue": job.requeue,
    }  # fmt: skip
    ready_s = begin_s(submission)
    if ready_s > job.submit_s:
        job_request["begin_at"] = (start + timedelta(seconds=ready_s)).isoformat()
    if submission.is_array:
        numbers = [task.number for task in submission.tasks if task.number is not None]
        job_request["array"] = {
            "tasks": "{" + ",".join(f"[{number},{number + 1})" for number in numbers) + "}",
            "count": len(numbers), "min": min(numbers), "max": max(numbers), "step": 1,
            "throttle": job.throttle,
        }  # fmt: skip
    terms = [
        {
            "kind": term.kind, "target_id": term.target_id, "target_task": term.target_task,
            "delay_s": term.delay_s,
        }
        for term in job.terms
        if term.target_id is None or term.target_id in present
    ]  # fmt: skip
    # A task that ran already has met its conditions; so has a job of which one was met before.
    if terms and submission.pinned_s is None and not (job.any_term and len(terms) < len(job.terms)):
        job_request["dependency"] = {"text": "replayed", "any": job.any_term, "terms": terms}
    return job_request


def columns(
    group: Sequence[Submission], shapes: Sequence[int], start: datetime, present: Collection[int]
) -> tuple[Any, ...]:
    """The arguments of simulate.submit, after the time. shapes: with the pins."""
    heads = [
        json.dumps({"user": one.job.user, "uid": one.job.uid, "gid": one.job.uid, "operator": True})
        for one in group
    ]
    return (
        [json.dumps(request(one, start, present)) for one in group],
        heads,
        [one.id for one in group],
        list(shapes),
        [one.job.account_id for one in group],
        [one.job.qos_id for one in group],
        [one.job.limit_s for one in group],
        DIGEST,
    )
