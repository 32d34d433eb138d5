"""Read a window of a site's history from its database. Nothing there is changed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from odcd.database.connections import BACKUP
from odcd.database.pool import close, connect
from odcd.database.session import Session
from odcd.errors import BadRequest, OdcError
from odcd.simulate.site.records import (
    UNLIMITED_S,
    Extension,
    LeftOut,
    NodeChange,
    Row,
    Site,
    SiteJob,
    Span,
    Task,
    Term,
)
from odcd.simulate.site.starts import compared
from odcd.simulate.site.tables import TABLES, select
from odcd.slurm.dependencies import parse_dependency

APPLICATION = "odcd-simulate"
BEGIN = "begin isolation level repeatable read read only"
JOBS = """
    select j.id, j.array_job_id, j.array_task_id, j.kind = 'reservation' as dev_server, j.name,
           j.user_name, j.uid, j.account_id, j.qos_id, j.shape_id, j.nice, j.submitted_at,
           j.begin_at, j.time_limit_s, j.dependency, j.array_throttle, j.requeue, j.ended_at,
           p.tasks::text as waiting, r.started_at as running_since,
           coalesce(j.eligible_at, p.eligible_at, r.eligible_at) as eligible_at,
           array(select n.name
                   from odc.allocation as a join odc.node as n on n.id = a.node_id
                  where a.job_id = j.id order by a.rank) as running_nodes,
           (select json_agg(json_build_array(a.started_at, a.ended_at, a.state, a.requeued,
                                             a.node_names) order by a.attempt)
              from odc.attempt as a where a.job_id = j.id)::text as attempts,
           array(select e.at
                   from odc.event as e
                  where e.job_id = coalesce(j.array_job_id, j.id) and e.kind = 'released'
                  order by e.id) as releases,
           (select json_agg(json_build_array(e.at, e.detail -> 'by_s') order by e.id)
              from odc.event as e
             where e.job_id = j.id and e.kind = 'extended')::text as extended
      from odc.job as j
      left join odc.pending as p on p.job_id = j.id
      left join odc.running as r on r.job_id = j.id
     where j.submitted_at < $2 and (j.state is null or j.ended_at > $1)
     order by j.id
"""
FIRST = "select submitted_at from odc.job order by id limit 1"
NODE_STATES = """
    select n.name, n.state::text as state,
           coalesce((select json_agg(json_build_array(p.past_at, p.state, p.past_absent)
                                     order by p.past_id)
                       from odc.node_past as p
                      where p.id = n.id and p.past_at > $1)::text, '[]') as past
      from odc.node as n
     order by n.id
