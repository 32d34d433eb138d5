"""Decide which daemon leads. The term in the database fences: an old one is refused.

A follower waits until it has seen the same (term, beat) for the lease on its own monotonic clock,
or until the leader's database connection is gone; then it raises the term on the connection that
will run its passes, which also ends the old leader's backend.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from odcd.clock import Clock
from odcd.db import Database, Session
from odcd.errors import DatabaseDown, LeadershipLost, PlanStale

log = logging.getLogger(__name__)

APPLICATION = "odcd-leader"
RETRY_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """What one pass did. started: job ids, ascending. more: another should follow at once.

    next_at: when time alone may let a job start; None: never. replanned: something changed while it
    decided, so it decided once more.
    """

    started: tuple[int, ...]
    looked: int
    more: bool
    next_at: datetime | None
    decide_ms: float
    took_ms: float
    replanned: bool = False


class Lead:
    """Leadership under one term, and the one connection that passes and beats go over."""

    def __init__(
        self, term: int, session: Session, clock: Clock, lease: timedelta = timedelta.max
    ) -> None:
        self.term = term
        self._session = session
        self._clock = clock
        self._lease_s = lease.total_seconds()
        self._confirmed = clock.monotonic()
        self._one_at_a_time = asyncio.Lock()

    @property
    def certain(self) -> bool:
        """The database has confirmed the term within the lease, so nobody else can lead yet: not
        so after a sleep of the process."""
        return self._clock.monotonic() - self._confirmed < self._lease_s

    async def plan_pass(self, now: datetime) -> Pass:
        """One pass; tried again once when the database moved on under it.

        Raises LeadershipLost or DatabaseDown; nothing was started then.
        """
        try:
            return await self._plan_pass(now)
        except PlanStale:
            return await self._plan_pass(now)

    async def _plan_pass(self, now: datetime) -> Pass:
        async with self._one_at_a_time:
            row = await self._session.fetchrow(
                "select started, looked, more, next_at, decide_ms, took_ms, replanned "
                "from odc.plan_pass(p_term => $1, p_now => $2)",
                self.term,
                now,
            )
        assert row is not None
        return Pass(
            started=tuple(row["started"]),
            looked=row["looked"],
            more=row["more"],
            next_at=row["next_at"],
            decide_ms=row["decide_ms"],
            took_ms=row["took_ms"],
            replanned=row["replanned"],
        )

    async def beat(self, every: timedelta) -> None:
        """Beat until leadership is lost. Raises LeadershipLost or DatabaseDown."""
        while True:
            try:
                async with self._one_at_a_time:
                    asked = self._clock.monotonic()
                    await self._session.execute("select odc.beat_term(p_term => $1)", self.term)
                    self._confirmed = asked
            except PlanStale:
                continue
            await self._clock.sleep(every.total_seconds())

    async def leave(self) -> None:
        async with self._one_at_a_time:
            await self._session.execute("select odc.leave_term(p_term => $1)", self.term)


class Leader:
    """Follow until the term can be taken, lead until it is lost, and again."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        lease: timedelta,
        lead: Callable[[Lead], Awaitable[None]],
        saw: Callable[[int], None] = lambda term: None,
    ) -> None:
        """saw: hears each term that is seen, another's and its own."""
        self._database = database
        self._clock = clock
        self._lease = lease
        self._lead = lead
        self._saw = saw
        self._holder = f"{socket.gethostname()}:{os.getpid()}"
        self.leading: int | None = None
        """The term this daemon leads under, or None."""
        self._rest_s = 0.0
        self._stopped = False
        self.follows = False
        """Another daemon leads, as far as this one has seen."""

    async def run(self) -> None:
        while True:
            try:
                seen = await self._wait_until_vacant()
                await self._take_and_lead(*seen)
            except LeadershipLost as error:
                log.warning("leader.lost", extra={"why": error.message})
            except DatabaseDown as error:
                log.warning("leader.database_down", extra={"why": error.message})
            if self._stopped:
                return
            await self._clock.sleep(max(RETRY_S, self._rest_s))
            self._rest_s = 0.0

    def stop(self) -> None:
        """run() is about to be cancelled: an error that comes out instead ends it, too."""
        self._stopped = True

    async def resign(self, lead: Lead, why: str) -> None:
        """Let another lead, if there is one; for two leases this daemon does not try. Always raises
        LeadershipLost."""
        self._rest_s = 2 * self._lease.total_seconds()
        await lead.leave()
        raise LeadershipLost(f"this daemon has let go of leadership: {why}")

    async def _wait_until_vacant(self) -> tuple[int, int]:
        seen = (-1, -1)
        since = self._clock.monotonic()
        while True:
            row = await self._database.fetchrow("select term, beat, vacant from odc.read_term()")
            now = self._clock.monotonic()
            if (row["term"], row["beat"]) != seen:
                seen, since = (row["term"], row["beat"]), now
                self._saw(row["term"])
            if row["vacant"] or now - since >= self._lease.total_seconds():
                self.follows = False
                return seen
            self.follows = True
            await self._clock.sleep(min(1.0, self._lease.total_seconds() / 5))

    async def _take_and_lead(self, term: int, beat: int) -> None:
        async with self._database.dedicated(
            name=APPLICATION, isolation="repeatable read"
        ) as session:
            taken = await session.fetchval(
                "select odc.take_term(p_term => $1, p_beat => $2, p_holder => $3, p_host => $4, "
                "p_now => $5)",
                term, beat, self._holder, socket.gethostname(), self._clock.now(),
            )  # fmt: skip
            if taken is None:
                return
            log.info("leader.leads", extra={"term": taken})
            self._saw(taken)
            lead = Lead(taken, session, self._clock, self._lease)
            self.leading = taken
            try:
                await _until_lost(lead, self._lease / 4, self._lead)
            except asyncio.CancelledError:
                # A clean stop lets the next one lead at once.
                try:
                    async with asyncio.timeout(2):
                        await lead.leave()
                except (TimeoutError, DatabaseDown, LeadershipLost, PlanStale):
                    log.info("leader.not_left", extra={"term": taken})
                raise
            finally:
                self.leading = None


async def _until_lost(
    lead: Lead, every: timedelta, work: Callable[[Lead], Awaitable[None]]
) -> None:
    """Beat and work side by side; the first error ends both, an expected one comes out plain."""
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(lead.beat(every), name="beat")
            group.create_task(_awaited(work(lead)), name="lead")
    except BaseExceptionGroup as errors:
        # Not `except*`: what is raised in one comes out as a group again.
        expected, others = errors.split((LeadershipLost, DatabaseDown))
        if expected is None or others is not None:
            raise
        raise _first(expected) from errors


async def _awaited(work: Awaitable[None]) -> None:
    await work


def _first(group: BaseExceptionGroup[LeadershipLost | DatabaseDown]) -> Exception:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, Exception)
    return error
