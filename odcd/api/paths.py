"""The paths of a started job's output files, shown as Job.stdout and Job.stderr."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from odcd.clock import Turns
from odcd.executor.output import PathTooLong, default_stdout, expand
from odcd.stores.jobs import JobStore

MAX_BYTES = 4 * 1024 * 1024
"""Maximum size of the jobs in one answer, before patterns are expanded; the rest are on the next
page."""

NEEDED = (
    "id", "array_job_id", "array_task_id", "name", "user", "work_dir", "node_names", "started_at",
    "stdout", "stderr",
)  # fmt: skip
"""The fields of a job that its paths are made from."""


class _Row(msgspec.Struct, frozen=True):
    """The fields of a job that decide whether it has output files."""

    id: int
    started_at: str | None
    node_names: list[str] | None


_rows = msgspec.json.Decoder(list[msgspec.Raw])
_row = msgspec.json.Decoder(_Row)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    """The values of a job's first member that file patterns may refer to."""

    job_id: int
    array_job_id: int | None
    array_task_id: int | None
    name: str
    user: str
    work_dir: str
    node: str
    rank: int = 0


class Shown(NamedTuple):
    """jobs: a JSON array. last_id: the id of its last job if others were left out; else None."""

    jobs: bytes
    last_id: int | None


async def with_paths(
    jobs: str, store: JobStore, turns: Turns, *, whole: bool = False,
    fields: Sequence[str] | None = None,
) -> Shown:  # fmt: skip
    """The same JSON array of jobs, cut to the size of an answer. For jobs that have started,
    patterns are replaced by the paths of rank 0.

    turns: of the request; other requests are served between two jobs. whole: do not cut.
    fields: only these are returned; jobs also have those of NEEDED.
    """
    rows: list[bytes] = []
    started: dict[int, int] = {}
    last_id, size = None, 0
    for raw in _rows.decode(jobs):
        row, text = _row.decode(raw), bytes(raw)
        size += len(text)
        if not whole and rows and size > MAX_BYTES:
            break
        last_id = row.id
        if row.started_at and row.node_names:
            started[row.id] = len(rows)
        rows.append(text)
        if turns.are_due():
            await turns.take()
    else:
        last_id = None
    if started:
        for job_id in started.keys() - await store.list_without_files(list(started)):
            rows[started[job_id]] = _expanded(rows[started[job_id]])
            if turns.are_due():
                await turns.take()
    if fields is not None:
        for at, row in enumerate(rows):
            job: dict[str, Any] = msgspec.json.decode(row)
            rows[at] = msgspec.json.encode({name: job[name] for name in fields})
            if turns.are_due():
                await turns.take()
    return Shown(b"[" + b",".join(rows) + b"]", last_id)


def _expanded(row: bytes) -> bytes:
    job: dict[str, Any] = msgspec.json.decode(row)
    names = _Names(
        job_id=job["id"],
        array_job_id=job["array_job_id"],
        array_task_id=job["array_task_id"],
        name=job["name"],
        user=job["user"],
        work_dir=job["work_dir"],
        node=job["node_names"][0],
    )
    job["stdout"] = _path(job["stdout"] or default_stdout(names), names)
    if job["stderr"]:
        job["stderr"] = _path(job["stderr"], names)
    return msgspec.json.encode(job)


def _path(pattern: str, names: _Names) -> str:
    """The path; the pattern if the path is too long, because such a file was never opened."""
    try:
        return expand(pattern, names, names)
    except PathTooLong:
        return pattern