"""


async def read_site(dsn: str, start: datetime, end: datetime) -> Site:
    """The site in a window.

    Raises BadRequest when no job of the window started, OdcError when this database was made by
    another version of odc.
    """
    connection = await connect(dsn, name=APPLICATION, isolation="repeatable read", kind=BACKUP)
    session = Session(connection)
    try:
        await session.execute(BEGIN)
        site = await _read(session, start, end)
        await session.execute("commit")
    finally:
        with suppress(OdcError):
            await close(connection)
    if not any(compared(task) for job in site.jobs for task in job.tasks):
        raise BadRequest(
            f"no job started between {start:%Y-%m-%d %H:%M} and {end:%Y-%m-%d %H:%M} UTC",
            "Choose a longer window, for example --history 90d, or check which database was read.",
        )
    return site


async def _read(session: Session, start: datetime, end: datetime) -> Site:
    if not await session.fetchval("select to_regclass('odc.job') is not null"):
        raise OdcError("this database has no queue of odc", "Check --dsn or --home.")
    # A window can begin before the first job that is known.
    first = await session.fetchval(FIRST)
    if first is not None:
        start = max(start, min(end, first.replace(microsecond=0)))
    jobs, left_out = _jobs(await session.fetch(JOBS, start, end), start, end)
    shape_ids = sorted({job.shape_id for job in jobs})
    tables: dict[str, list[Row]] = {}
    for table in TABLES:
        text = await session.fetchval(select(table), start, end, shape_ids)
        tables[table] = json.loads(text)
    changes = _changes(await session.fetch(NODE_STATES, start), start, end)
    return Site(
        name="history", start=start, length_s=_seconds(end, start), tables=tables, changes=changes,
        jobs=jobs, left_out=left_out,
    )  # fmt: skip


def _seconds(moment: datetime, start: datetime) -> int:
    return round((moment - start).total_seconds())


def _jobs(
    rows: Sequence[Any], start: datetime, end: datetime
) -> tuple[tuple[SiteJob, ...], LeftOut]:
    """The jobs to replay, in order of submission, and how many others there were."""
    groups: dict[int, list[Any]] = {}
    for row in rows:
        groups.setdefault(row["array_job_id"] or row["id"], []).append(row)
    jobs: list[SiteJob] = []
    never_ready = unstarted = 0
    for job_id, group in groups.items():
        tasks: list[Task] = []
        for row in group:
            found = _tasks(row, start, end)
            if row["eligible_at"] is None and not any(task.spans for task in found):
                never_ready += 1
            elif not found:
                unstarted += 1
            else:
                tasks += found
        if tasks:
            tasks.sort(key=lambda task: task.number or 0)
            jobs.append(_job(job_id, group[0], tasks, start, _ready(group, tasks, start)))
    known = {job.id for job in jobs}
    jobs = [_with_terms(job, groups[job.id][0]["dependency"], known) for job in jobs]
    jobs.sort(key=lambda job: (job.submit_s, job.id))
    return tuple(jobs), LeftOut(never_ready=never_ready, unstarted_tasks=unstarted)


def _ready(group: Sequence[Any], tasks: Sequence[Task], start: datetime) -> list[datetime]:
    """The moments that a job had to wait for: its begin time, and the ends of its holds."""
    began = [task.first_start_s for task in tasks if task.first_start_s is not None]
    moments = [group[0]["begin_at"]]
    # Not when a requeue has moved it. Dependencies are replayed as such.
    once = all(len(task.spans) <= 1 and not task.preempted for task in tasks)
    if group[0]["dependency"] is None and once:
        moments.append(
            min((row["eligible_at"] for row in group if row["eligible_at"]), default=None)
        )
    moments += [at for at in group[0]["releases"] if not began or _seconds(at, start) <= min(began)]
    return [moment for moment in moments if moment is not None]


def _job(
    job_id: int, row: Any, tasks: Sequence[Task], start: datetime, ready: Sequence[datetime]
) -> SiteJob:
    submit_s = _seconds(row["submitted_at"], start)
    extended_s = sum(by_s for _, by_s in json.loads(row["extended"] or "[]"))
    limit_s = row["time_limit_s"]
    return SiteJob(
        id=job_id, name=row["name"], user=row["user_name"], uid=row["uid"],
        account_id=row["account_id"], qos_id=row["qos_id"], shape_id=row["shape_id"],
        nice=row["nice"], submit_s=submit_s,
        ready_s=max([submit_s, *(_seconds(moment, start) for moment in ready)]),
        limit_s=limit_s if limit_s == UNLIMITED_S else max(1, limit_s - extended_s),
        requeue=row["requeue"] or any(len(task.spans) > 1 for task in tasks),
        dev_server=row["dev_server"], throttle=row["array_throttle"], tasks=tuple(tasks),
    )  # fmt: skip


def _tasks(row: Any, start: datetime, end: datetime) -> list[Task]:
    """The job or task of a row; for the waiting range of an array, each of its tasks."""
    if row["array_job_id"] is not None and row["array_task_id"] is None:
        return [Task(number=number, spans=()) for number in _numbers(row["waiting"])]
    attempts = [
        (datetime.fromisoformat(begun), datetime.fromisoformat(over), state, requeued, nodes)
        for begun, over, state, requeued, nodes in json.loads(row["attempts"] or "[]")
    ]
    starts = [begun for begun, *_ in attempts]
    if row["running_since"] is not None:
        starts.append(row["running_since"])
    spans = [span for span in _spans(row, attempts, start) if span.start_s < _seconds(end, start)]
    cancelled = row["ended_at"] if not starts else None
    if cancelled is not None and row["array_task_id"] is not None:
        return []
    return [
        Task(
            number=row["array_task_id"],
            spans=tuple(span for span in spans if span.end_s is None or span.end_s > 0),
            first_start_s=_seconds(starts[0], start) if starts and starts[0] < end else None,
            cancelled_s=_seconds(cancelled, start) if cancelled is not None else None,
            extensions=_extensions(row, starts),
            preempted=sum(1 for *_, state, _, _ in attempts if state == "PREEMPTED"),
        )
    ]


def _spans(row: Any, attempts: Sequence[Any], start: datetime) -> list[Span]:
    """The attempts that a replay repeats; see Task."""
    all_of_them = [
        Span(start_s=_seconds(begun, start), end_s=_seconds(max(begun, over), start), nodes=nodes)
        for begun, over, _, _, nodes in attempts
    ]
    spans = [
        span
        for span, (_, _, state, requeued, _) in zip(all_of_them, attempts, strict=True)
        if not (requeued and state == "PREEMPTED")
    ]
    if row["running_since"] is not None:
        begun_s = _seconds(row["running_since"], start)
        spans.append(Span(start_s=begun_s, end_s=None, nodes=row["running_nodes"]))
    if all_of_them and not spans:
        # It only ever ran until it was preempted: it runs for at least that long.
        return [max(all_of_them, key=lambda span: (span.end_s or 0) - span.start_s)]
    return spans


def _extensions(row: Any, starts: Sequence[datetime]) -> tuple[Extension, ...]:
    changes = json.loads(row["extended"] or "[]")
    limit_s = row["time_limit_s"] - sum(by_s for _, by_s in changes)
    found: list[Extension] = []
    for at, by_s in changes:
        limit_s += by_s
        moment = datetime.fromisoformat(at)
        began = [begun for begun in starts if begun <= moment]
        if began:
            found.append(Extension(at_s=_seconds(moment, began[-1]), limit_s=limit_s))
    return tuple(found)


def _numbers(ranges: str | None) -> Iterable[int]:
    """The numbers of a multirange: {[1,4),[7,8)}."""
    for part in (ranges or "{}").strip("{}").replace("),[", ");[").split(";"):
        if part:
            low, high = part.strip("[)").split(",")
            yield from range(int(low), int(high))


def _with_terms(job: SiteJob, text: str | None, known: set[int]) -> SiteJob:
    """The job with the conditions that name jobs of the window. The others were met before it."""
    if text is None:
        return job
    parsed = parse_dependency(text)
    terms = [
        # Every replayed job ends well, so what the exit code decided is only that it ended.
        Term(
            kind=term.kind if term.kind in ("after", "aftercorr", "singleton") else "afterany",
            target_id=term.target_id, target_task=term.target_task, delay_s=term.delay_s,
        )
        for term in parsed.terms
        if term.target_id is None or term.target_id in known
    ]  # fmt: skip
    if parsed.any and len(terms) < len(parsed.terms):
        terms = []
    return replace(job, any_term=parsed.any, terms=tuple(terms))


def _changes(rows: Sequence[Any], start: datetime, end: datetime) -> tuple[NodeChange, ...]:
    """A past row is what the node was until past_at."""
    changes: list[NodeChange] = []
    length_s = _seconds(end, start)
    for row in rows:
        at_s, up_before = 0, True
        states = [
            (_seconds(datetime.fromisoformat(at), start), not absent and state == "UP")
            for at, state, absent in json.loads(row["past"])
        ]
        for until_s, up in [*states, (length_s + 1, row["state"] == "UP")]:
            if up != up_before and at_s <= length_s:
                changes.append(NodeChange(at_s=at_s, node=row["name"], up=up))
                up_before = up
            at_s = max(0, until_s)
    changes.sort(key=lambda change: (change.at_s, change.node))
    return tuple(changes)


def last(length: timedelta, now: datetime) -> tuple[datetime, datetime]:
    """The window of this length that ends now, in whole seconds."""
    end = now.replace(microsecond=0)
    return end - length, end
