"""Drive the scheduler's SQL through a workload. At each moment ends are recorded, then jobs are
submitted, then one pass runs, as in the daemon, in one transaction."""

from __future__ import annotations

import hashlib
import heapq
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from odcd.clock import SystemClock
from odcd.database.pool import Database
from odcd.database.schema import Source, install, read_source, sql_folder
from odcd.database.session import Session
from odcd.errors import OdcError
from odcd.simulate.cluster import Cluster
from odcd.simulate.estimates import Estimates, Planned
from odcd.simulate.eta import Forecaster
from odcd.simulate.outcomes import Replayed, read_outcomes
from odcd.simulate.policy import Policy, set_policy
from odcd.simulate.trace import TraceJob, Workload, distinct_users
from odcd.stores.store import Store

START = datetime(2026, 1, 1, tzinfo=UTC)
FIRST_UID = 10_000
SCRIPT = "#!/bin/sh\n"
SWEEP_EVERY_S = 3600
TERM = 0
OPERATOR = json.dumps({"user": "root", "uid": 0, "operator": True})
ENDS, OVERDUE = 0, 1


@dataclass(slots=True)
class _Moment:
    """The events of one second."""

    now_s: int
    ended: list[int] = field(default_factory=list[int])
    overdue: list[int] = field(default_factory=list[int])
    """Running jobs that exceeded the limit they were planned with."""
    submitted: list[int] = field(default_factory=list[int])
    """Positions in the workload."""


@dataclass(slots=True)
class _Running:
    started_s: int
    limit_s: int
    """The limit it is currently planned with."""


