"""The columns of `odcctl queue`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from odcctl.text import arrays, jobs, render
from odcctl.text.hostlist import fold
from odcctl.text.tables import Narrow

HEADER = (
    "JOB", "NAME", "USER", "PARTITION", "QOS", "GPUS", "STATE", "PLANNED", "TIME", "LIMIT",
    "NODES / WHY",
)  # fmt: skip
LONG_HEADER = (*HEADER[:-1], "ACCOUNT", "CPUS", "MEMORY", "SUBMITTED", HEADER[-1])
START_HEADER = (
    "JOB", "NAME", "USER", "PARTITION", "QOS", "GPUS", "LIMIT", "EXPECTED",
    "EXPECTED BETWEEN", "WHY",
)  # fmt: skip
FIELDS = (
    "id,array_job_id,array_task_id,array_tasks,array_progress,name,user,partition,qos,"
    "gpus_per_node,node_count,node_count_max,components,state,started_at,ended_at,time_limit_s,node_names,"
    "reason,why,planned_start_at"
)


def _rows(listed: Iterable[jobs.Job], now_s: float, at_s: float) -> list[tuple[str, ...]]:
    """One row for each job, under HEADER. at_s: when the jobs were as listed; earlier than now
    with --as-of."""
    return [(*_cells(job, now_s, at_s), _place(job, now_s)) for job in listed]


def _long_rows(listed: Iterable[jobs.Job], now_s: float, at_s: float) -> list[tuple[str, ...]]:
    """One row for each job, under LONG_HEADER."""
    return [
        (*_cells(job, now_s, at_s), job["account"] or "-", str(job["cpus_per_node"]),
         render.memory(job["mem_per_node_mib"]), render.clock(job["submitted_at"], now_s),
         _place(job, now_s))
        for job in listed
    ]  # fmt: skip


def _start_rows(listed: Iterable[jobs.Job], now_s: float, at_s: float) -> list[tuple[str, ...]]:
    """Pending jobs under START_HEADER, by expected start."""
    return [
        (
            *_whose(job), jobs.gpus(job), render.limit(job["time_limit_s"]),
            *(text or "-" for text in jobs.expected_start(job, now_s)), jobs.reason(job, now_s),
        )
        for job in sorted(listed, key=_expected_at)
    ]  # fmt: skip


def _expected_at(job: jobs.Job) -> str:
    """The sort key by expected start; jobs without one come last."""
    eta: dict[str, Any] | None = job.get("eta")
    return eta["p50"] if eta else "9999"


def _whose(job: jobs.Job) -> tuple[str, ...]:
    return (
        jobs.job_id(job), render.clean(job["name"]), job["user"], job["partition"] or "-",
        job["qos"] or "-",
    )  # fmt: skip


def _cells(job: jobs.Job, now_s: float, at_s: float) -> tuple[str, ...]:
    planned, waits = job.get("planned_start_at"), job["state"] == "PENDING"
    ran_s = render.seconds_between(job.get("started_at"), job.get("ended_at") or at_s)
    return (
        *_whose(job), jobs.gpus(job), job["state"],
        render.clock(planned, now_s) if planned else "-",
        "-" if waits else render.duration(ran_s), render.limit(job["time_limit_s"]),
    )  # fmt: skip


def _place(job: jobs.Job, now_s: float) -> str:
    """The nodes, or why the job waits; for an array its progress, and why the rest waits."""
    done = arrays.progress(job)
    if not done:
        return jobs.place({**job, "planned_start_at": None}, now_s)
    nodes = fold(job.get("node_names") or ()) if job["array_progress"]["running"] == 1 else ""
    return "; ".join(text for text in (done, nodes, jobs.reason(job, now_s)) if text)


class View(NamedTuple):
    """A form of the table: its columns, the fields of a job that it needs, and how it fits a narrow
    terminal (None: lines wrap)."""

    header: Sequence[str]
    fields: str
    rows: Callable[[Iterable[jobs.Job], float, float], list[tuple[str, ...]]]
    narrow: Narrow | None


NORMAL = View(
    HEADER, FIELDS, _rows,
    Narrow({"NAME": 14}, ("QOS", "PARTITION", "LIMIT", "PLANNED", "USER", "GPUS")),
)  # fmt: skip
LONG = View(
    LONG_HEADER, f"{FIELDS},account,cpus_per_node,mem_per_node_mib,submitted_at", _long_rows, None
)
START = View(
    START_HEADER, f"{FIELDS},eta", _start_rows,
    Narrow({"NAME": 14}, ("QOS", "PARTITION", "LIMIT", "NAME", "USER", "GPUS")),
)  # fmt: skip
