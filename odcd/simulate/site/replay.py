"""Replay a site: its jobs, submitted as they were, through the scheduler on the site's nodes.

In each second, ends are recorded first; then limits, cancellations, nodes and bookings change; then
jobs are submitted; then passes run until nothing more can start.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from odcd.clock import SystemClock
from odcd.database.pool import Database
from odcd.database.schema import Source, install, read_source, sql_folder
from odcd.database.session import Session
from odcd.errors import OdcError
from odcd.simulate.site.events import Event, Events, Kind, Submission
from odcd.simulate.site.records import Site
from odcd.simulate.site.starts import Done, Live, Start, compared, run_time_s, used_share
from odcd.simulate.site.submissions import begin_s, columns, submissions
from odcd.simulate.site.tables import TABLES

SWEEP_EVERY_S = 3600
AFTER_S = 90 * 86_400
"""How long a replay continues after the window for jobs that have not started."""
OPERATOR = json.dumps({"user": "root", "uid": 0, "operator": True})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The SQL of a replay. Read it first: later the process may not be able to read files."""

    schema: Source
    site: str


def read_sources() -> Sources:
    return Sources(
        schema=read_source(sql_folder()),
        site=Path(__file__).with_name("site.sql").read_text("utf-8"),
    )


async def replay_site(
    dsn: str, *, sources: Sources, site: Site, progress: Callable[[int, int], None]
) -> Done:
    """Replay a site in the database of the DSN, which must be empty."""
    await install(dsn, SystemClock(), sources.schema)
    database = Database(dsn, name="odcd simulate", size=1)
    async with database, database.dedicated() as session:
        await session.execute(sources.site)
        await _load(session, site)
        rows = await session.fetch("select shape_id, message from simulate.never_fits()")
        refused = {row["shape_id"]: row["message"] for row in rows}
        replaying = _Replay(session, site, submissions(site.jobs, refused), progress)
        await replaying.run()
        if wrong := await session.fetch("select odc.check_books()"):
            raise OdcError(f"the books do not balance: {wrong[0][0]}")
        starts = tuple(replaying.starts())
        return Done(starts=starts, refused=refused, pass_ms=tuple(replaying.pass_ms))


async def _load(session: Session, site: Site) -> None:
    await session.execute("select simulate.clear()")
    for table in TABLES:
        rows = site.tables.get(table, [])
        if table == "node":
            rows = [{**row, "state": "UP", "state_at": site.start.isoformat()} for row in rows]
        if rows and table not in ("booking", "booking_node"):
            await session.execute("select simulate.load($1, $2::jsonb)", table, json.dumps(rows))
    last_id = max((job.id for job in site.jobs), default=0)
    tasks = sum(len(job.tasks) for job in site.jobs)
    await session.execute("select simulate.ready($1)", last_id + tasks)