class Replay:
    """One workload through one database."""

    def __init__(
        self, session: Session, forecaster: Forecaster | None, workload: Workload,
        cluster: Cluster, estimates: Estimates, progress: Callable[[int, int], None],
    ) -> None:  # fmt: skip
        self._session = session
        self._forecaster = forecaster
        self._jobs = workload.jobs
        self._cluster = cluster
        self._progress = progress
        self._uids = {
            user: FIRST_UID + number for number, user in enumerate(distinct_users(workload.jobs))
        }
        self._digest = hashlib.sha256(SCRIPT.encode()).hexdigest()
        self._planned = Planned(estimates)
        self._running: dict[int, _Running] = {}
        self._position: dict[int, int] = {}
        self._predicted: dict[int, int] = {}
        self._dues: list[tuple[int, int, int]] = []
        self._waiting = 0
        self._pass_ms: list[float] = []
        self._sweep_at = 0

    async def run(self) -> None:
        done = 0
        following = 0
        while self._dues or following < len(self._jobs):
            moment, following = self._next(following)
            if moment.overdue:
                await self._raise_limits(moment)
            await self._step(moment)
            done += len(moment.ended) + len(moment.submitted)
            self._progress(done, 2 * len(self._jobs))
        if self._waiting:
            raise OdcError(f"{self._waiting} jobs never started", "This is a bug of the scheduler.")

    @property
    def pass_ms(self) -> list[float]:
        return self._pass_ms

    def _next(self, following: int) -> tuple[_Moment, int]:
        """The next second at which anything happens, and the first job after it."""
        jobs = self._jobs
        now_s = self._dues[0][0] if self._dues else sys.maxsize
        if following < len(jobs):
            now_s = min(now_s, jobs[following].submit_s)
        moment = _Moment(now_s)
        while self._dues and self._dues[0][0] == now_s:
            _, what, job_id = heapq.heappop(self._dues)
            (moment.ended if what == ENDS else moment.overdue).append(job_id)
        while following < len(jobs) and jobs[following].submit_s == now_s:
            moment.submitted.append(following)
            following += 1
        return moment, following

    def _start(self, now_s: int, job_id: int, limit_s: int) -> None:
        """A job runs from now until it ends, or until the limit it was planned with, if that is
        earlier."""
        job = self._jobs[self._position[job_id]]
        started_s = self._running.setdefault(job_id, _Running(now_s, limit_s)).started_s
        self._running[job_id].limit_s = limit_s
        if job.run_s <= limit_s:
            heapq.heappush(self._dues, (started_s + job.run_s, ENDS, job_id))
        else:
            heapq.heappush(self._dues, (started_s + limit_s, OVERDUE, job_id))

    async def _raise_limits(self, moment: _Moment) -> None:
        """Raise the limits of jobs that exceeded their prediction, before any other decision."""
        for job_id in moment.overdue:
            job = self._jobs[self._position[job_id]]
            limit_s = self._planned.raised_s(
                job, self._predicted[job_id], self._running[job_id].limit_s
            )
            await self._session.execute(
                "select odc.update_jobs($1::jsonb, $2::jsonb, $3, $4::jsonb)",
                OPERATOR,
                json.dumps({"ids": [{"job_id": job_id, "tasks": None}]}),
                START + timedelta(seconds=moment.now_s),
                json.dumps({"time_limit_s": limit_s}),
            )
            self._start(moment.now_s, job_id, limit_s)

    async def _step(self, moment: _Moment) -> None:
        now = START + timedelta(seconds=moment.now_s)
        if moment.now_s >= self._sweep_at:
            await self._session.execute("select odc.sweep($1, $2)", TERM, now)
            self._sweep_at = moment.now_s + SWEEP_EVERY_S
        for job_id in moment.ended:
            del self._running[job_id], self._predicted[job_id]
            self._planned.ended(self._jobs[self._position[job_id]])
        self._waiting += len(moment.submitted)
        limits_s = {
            position: self._planned.limit_s(self._jobs[position]) for position in moment.submitted
        }
        row = await self._session.fetchrow(
            "select submitted, refusal, started, pass_ms "
            "from simulate.step($1, $2, $3, $4::jsonb, $5, $6, $7)",
            now,
            moment.ended or None,
            [self._nodes(job_id) for job_id in moment.ended] or None,
            self._requests(limits_s) if moment.submitted else None,
            [self._digest],
            [SCRIPT],
            self._waiting > 0,
        )
        assert row is not None
        if row["refusal"] is not None:
            raise OdcError(f"a job was refused: {row['refusal']}")
        for job_id, position in zip(row["submitted"] or (), moment.submitted, strict=True):
            self._position[job_id] = position
            self._predicted[job_id] = limits_s[position]
        for job_id in row["started"]:
            self._start(moment.now_s, job_id, self._predicted[job_id])
        self._waiting -= len(row["started"])
        if self._forecaster is not None and row["submitted"]:
            left = set(row["submitted"]).difference(row["started"])
            if left:
                await self._forecaster.ask(sorted(left), now)
        self._pass_ms += row["pass_ms"]

    def _nodes(self, job_id: int) -> int:
        return self._cluster.place(self._jobs[self._position[job_id]].gpus)[0]

    def _requests(self, limits_s: Mapping[int, int]) -> str:
        return json.dumps(
            [self._request(self._jobs[position], limit_s) for position, limit_s in limits_s.items()]
        )

    def _request(self, job: TraceJob, limit_s: int) -> dict[str, Any]:
        nodes, gpus = self._cluster.place(job.gpus)
        uid = self._uids[job.user]
        return {
            "uid": uid,
            "gid": uid,
            "user": job.user,
            "operator": False,
            "jobs": [
                {
                    "name": job.name,
                    "script_digest": self._digest,
                    "environment_digest": self._digest,
                    "work_dir": "/",
                    "node_count": nodes,
                    "gpus_per_node": gpus,
                    "time_limit_s": limit_s,
                }
            ],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The SQL of a replay. Read it first: later the process may not be able to read files."""

    schema: Source
    step: str


def read_sources() -> Sources:
    return Sources(
        schema=read_source(sql_folder()),
        step=Path(__file__).with_name("step.sql").read_text("utf-8"),
    )


async def replay(
    dsn: str, *, sources: Sources, workload: Workload, cluster: Cluster, policy: Policy,
    estimates: Estimates, predict: bool, progress: Callable[[int, int], None],
) -> Replayed:  # fmt: skip
    """Replay one workload in the database of the DSN, which must be empty.

    predict: also predict the start of each job that waits.
    """
    await install(dsn, SystemClock(), sources.schema)
    database = Database(dsn, name="odcd simulate", size=1)
    async with (
        database,
        database.dedicated() as session,
        database.dedicated() as beside,
    ):
        await session.execute(sources.step)
        name = await set_policy(session, policy)
        await Store(database).nodes.register(TERM, cluster.reports(), START, whole=True)
        forecaster = Forecaster(beside) if predict else None
        running = Replay(session, forecaster, workload, cluster, estimates, progress)
        try:
            await running.run()
            if forecaster is not None:
                await forecaster.settle()
        finally:
            if forecaster is not None:
                forecaster.cancel()
        wrong = await session.fetch("select odc.check_books()")
        if wrong:
            raise OdcError(f"the books do not balance: {wrong[0][0]}")
        predictions = forecaster.predictions if forecaster is not None else {}
        return Replayed(
            policy=name,
            jobs=await read_outcomes(session, predictions, START),
            pass_ms=tuple(running.pass_ms),
        )
