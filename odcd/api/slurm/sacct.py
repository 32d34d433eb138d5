"""sacct: jobs of any age, from the same rows as odcctl history. It is never behind the queue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import chain

from msgspec.structs import replace

from odcd.api.slurm import jobs_json
from odcd.api.slurm.components import FIELDS as COMPONENT_FIELDS
from odcd.api.slurm.fetch import (
    fetch_jobs,
    selectors,
    with_components,
    with_components_named,
)
from odcd.api.slurm.remote import Finished, Remote
from odcd.api.slurm.step_rows import steps_of_jobs
from odcd.api.slurm.version import answer_about
from odcd.slurm.columns import values as v
from odcd.slurm.columns.table import fields_of, lines, rules, separated
from odcd.slurm.columns.values import JobRow
from odcd.slurm.commands import sacct as command
from odcd.slurm.commands.sacct import Sacct, parse_sacct
from odcd.slurm.hostlists import expand_hosts

_ALWAYS = {"state", "started_at", "ended_at", "submitted_at", "user"}


async def sacct(remote: Remote) -> Finished:
    about = answer_about(remote, command.OPTIONS)
    if about is not None:
        return about
    wanted = parse_sacct(remote.request.argv, remote.request.environment, remote.now())
    rows = await _rows(remote, wanted)
    if wanted.json:
        return Finished(out=await remote.json_list("jobs", map(jobs_json.accounted, rows)))
    steps = await steps_of_jobs(remote, rows) if wanted.steps else {}
    named = _named_steps(wanted.ids)
    shown = (
        one for row in rows for one in _with_steps(row, wanted, named, steps.get(row.id, []))
    )  # fmt: skip
    if wanted.separator is not None:
        cells = separated(
            wanted.format, shown, header=wanted.header, separator=wanted.separator,
            trailing=wanted.trailing,
        )  # fmt: skip
    else:
        cells = lines(wanted.format, shown, header=wanted.header)
    if wanted.header and wanted.separator is None:
        cells = chain([next(cells), rules(wanted.format)], cells)
    return Finished(out=await remote.lines(cells))


async def _rows(remote: Remote, wanted: Sacct) -> list[JobRow]:
    filters: dict[str, object] = dict(wanted.filters)
    fields = {*fields_of(wanted.format), *_ALWAYS, *COMPONENT_FIELDS}
    if wanted.json:
        fields |= jobs_json.FIELDS
    if wanted.nodes:
        fields.add("node_names")
    if wanted.own and not remote.who.operator:
        filters["user"] = [remote.who.user]
    ids = await with_components_named(remote, wanted.ids)
    if ids:
        filters["ids"] = await selectors(remote, "sacct", ids)
        rows = await fetch_jobs(remote, filters, fields, ended=True)
    elif wanted.since is not None:
        # Live jobs, and those that ended since: neither reads the whole history.
        rows = await fetch_jobs(remote, filters, fields, ended=False)
        ended = {**filters, "ended_since": wanted.since.isoformat()}
        rows += await fetch_jobs(remote, ended, fields, ended=True)
    else:
        rows = await fetch_jobs(remote, filters, fields, ended=True)
    by_id = {row.id: row for row in rows}
    rows = [by_id[number] for number in sorted(by_id)]
    rows = await with_components(remote, rows, ids)
    if wanted.states is not None:
        rows = [row for row in rows if row.state in wanted.states]
    if wanted.nodes:
        hosts = set(expand_hosts(",".join(wanted.nodes)))
        rows = [row for row in rows if not hosts.isdisjoint(row.node_names)]
    return [row for row in rows if _within(row, wanted.since, wanted.until)]


def _within(row: JobRow, since: datetime | None, until: datetime | None) -> bool:
    if since is not None and row.ended_at is not None and row.ended_at < since:
        return False
    return until is None or row.submitted_at is None or row.submitted_at <= until


def _named_steps(ids: Iterable[str]) -> dict[str, set[str]]:
    """The steps that are named of a job, by its id; an empty text names the job itself."""
    named: dict[str, set[str]] = {}
    for text in ids:
        job, _, step = text.partition(".")
        named.setdefault(job, set()).add(step)
    return named


def _with_steps(
    row: JobRow, wanted: Sacct, named: Mapping[str, set[str]], numbered: list[JobRow]
) -> Iterator[JobRow]:
    """The job, the step of its batch script, and the steps of srun; an id such as 7.3 names only
    that step."""
    ids = (str(row.het_leader or row.id), v.job_id(row), _task_of(row))
    steps = {step for one in ids for step in named.get(one, ())}
    if not steps or "" in steps:
        yield row
        steps = {"batch", *(one.step or "" for one in numbered)} if wanted.steps else set()
    if row.het_offset:
        # The script and its steps belong to the first component.
        return
    if "batch" in steps and row.started_at is not None:
        used = row.resource_use.script if row.resource_use else None
        yield replace(row, step="batch", step_used=used)
    yield from (one for one in numbered if one.step in steps)


def _task_of(row: JobRow) -> str:
    return f"{row.array_job_id}_{row.array_task_id}"
