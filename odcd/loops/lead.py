"""Leadership under one term: passes, and beats that renew it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from odcd.clock import Clock
from odcd.database.session import Session
from odcd.errors import DatabaseBusy, DatabaseDown
from odcd.loops.clock_checks import SteadyClock, ahead_by, wrong_clock

MAX_STARTS = 2000
"""Of one pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """The result of one pass. started: job ids, ascending. more: another pass should follow at
    once.

    next_at: the next time a job may start without any other change; None: never. replanned: the
    pass decided a second time, because something changed while it decided.
    """

    started: tuple[int, ...]
    looked: int
    more: bool
    next_at: datetime | None
    decide_ms: float
    took_ms: float
    replanned: bool = False


class Lead:
    """Leadership under one term, with one connection for passes and one for beats."""

    def __init__(
        self, term: int, session: Session, clock: Clock, lease: timedelta = timedelta.max, *,
        beats: Session | None = None, clock_limit: timedelta = timedelta.max,
        saw_clock: Callable[[float], None] = lambda ahead_s: None,
    ) -> None:  # fmt: skip
        """beats: the connection for beats; by default the one for passes. saw_clock: called at each
        beat with the seconds that this daemon's clock is ahead of PostgreSQL's."""
        self.term = term
        self.clock = SteadyClock(clock, clock_limit)
        """The clock of everything the leader does. It stops the leader when the system clock has
        stepped."""
        self._session = session
        self._beats = beats or session
        self._lease_s = lease.total_seconds()
        self._clock_limit = clock_limit
        self._saw_clock = saw_clock
        self._wall = clock
        self._confirmed = clock.monotonic()
        self._one_at_a_time = asyncio.Lock()
        self._most_starts = MAX_STARTS

    @property
    def certain(self) -> bool:
        """True if the database confirmed the term within the lease, so that no one else can lead
        yet. It becomes False when the process was suspended for longer."""
        return self.clock.monotonic() - self._confirmed < self._lease_s

    async def plan_pass(self, now: datetime) -> Pass:
        """Run one pass. After LeadershipLost, DatabaseDown or DatabaseBusy, nothing was started.
        Each DatabaseBusy halves the number of starts: many jobs may wait for them, too many for the
        statement timeout."""
        async with self._one_at_a_time:
            try:
                row = await self._session.fetchrow(
                    "select started, looked, more, next_at, decide_ms, took_ms, replanned "
                    "from odc.plan_pass(p_term => $1, p_now => $2, p_start_limit => $3)",
                    self.term, now, self._most_starts,
                )  # fmt: skip
            except DatabaseBusy:
                self._most_starts = max(1, self._most_starts // 2)
                raise
            self._most_starts = min(MAX_STARTS, 2 * self._most_starts)
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

    @property
    def starts_one(self) -> bool:
        """Whether passes took too long even with the fewest starts."""
        return self._most_starts == 1

    async def pending_ids(self) -> tuple[int, int] | None:
        """The oldest and the newest job that passes consider; None: there is none."""
        async with self._one_at_a_time:
            row = await self._session.fetchrow("select oldest, newest from odc.ready_jobs()")
        assert row is not None
        return None if row["oldest"] is None else (row["oldest"], row["newest"])

    async def try_pass(self, now: datetime, newest_id: int) -> str | None:
        """Run a pass over the jobs up to this one, and roll it back. Return why it failed."""
        async with self._one_at_a_time:
            return await self._session.fetchval(
                "select odc.try_pass(p_term => $1, p_now => $2, p_newest => $3, "
                "p_start_limit => $4)",
                self.term, now, newest_id, self._most_starts,
            )  # fmt: skip

    async def hold_culprit(self, job_id: int, why: str, now: datetime) -> list[int]:
        """Hold a job because of which passes fail. Return the jobs that were held: all of a user
        who has several such jobs."""
        async with self._one_at_a_time:
            return await self._session.fetchval(
                "select odc.hold_culprit(p_term => $1, p_job_id => $2, p_why => $3, p_now => $4)",
                self.term, job_id, why, now,
            )  # fmt: skip

    async def beat(self, every: timedelta) -> None:
        """Beat until leadership is lost. Raises LeadershipLost, DatabaseDown or DatabaseBusy."""
        while True:
            await self.beat_once()
            await self.clock.sleep(every.total_seconds())

    async def beat_once(self) -> None:
        """Beat once, and compare the clocks."""
        if self._session.closed:
            raise DatabaseDown("the connection of the leader's passes is gone", "Try again.")
        sent, ours = self.clock.monotonic(), self._wall.now()
        row = await self._beats.fetchrow(
            "select odc.beat_term(p_term => $1), clock_timestamp() as now", self.term
        )
        assert row is not None
        took = timedelta(seconds=self.clock.monotonic() - sent)
        ahead = ahead_by(ours, took, row["now"])
        self._saw_clock(ahead.total_seconds())
        if abs(ahead) > self._clock_limit:
            raise wrong_clock(ours, row["now"], self._clock_limit)
        self._confirmed = sent
        self.clock.confirm()

    async def leave(self) -> None:
        async with self._one_at_a_time:
            await self._session.execute("select odc.leave_term(p_term => $1)", self.term)
