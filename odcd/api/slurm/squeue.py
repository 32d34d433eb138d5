"""squeue: the queue, from the same rows as odcctl queue."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from odcd.api.slurm import jobs_json
from odcd.api.slurm.components import FIELDS as COMPONENT_FIELDS
from odcd.api.slurm.fetch import (
    MAX_ROWS,
    PAGE,
    fetch_jobs,
    is_unknown,
    recent,
    selectors,
    with_components,
    with_components_named,
)
from odcd.api.slurm.remote import Finished, Remote
from odcd.api.slurm.sinfo import inventory
from odcd.api.slurm.step_rows import STEP_FIELDS, list_live
from odcd.api.slurm.version import answer_about
from odcd.slurm.columns import squeue as columns
from odcd.slurm.columns import values as v
from odcd.slurm.columns.table import fields_of, lines
from odcd.slurm.columns.values import LIVE, JobRow
from odcd.slurm.commands import squeue as command
from odcd.slurm.commands.squeue import Squeue, is_live_only, parse_squeue
from odcd.slurm.hostlists import expand_hosts
from odcd.slurm.lists import parse_array
from odcd.slurm.usage import Usage, fail

UNKNOWN_ID = "slurm_load_jobs error: Invalid job id specified\n"
EXPANDED = 100_000
"""The maximum number of lines of -r."""
MOST_COMPLAINTS = 20
"""About unknown users. Each takes a look at the user database, which may be slow."""
_ALWAYS = ("state", "ended_at", "partition")


async def squeue(remote: Remote) -> Finished:
    about = answer_about(remote, command.OPTIONS)
    if about is not None:
        return about
    wanted = parse_squeue(remote.request.argv, remote.request.environment)
    rows, known, complaints = await _rows(remote, wanted)
    if len(wanted.ids) == 1 and not known:
        raise Usage(UNKNOWN_ID)
    if wanted.json:
        return Finished(out=await remote.json_list("jobs", map(jobs_json.queued, rows)))
    if wanted.steps:
        jobs = [row for row in rows if not row.het_offset]
        return await list_live(remote, jobs, header=wanted.header)
    if wanted.one_by_one:
        rows = await _one_by_one(remote, rows)
    rows = await _sorted(remote, rows, wanted.sort)
    text = await remote.lines(lines(wanted.format, rows, header=wanted.header))
    return Finished(out=text, err=wanted.complaints + complaints)


async def _rows(remote: Remote, wanted: Squeue) -> tuple[list[JobRow], bool, str]:
    """The jobs; whether -j names any that squeue still knows; and complaints."""
    filters: dict[str, object] = dict(wanted.filters)
    complaints, ids = "", list[str]()
    if wanted.me:
        filters["user"] = [remote.who.user]
    fields = {*fields_of(wanted.format), *_ALWAYS, *COMPONENT_FIELDS}
    if wanted.json:
        fields |= jobs_json.FIELDS
    if wanted.sort:
        fields |= {f for c in columns.LETTERS.values() for f in c.fields}
    if wanted.steps:
        fields |= STEP_FIELDS
    if wanted.one_by_one:
        fields |= {"array_job_id", "array_task_id", "array_tasks"}
    if wanted.bookings:
        fields.add("booking")
    if wanted.nodes:
        fields.add("node_names")
    if wanted.ids:
        # A job that has ended is known, so ended ones are read here whatever the states are.
        ids = await with_components_named(remote, wanted.ids)
        filters["ids"] = await selectors(remote, "squeue", ids)
        found = await fetch_jobs(remote, filters, fields, ended=True)
    else:
        found = await fetch_jobs(remote, filters, fields, ended=False)
        if not is_live_only(wanted.states):
            ended = {**filters, "ended_since": recent(remote).isoformat()}
            found += await fetch_jobs(remote, ended, fields, ended=True)
    found = await with_components(remote, found, ids)
    since = recent(remote)
    found = [row for row in found if row.ended_at is None or row.ended_at >= since]
    states = frozenset(LIVE) if wanted.states is None else wanted.states
    rows = [row for row in found if row.state in states]
    if wanted.bookings:
        bookings = set(wanted.bookings)
        rows = [row for row in rows if row.booking in bookings]
    if wanted.nodes:
        nodes, _ = await inventory(remote)
        hosts = dict.fromkeys(expand_hosts(",".join(wanted.nodes)))
        for name in hosts:
            if name not in nodes:
                raise fail("squeue", f"Invalid node name {name[:60]}")
        rows = [row for row in rows if not hosts.keys().isdisjoint(row.node_names)]
    for user in wanted.filters.get("user", [])[:MOST_COMPLAINTS] if not rows else []:
        if await is_unknown(user):
            complaints += f"squeue: error: Invalid user: {user}\n"
    return rows, bool(found), complaints


async def _sorted(remote: Remote, rows: list[JobRow], order: str) -> list[JobRow]:
    """Pending jobs in the planner's order, then running ones, then ended ones; or by columns."""
    wanted: dict[str, bool] = {}
    for part in (part.strip() for part in order.split(",") if part.strip()):
        if part[-1] not in columns.LETTERS:
            raise Usage(f"squeue: error: Invalid sort specification: {part}\n")
        # Sorting by a column a second time would change nothing.
        wanted.setdefault(part[-1], part.startswith("-"))
    turns = remote.call.turns()
    rows = sorted(rows, key=lambda row: (row.partition or "", _rank(row)))
    for letter, reverse in reversed(wanted.items()):
        rows.sort(key=partial(_key, letter=letter), reverse=reverse)
        if turns.are_due():
            await turns.take()
    return rows