class _Replay:
    def __init__(
        self, session: Session, site: Site, submitted: Sequence[Submission],
        progress: Callable[[int, int], None],
    ) -> None:  # fmt: skip
        self._session = session
        self._site = site
        self._submissions = submitted
        self._progress = progress
        self._share = used_share(site)
        self._present = {one.id for one in submitted}
        self._events = Events()
        self._live: dict[int, Live] = {}
        """By id in the replay; tasks of an array are added when they start."""
        self._tasks: dict[int, dict[int, Live]] = {}
        """Waiting tasks, by array and number."""
        self._all: list[Live] = []
        self._waiting = 0
        self._unseen = 0
        """Jobs that really started in the window and have not started here."""
        self._sweep_at = -(1 << 40)
        self.pass_ms: list[float] = []

    def starts(self) -> list[Start]:
        return [
            replace(
                live.first or Start(job_id=live.job.id, number=live.task.number, start_s=None),
                preempted=live.preempted,
            )
            for live in self._all
        ]

    async def run(self) -> None:
        self._prepare()
        first_s = min((one.job.submit_s for one in self._submissions), default=0)
        total = self._site.length_s - first_s
        while (moment := self._events.next_moment()) is not None:
            now_s, events = moment
            if now_s > self._site.length_s + (AFTER_S if self._unseen else 0):
                return
            await self._moment(now_s, events)
            self._progress(min(total, now_s - first_s), total)

    def _prepare(self) -> None:
        add = self._events.add
        for position, one in enumerate(self._submissions):
            add(one.job.submit_s, Event(kind=Kind.SUBMIT, position=position))
            if begin_s(one) > one.job.submit_s:
                add(begin_s(one), Event(kind=Kind.WAKE))
            self._unseen += sum(1 for task in one.tasks if compared(task))
        for position, change in enumerate(self._site.changes):
            add(change.at_s, Event(kind=Kind.NODE, position=position))
        for position, row in enumerate(self._site.tables["booking"]):
            made_s = self._seconds(row["created_at"])
            starts_s = self._seconds(row["starts_at"])
            add(max(0, made_s), Event(kind=Kind.BOOKING, position=position))
            for at_s in (starts_s, starts_s + row["duration_s"]):
                add(max(0, at_s), Event(kind=Kind.WAKE))

    def _seconds(self, text: str) -> int:
        return round((datetime.fromisoformat(text) - self._site.start).total_seconds())

    async def _moment(self, now_s: int, events: Sequence[Event]) -> None:
        self._now = self._site.start + timedelta(seconds=now_s)
        of: dict[Kind, list[Event]] = {kind: [] for kind in Kind}
        for event in events:
            of[event.kind].append(event)
        if of[Kind.END] or of[Kind.VICTIM]:
            await self._end(of[Kind.END], of[Kind.VICTIM])
        for event in of[Kind.EXTEND]:
            await self._extend(event)
        for event in of[Kind.CANCEL]:
            await self._cancel(event)
        for event in of[Kind.NODE]:
            await self._change_node(event.position)
        for event in of[Kind.BOOKING]:
            await self._book(event.position)
        if of[Kind.SUBMIT]:
            await self._submit(now_s, [self._submissions[one.position] for one in of[Kind.SUBMIT]])
        if of[Kind.WAKE] or of[Kind.BOOKING] or now_s >= self._sweep_at:
            await self._session.execute("select odc.sweep(0, $1)", self._now)
            self._sweep_at = now_s + SWEEP_EVERY_S
        if self._waiting > 0:
            await self._pass(now_s)

    async def _end(self, ends: Sequence[Event], victims: Sequence[Event]) -> None:
        """End attempts that still run; a victim of preemption ends before its time."""
        over = {one.job_id for one in ends if self._live[one.job_id].attempt == one.attempt}
        lost = {
            one.job_id
            for one in victims
            if self._live[one.job_id].attempt == one.attempt and one.job_id not in over
        }
        again = [
            job_id
            for job_id in over
            if self._live[job_id].span < len(self._live[job_id].task.spans) - 1
        ]
        ids = sorted(over | lost)
        if not ids:
            return
        await self._session.execute(
            "select simulate.end_jobs($1, $2, $3)", self._now, ids, sorted(again)
        )
        back = await self._session.fetch(
            "select job_id from odc.pending where job_id = any ($1::bigint[])", ids
        )
        self._waiting += len(back)
        for job_id in ids:
            live = self._live[job_id]
            live.attempt = None
            live.span += job_id in over
            live.preempted += job_id in lost

    async def _extend(self, event: Event) -> None:
        if self._live[event.job_id].attempt == event.attempt:
            await self._session.execute(
                "select odc.update_jobs($1::jsonb, $2::jsonb, $3, $4::jsonb)",
                OPERATOR, _ids(event.job_id), self._now,
                json.dumps({"time_limit_s": event.limit_s}),
            )  # fmt: skip

    async def _cancel(self, event: Event) -> None:
        """The user gave up. A job that has started here ends by itself at this time."""
        if self._live[event.job_id].first is None:
            await self._session.execute(
                "select odc.cancel_jobs($1::jsonb, $2::jsonb, $3)",
                OPERATOR, _ids(event.job_id), self._now,
            )  # fmt: skip
            self._waiting -= 1

    async def _change_node(self, position: int) -> None:
        change = self._site.changes[position]
        await self._session.execute(
            "select odc.set_node_state($1::jsonb, $2::text[], $3, 'as in the history', $4)",
            OPERATOR, [change.node], "UP" if change.up else "DRAIN", self._now,
        )  # fmt: skip

    async def _book(self, position: int) -> None:
        row = self._site.tables["booking"][position]
        made = {"state": "PLANNED", "state_at": self._now.isoformat(), "created_by": "root"}
        nodes = [one for one in self._site.tables["booking_node"] if one["booking_id"] == row["id"]]
        for table, rows in (("booking", [{**row, **made}]), ("booking_node", nodes)):
            if rows:
                await self._session.execute(
                    "select simulate.load($1, $2::jsonb)", table, json.dumps(rows)
                )

    async def _submit(self, now_s: int, group: Sequence[Submission]) -> None:
        shapes = [await self._shape(one) for one in group]
        await self._session.execute(
            "select simulate.submit($1, $2::jsonb[], $3::jsonb[], $4, $5, $6, $7, $8, $9)",
            self._now, *columns(group, shapes, self._site.start, self._present),
        )  # fmt: skip
        for one in group:
            lives = [Live(job=one.job, task=task) for task in one.tasks]
            self._all += lives
            self._waiting += len(lives)
            if one.is_array:
                self._tasks[one.id] = {live.task.number or 0: live for live in lives}
                continue
            self._live[one.id] = lives[0]
            cancelled_s = one.tasks[0].cancelled_s
            if cancelled_s is not None and not one.tasks[0].spans:
                at_s = max(now_s, cancelled_s)
                self._events.add(at_s, Event(kind=Kind.CANCEL, job_id=one.id))

    async def _shape(self, one: Submission) -> int:
        """The shape of a submission: with a pin to its nodes if it ran when the window began."""
        known = {row["name"] for row in self._site.tables["node"]}
        if one.pinned_s is None or not known.issuperset(one.tasks[0].spans[0].nodes):
            return one.job.shape_id
        return await self._session.fetchval(
            "select simulate.pinned_shape($1, $2)",
            one.job.shape_id, list(one.tasks[0].spans[0].nodes),
        )  # fmt: skip

    async def _pass(self, now_s: int) -> None:
        row = await self._session.fetchrow(
            "select ids, attempts, arrays, tasks, nodes, victims, next_at, pass_ms "
            "from simulate.run_passes($1)",
            self._now,
        )
        assert row is not None
        self.pass_ms += row["pass_ms"]
        for job_id, attempt, array, number, nodes in zip(
            row["ids"], row["attempts"] or (), row["arrays"] or (), row["tasks"] or (),
            row["nodes"] or (), strict=True,
        ):  # fmt: skip
            if job_id not in self._live:
                self._live[job_id] = self._tasks[array][number]
            self._start(now_s, job_id, attempt, nodes)
        for job_id in row["victims"]:
            attempt = self._live[job_id].attempt
            if attempt is not None:
                self._events.add(now_s + 1, Event(kind=Kind.VICTIM, job_id=job_id, attempt=attempt))
        if row["next_at"] is not None:
            later_s = -(-(row["next_at"] - self._site.start) // timedelta(seconds=1))
            if later_s > now_s:
                self._events.add(later_s, Event(kind=Kind.WAKE))

    def _start(self, now_s: int, job_id: int, attempt: int, nodes: str) -> None:
        live = self._live[job_id]
        self._waiting -= 1
        live.attempt = attempt
        if live.first is None:
            live.first = Start(
                job_id=live.job.id, number=live.task.number, start_s=now_s, nodes=nodes
            )
            self._unseen -= compared(live.task)
        run_s = run_time_s(live.job, live.task, live.span, now_s, self._site.length_s, self._share)
        self._events.add(now_s + run_s, Event(kind=Kind.END, job_id=job_id, attempt=attempt))
        for extension in live.task.extensions:
            if extension.at_s < run_s and live.span == len(live.task.spans) - 1:
                event = Event(
                    kind=Kind.EXTEND, job_id=job_id, attempt=attempt, limit_s=extension.limit_s
                )
                self._events.add(now_s + extension.at_s, event)


def _ids(job_id: int) -> str:
    return json.dumps({"ids": [{"job_id": job_id, "tasks": None}]})
