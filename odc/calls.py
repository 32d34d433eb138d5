"""The operations that the client uses, and the request for each: shared by both clients.

Each id is the operationId in /openapi.json.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

import msgspec

from odc import models
from odc.arguments import check_job, check_jobs
from odc.errors import JobFailed, Refused
from odc.retries import Repeats
from odcctl.http.client import ANSWER_TIMEOUT_S, quote
from odcctl.http.client import target as url_of
from odcctl.resumed import ByLabel, ByPosition

LONG_POLL_S = 300.0
POLL_SLACK_S = 60.0
SETTLE_S = 5.0
"""How long one request waits for the end of a job whose output has ended."""
PAGE_JOBS = 1000

LAGGED = "lagged"

T = TypeVar("T")
Selector = int | str
"""A job 7, an array's task "7_3", or several "7_[1-4]"."""
Selectors = Selector | Iterable[Selector]
Some = str | Sequence[str] | None
"""A filter: one value, several, or any."""
Words = Sequence[str]
Value = str | int | float | bool | timedelta | os.PathLike[str] | Sequence[str | int] | None
"""Of an option: True: the option alone; None and False: without it; a list: joined by commas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(Generic[T]):
    id: str
    method: str = "GET"
    path: str
    answer: type[T]
    query: tuple[str, ...] = ()
    body: tuple[str, ...] = ()
    """The fields of a JSON body."""
    repeats: Repeats = "safe"
    keyed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Generic[T]):
    operation: Operation[T]
    target: str
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    silence_s: float = ANSWER_TIMEOUT_S
    waits: bool = False
    """Whether it waits for events: then a longer outage is endured."""


_FILTERS = ("user", "name", "partition", "account", "qos", "state")
SUBMIT_ARGV = Operation(
    id="submit_argv", method="POST", path="/v1/submit-argv", answer=models.SubmittedArgv,
    body=("command", "argv", "work_dir", "environment", "umask", "script", "script_path",
          "submit_host"),
    keyed=True,
)  # fmt: skip
TEST_ARGV = Operation(
    id="submit_argv", method="POST", path="/v1/submit-argv", answer=models.TestOnly,
    body=SUBMIT_ARGV.body, keyed=True,
)  # fmt: skip
SUBMIT_JOB = Operation(
    id="submit_job", method="POST", path="/v1/jobs", answer=models.SubmittedJob,
    body=models.JobSpec.__struct_fields__, keyed=True,
)  # fmt: skip
SUBMIT_JOBS = Operation(
    id="submit_jobs", method="POST", path="/v1/jobs/batch", answer=models.SubmittedBatch,
    body=("jobs",), keyed=True,
)  # fmt: skip
LIST_JOBS = Operation(
    id="list_jobs", path="/v1/jobs", answer=models.JobList,
    query=("job", *_FILTERS, "ended", "ended_since", "ended_before", "limit", "cursor"),
)  # fmt: skip
GET_JOB = Operation(
    id="get_job", path="/v1/jobs/{id}", answer=models.Jobs, query=("limit", "cursor")
)
WAIT_JOB = Operation(id="get_job", path="/v1/jobs/{id}", answer=models.Ended, query=("wait",))
EXPLAIN_JOB = Operation(id="explain_job", path="/v1/jobs/{id}/why", answer=models.Explanation)
GET_SCRIPT = Operation(id="get_job_script", path="/v1/jobs/{id}/script", answer=bytes)
GET_LOGS = Operation(
    id="get_job_logs", path="/v1/jobs/{id}/logs", answer=bytes, query=("stream", "follow", "rank")
)
FOLLOW_EVENTS = Operation(
    id="follow_events", path="/v1/events", answer=models.Event, query=("after", "follow")
)
FOLLOW_JOB_EVENTS = Operation(
    id="follow_job_events", path="/v1/jobs/{id}/events", answer=models.Event,
    query=("after", "follow"),
)  # fmt: skip
CANCEL_JOBS = Operation(
    id="cancel_jobs", method="POST", path="/v1/jobs/cancel", answer=models.Outcomes,
    body=("ids", *_FILTERS),
)  # fmt: skip
SIGNAL_JOBS = Operation(
    id="cancel_jobs", method="POST", path="/v1/jobs/cancel", answer=models.Outcomes,
    body=("ids", "signal"), repeats="once",
)  # fmt: skip
HOLD_JOBS = Operation(
    id="hold_jobs", method="POST", path="/v1/jobs/hold", answer=models.Outcomes, body=("ids",)
)
RELEASE_JOBS = Operation(
    id="release_jobs", method="POST", path="/v1/jobs/release", answer=models.Outcomes,
    body=("ids",),
)  # fmt: skip
REQUEUE_JOBS = Operation(
    id="requeue_jobs", method="POST", path="/v1/jobs/requeue", answer=models.Outcomes,
    body=("ids", "hold"), repeats="once",
)  # fmt: skip
LIST_NODES = Operation(id="list_nodes", path="/v1/nodes", answer=models.NodeList)
OPERATIONS: tuple[Operation[Any], ...] = (
    SUBMIT_ARGV, TEST_ARGV, SUBMIT_JOB, SUBMIT_JOBS, LIST_JOBS, GET_JOB, WAIT_JOB, EXPLAIN_JOB,
    GET_SCRIPT, GET_LOGS, FOLLOW_EVENTS, FOLLOW_JOB_EVENTS, CANCEL_JOBS, SIGNAL_JOBS, HOLD_JOBS,
    RELEASE_JOBS, REQUEUE_JOBS, LIST_NODES,
)  # fmt: skip


def request(
    operation: Operation[T], part: object = None, *, body: object = None, key: str | None = None,
    silence_s: float = ANSWER_TIMEOUT_S, waits: bool = False, **query: Any,
) -> Request[T]:  # fmt: skip
    """part: the id in the path. key: the idempotency key; None: a random one, if it has any."""
    path = operation.path
    if "{id}" in path:
        path = path.replace("{id}", quote(str(check_job(part))))
    params = {name: _param(value) for name, value in query.items()}
    headers: dict[str, str] = {}
    if operation.keyed:
        headers["Idempotency-Key"] = key or os.urandom(16).hex()
    return Request(
        operation=operation, target=url_of(path, params), headers=headers, waits=waits,
        body=None if body is None else msgspec.json.encode(body), silence_s=silence_s,
    )  # fmt: skip


def wait(selector: object, wait_s: float) -> Request[models.Ended]:
    """Answers when all jobs of the selector have ended, or after wait_s."""
    silence_s = wait_s + POLL_SLACK_S
    return request(WAIT_JOB, selector, wait=wait_s, silence_s=silence_s, waits=True)


def follow_events(
    selector: Selector | None, after: int | None, *, follow: bool
) -> Request[models.Event]:
    operation = FOLLOW_EVENTS if selector is None else FOLLOW_JOB_EVENTS
    return request(operation, selector, after=after, follow=follow, waits=True)


def first_row(selector: Selector) -> Request[models.Jobs]:
    return request(GET_JOB, selector, limit=1)


def resumed(selector: Selector, rows: Sequence[models.Job]) -> ByLabel | ByPosition:
    """How followed output continues after an outage. rows: first_row(). The lines of an array are
    labelled with their tasks."""
    array, _, tasks = str(selector).partition("_")
    is_array = not tasks.isdecimal() and any(str(row.array_job_id) == array for row in rows)
    return ByLabel() if is_array else ByPosition()


def event_of(data: object) -> models.Event:
    return msgspec.convert(data, models.Event)


def ids_of(jobs: Selectors) -> list[str]:
    return check_jobs(jobs)


def by_task(rows: Sequence[models.Job]) -> list[models.Job]:
    """The rows of an array, by the number of their (first) task."""

    def number(row: models.Job) -> int:
        if row.array_task_id is not None:
            return row.array_task_id
        first = re.match("[0-9]+", row.array_tasks or "")
        return int(first[0]) if first else 0

    return sorted(rows, key=number)


def worst(ended: Sequence[models.EndedJob]) -> models.EndedJob:
    """The first that did not complete, else the first."""
    return next((one for one in ended if not one.is_ok), ended[0])


def failure(ended: models.EndedJob, rows: Sequence[models.Job]) -> JobFailed:
    """rows: of that job, for the reason."""
    detail = next((row.end_detail for row in rows if row.id == ended.id), None)
    return JobFailed(ended.id, ended.state, ended.exit_code, ended.signal, detail)


def check_outcomes(outcomes: Sequence[models.Outcome]) -> None:
    """Raises Refused if a job was not changed."""
    for one in outcomes:
        if one.outcome == "refused":
            problem = {"code": one.code, "detail": one.message, "hint": one.hint}
            raise Refused(409, {**problem, "title": "Refused", "job_id": one.job_id})


def _param(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.astimezone().isoformat()
    if isinstance(value, list | tuple | set):
        return ",".join(map(str, value))
    return str(value)