def _key(row: JobRow, *, letter: str) -> tuple[float, str]:
    """Numbers and times by value, other columns by text."""
    numbers = {
        "A": row.id, "i": _place(row), "F": row.array_job_id or row.id, "D": row.node_count,
        "l": row.time_limit_s or 2**31, "m": row.mem_per_node_mib, "y": row.nice,
        "Q": v.priority(row), "p": v.priority(row),
        "t": _rank(row), "T": _rank(row),
    }  # fmt: skip
    times = {"S": row.started_at or row.planned_start_at, "V": row.submitted_at, "e": row.ended_at}
    if letter in numbers:
        return float(numbers[letter]), ""
    at = times.get(letter)
    if at is not None:
        return at.timestamp(), ""
    return 0.0, columns.LETTERS[letter].value(row)


def _place(row: JobRow) -> int:
    """Tasks are sorted below the array's id, as their own ids are not shown."""
    first = row.array_task_id if row.array_task_id is not None else 0
    if row.array_tasks and (found := re.match("[0-9]+", row.array_tasks)):
        first = int(found[0])
    return ((row.array_job_id or row.id) << 21) + first


def _rank(row: JobRow) -> int:
    return 0 if row.state == "PENDING" else 1 if row.state in LIVE else 2


async def _one_by_one(remote: Remote, rows: list[JobRow]) -> list[JobRow]:
    """Raises Usage."""
    found, turns = list[JobRow](), remote.call.turns()
    for row in rows:
        for one in expand(row):
            found.append(one)
            if len(found) > MAX_ROWS:
                raise fail("squeue", f"more than {MAX_ROWS} tasks match: name jobs or users")
            if len(found) > PAGE and remote.place is not None:
                await remote.place.take()
            if turns.are_due():
                await turns.take()
    return found


def expand(row: JobRow) -> Iterator[JobRow]:
    """A row for each pending task of an array, as -r shows them."""
    if row.array_tasks is None or "..." in row.array_tasks:
        yield row
        return
    from msgspec.structs import replace

    done = 0
    for first, last in parse_array(row.array_tasks).ranges:
        for task in range(first, last + 1):
            if done >= EXPANDED:
                return
            done += 1
            yield replace(row, array_tasks=None, array_task_id=task,
                          array_job_id=row.array_job_id or row.id)  # fmt: skip
