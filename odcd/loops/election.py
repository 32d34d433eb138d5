"""Decide which daemon leads. The term in the database fences: a leader with an old term is
rejected.

A follower waits until the same (term, beat) has not changed for the lease, on its own monotonic
clock, or until the leader's database connection is gone. It then terminates the old leader's
backends and raises the term, on the connection that will run its passes. Beats use a separate
connection.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from odcd.clock import Clock
from odcd.database.connections import BEAT, PASS
from odcd.database.pool import Database
from odcd.database.session import Session
from odcd.errors import DatabaseDown, LeadershipLost, OdcError, Unavailable
from odcd.isolation import explain
from odcd.loops.clock_checks import HINT, ahead_by, wrong_clock
from odcd.loops.lead import Lead

log = logging.getLogger(__name__)

APPLICATION = PASS.name
RETRY_S = 0.5
BEAT_S = 2.5
"""The maximum time between two beats, and so between two checks that PostgreSQL is reachable."""
LOOK_S = 0.5
ASK_S = 5.0
"""How long a follower waits for PostgreSQL's answer."""
SETTLE_ROWS = 50_000
"""The number of restored events that one transaction prepares."""
TAKE_S = 10.0
FAILED_REST_S = 5.0
CLOCK_REST_S = 5.0
"""The time between two checks of a clock that is wrong."""


class Leader:
    """Follows until the term is vacant, leads until the term is lost, and starts over."""

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
        """database: the leader's own connections. saw: called with each term seen, its own
        included. clock_limit: how far this daemon's clock and PostgreSQL's may differ. tokens: the
        tokens of all of this daemon's connections; by default that of database."""
        self._database = database
        self._clock = clock
        self._lease = lease
        self._lead = lead
        self._saw = saw
        self._clock_limit = clock_limit
        self._tokens = tokens or (lambda: [database.token])
        self._holder = f"{socket.gethostname()}:{os.getpid()}"
        self.leading: int | None = None
        """The term under which this daemon leads, or None."""
        self._rest_s = 0.0
        self._stopped = False
        self.follows = False
        """Another daemon leads, as far as this one knows."""
        self.clock_ahead_s = 0.0
        """How far this daemon's clock was ahead of PostgreSQL's at the last comparison."""

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
                # A lock or a statement took too long: this daemon tries again, or another one
                # leads.
                log.warning("leader.interrupted", extra={"why": error.message})
            except OdcError as error:
                log.error("leader.failed", extra={"code": error.code, "why": error.message})
            except Exception as error:
                # The loops isolate what they cannot process, but not the takeover before them.
                log.exception("leader.failed", extra={"why": explain(error)})
                self._rest_s = max(self._rest_s, FAILED_REST_S)
            if self._stopped:
                return
            await self._clock.sleep(max(RETRY_S, self._rest_s))
            self._rest_s = 0.0

    def stop(self) -> None:
        """Called before run() is cancelled: if an error is raised instead, run() ends as well."""
        self._stopped = True

    async def resign(self, lead: Lead, why: str) -> None:
        """Give up leadership, and do not try to lead for two leases, so that another daemon can.
        Always raises LeadershipLost."""
        self._rest_s = 2 * self._lease.total_seconds()
        await lead.leave()
        raise LeadershipLost(f"this daemon has given up the leadership: {why}")

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
                # After a clean stop the next daemon can lead at once.
                try:
                    async with asyncio.timeout(2):
                        await lead.leave()
                except (TimeoutError, OdcError):
                    log.info("leader.not_released", extra={"term": taken})
                raise
            finally:
                self.leading = None

    async def _compare_clocks(self, session: Session) -> None:
        """Raises LeadershipLost when this daemon's clock and PostgreSQL's differ by more than the
        limit."""
        sent, ours = self._clock.monotonic(), self._clock.now()
        theirs: datetime = await session.fetchval("select clock_timestamp()")
        took = timedelta(seconds=self._clock.monotonic() - sent)
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
        """Beat and work side by side. The first error ends both; an expected error is raised
        without a group."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._beat(lead), name="beat")
                group.create_task(_awaited(self._lead(lead)), name="lead")
        except BaseExceptionGroup as errors:
            # Not `except*`: an error raised in such a block is wrapped in a group again.
            expected, others = errors.split(OdcError)
            if expected is None or others is not None:
                raise
            raise _first(expected) from errors

    async def _beat(self, lead: Lead) -> None:
        try:
            await lead.beat(min(self._lease / 4, timedelta(seconds=BEAT_S)))
        except Unavailable:
            # The term may be over: stop all statements in progress, whether PostgreSQL answers or
            # not.
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
