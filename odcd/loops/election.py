"""Decide which daemon leads. The term in the database fences: an old one is refused.

A follower waits until it has seen the same (term, beat) for the lease on its own monotonic clock,
or until the leader's database connection is gone; then it terminates the old leader's backends and
raises the term on the connection that will run its passes. Beats have a connection of their own.
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
from odcd.database.connections import BEAT, PASS
from odcd.database.pool import Database, Session
from odcd.errors import DatabaseDown, LeadershipLost, OdcError, Unavailable
from odcd.loops.clock_checks import HINT, SteadyClock, ahead_by, wrong_clock

log = logging.getLogger(__name__)

APPLICATION = PASS.name
RETRY_S = 0.5
BEAT_S = 2.5
"""The longest between two beats, and so between two looks whether PostgreSQL is still there."""
LOOK_S = 0.5
ASK_S = 5.0
"""How long a follower waits for PostgreSQL's answer."""
SETTLE_ROWS = 50_000
"""Events of a restored history that one transaction prepares."""
TAKE_S = 10.0
CLOCK_REST_S = 5.0
"""Between two looks at a clock that is wrong."""


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
    """Leadership under one term, and the two connections that passes and beats go over."""

    def __init__(
        self, term: int, session: Session, clock: Clock, lease: timedelta = timedelta.max, *,
        beats: Session | None = None, clock_limit: timedelta = timedelta.max,
        saw_clock: Callable[[float], None] = lambda ahead_s: None,
    ) -> None:  # fmt: skip
        """beats: the connection of the beats; by default that of the passes. saw_clock: hears at
        each beat how many seconds this daemon's clock is ahead of PostgreSQL's."""
        self.term = term
        self.clock = SteadyClock(clock, clock_limit)
        """For all that the leader does: it stops the leader when the clock has stepped."""
        self._session = session
        self._beats = beats or session
        self._lease_s = lease.total_seconds()
        self._clock_limit = clock_limit
        self._saw_clock = saw_clock
        self._wall = clock
        self._confirmed = clock.monotonic()
        self._one_at_a_time = asyncio.Lock()

    @property
    def certain(self) -> bool:
        """The database has confirmed the term within the lease, so nobody else can lead yet: not
        so after a sleep of the process."""
        return self.clock.monotonic() - self._confirmed < self._lease_s

    async def plan_pass(self, now: datetime) -> Pass:
        """One pass. Raises LeadershipLost, DatabaseDown, DatabaseBusy; nothing was started then."""
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
        """Beat until leadership is lost. Raises LeadershipLost, DatabaseDown or DatabaseBusy."""
        while True:
            await self.beat_once()
            await self.clock.sleep(every.total_seconds())

    async def beat_once(self) -> None:
        """Beat, and compare the clocks."""
        if self._session.closed:
            raise DatabaseDown("the connection of the leader's passes is gone", "Try again.")
        asked, ours = self.clock.monotonic(), self._wall.now()
        row = await self._beats.fetchrow(
            "select odc.beat_term(p_term => $1), clock_timestamp() as now", self.term
        )
        assert row is not None
        took = timedelta(seconds=self.clock.monotonic() - asked)
        ahead = ahead_by(ours, took, row["now"])
        self._saw_clock(ahead.total_seconds())
        if abs(ahead) > self._clock_limit:
            raise wrong_clock(ours, row["now"], self._clock_limit)
        self._confirmed = asked
        self.clock.confirm()

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
        *,
        clock_limit: timedelta = timedelta.max,
        tokens: Callable[[], list[str]] | None = None,
    ) -> None:
        """database: of the leader alone. saw: hears each term that is seen, another's and its own.
        clock_limit: how far this daemon's clock and PostgreSQL's may differ. tokens: of all this
        daemon's connections; by default the database's."""
        self._database = database
        self._clock = clock
        self._lease = lease
        self._lead = lead
        self._saw = saw
        self._clock_limit = clock_limit
        self._tokens = tokens or (lambda: [database.token])
        self._holder = f"{socket.gethostname()}:{os.getpid()}"
        self.leading: int | None = None
        """The term this daemon leads under, or None."""
        self._rest_s = 0.0
        self._stopped = False
        self.follows = False
        """Another daemon leads, as far as this one has seen."""
        self.clock_ahead_s = 0.0
        """How far this daemon's clock was ahead of PostgreSQL's when it last looked."""

    async def run(self) -> None:
        while True:
            try:
                seen = await self._wait_until_vacant()
                await self._take_and_lead(*seen)
            except LeadershipLost as error:
                log.warning("leader.lost", extra={"why": error.message, "hint": error.hint})
            except DatabaseDown as error:
                log.warning("leader.database_down", extra={"why": error.message})
            except Unavailable as error:
                # A lock or a statement took too long: the next try, or another daemon, leads.
                log.warning("leader.interrupted", extra={"why": error.message})
            except OdcError as error:
                log.error("leader.failed", extra={"code": error.code, "why": error.message})
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
            row = await self._database.fetchrow(
                "select term, beat, vacant from odc.read_term()", timeout=ASK_S
            )
            now = self._clock.monotonic()
            if (row["term"], row["beat"]) != seen:
                seen, since = (row["term"], row["beat"]), now
                self._saw(row["term"])
            if row["vacant"] or now - since >= self._lease.total_seconds():
                self.follows = False
                return seen
            self.follows = True
            await self._clock.sleep(min(LOOK_S, self._lease.total_seconds() / 5))

    async def _take_and_lead(self, term: int, beat: int) -> None:
        async with (
            self._database.dedicated(kind=BEAT) as beats,
            self._database.dedicated(kind=PASS) as session,
        ):
            await self._compare_clocks(beats)
            while await session.fetchval("select odc.settle_events(p_rows => $1)", SETTLE_ROWS):
                pass
            taken = await session.fetchval(
                "select odc.take_term(p_term => $1, p_beat => $2, p_holder => $3, p_host => $4, "
                "p_now => $5, p_tokens => $6)",
                term, beat, self._holder, socket.gethostname(), self._clock.now(), self._tokens(),
                timeout=TAKE_S,
            )  # fmt: skip
            if taken is None:
                return
            log.info("leader.leads", extra={"term": taken})
            self._saw(taken)
            lead = Lead(
                taken, session, self._clock, self._lease, beats=beats,
                clock_limit=self._clock_limit, saw_clock=self._note_clock,
            )  # fmt: skip
            self.leading = taken
            try:
                await self._until_lost(lead)
            except asyncio.CancelledError:
                # A clean stop lets the next one lead at once.
                try:
                    async with asyncio.timeout(2):
                        await lead.leave()
                except (TimeoutError, OdcError):
                    log.info("leader.not_left", extra={"term": taken})
                raise
            finally:
                self.leading = None

    async def _compare_clocks(self, session: Session) -> None:
        """Raises LeadershipLost when this daemon's clock and PostgreSQL's disagree."""
        asked, ours = self._clock.monotonic(), self._clock.now()
        theirs: datetime = await session.fetchval("select clock_timestamp()")
        took = timedelta(seconds=self._clock.monotonic() - asked)
        ahead = ahead_by(ours, took, theirs)
        self._note_clock(ahead.total_seconds())
        if abs(ahead) > self._clock_limit:
            error = wrong_clock(ours, theirs, self._clock_limit)
            log.error("leader.clock_wrong", extra={"why": error.message, "hint": HINT})
            self._rest_s = CLOCK_REST_S
            raise error

    def _note_clock(self, ahead_s: float) -> None:
        self.clock_ahead_s = ahead_s

    async def _until_lost(self, lead: Lead) -> None:
        """Beat and work side by side; the first error ends both, an expected one plainly."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._beat(lead), name="beat")
                group.create_task(_awaited(self._lead(lead)), name="lead")
        except BaseExceptionGroup as errors:
            # Not `except*`: what is raised in one comes out as a group again.
            expected, others = errors.split(OdcError)
            if expected is None or others is not None:
                raise
            raise _first(expected) from errors

    async def _beat(self, lead: Lead) -> None:
        try:
            await lead.beat(min(self._lease / 4, timedelta(seconds=BEAT_S)))
        except Unavailable:
            # The term may be over: what is under way ends now, whether PostgreSQL answers or not.
            await self._database.cut()
            raise


async def _awaited(work: Awaitable[None]) -> None:
    await work


def _first(group: BaseExceptionGroup[OdcError]) -> OdcError:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, OdcError)
    return error
