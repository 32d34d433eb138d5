"""The leader's work for the cluster as a whole.

Methods that take a term raise LeadershipLost when it is not the newest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from odcd.database.pool import Database

MAX_DUE = 5000
"""Pending jobs that one sweep begins, and that it ends: passes and ends of jobs wait for it."""
MAX_APART = 250
"""The same for a sweep that processes each job on its own."""
SWEEP = (
    "p_term => $1, p_now => $2, p_keeps_time => $3, p_node_grace => $4, p_quarantine => $5, "
    "p_canaries => $6, p_stale_after => $7, p_most => $8, p_aside => $9, p_skipped => $10"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepFailure:
    """A step of a sweep that failed; job_id: only this job of it. state: SQLSTATE."""

    step: str
    job_id: int | None
    state: str
    why: str


class LeaderStore:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def check_host(self, machine_id: str, host_name: str) -> None:
        """Raises OtherHost when another machine's local executor leads or runs jobs on this
        database."""
        await self._db.execute(
            "select odc.check_host(p_machine_id => $1, p_host_name => $2)", machine_id, host_name
        )

    async def claim_host(self, term: int, machine_id: str, host_name: str) -> None:
        await self._db.execute(
            "select odc.claim_host(p_term => $1, p_machine_id => $2, p_host_name => $3)",
            term, machine_id, host_name,
        )  # fmt: skip

    async def sweep(
        self, term: int, now: datetime, *, keeps_time: bool = True,
        node_grace: timedelta | None = None, quarantine: bool | None = None, canaries: bool = True,
        stale_after: timedelta | None = None, limit: int = MAX_DUE, aside: Sequence[int] = (),
        skipped: Sequence[str] = (),
    ) -> datetime | None:  # fmt: skip
        """Do everything that depends on time alone: begin times, delays, deadlines, time limits,
        nodes unreachable for longer than node_grace, quarantine, expired keys, and dev servers that
        have waited for stale_after.

        quarantine: whether nodes on which jobs keep failing are quarantined; None: do not check
        now. canaries: whether quarantined nodes can be tested. keeps_time: the executor ends jobs
        at their time limits. limit: the number of pending jobs that begin, and that end at their
        deadline. aside, skipped: jobs and steps that failed. Returns the latest time for the next
        sweep.
        """
        return await self._db.fetchval(
            f"select odc.sweep({SWEEP})",
            term, now, keeps_time, node_grace, quarantine, canaries, stale_after, limit,
            list(aside), list(skipped),
        )  # fmt: skip

    async def sweep_apart(
        self, term: int, now: datetime, *, keeps_time: bool, node_grace: timedelta | None,
        quarantine: bool | None, canaries: bool, stale_after: timedelta | None,
        aside: Sequence[int], skipped: Sequence[str],
    ) -> list[SweepFailure]:  # fmt: skip
        """Sweep so that steps, and the jobs of a step that fails, succeed or fail each on its own.
        Returns those that failed."""
        rows = await self._db.fetch(
            f"select step, job_id, state, why from odc.sweep_apart({SWEEP})",
            term, now, keeps_time, node_grace, quarantine, canaries, stale_after, MAX_APART,
            list(aside), list(skipped),
        )  # fmt: skip
        return [SweepFailure(**dict(row)) for row in rows]

    async def record_orphans(self, term: int, names: Sequence[str], now: datetime) -> None:
        await self._db.execute(
            "select odc.note_orphans(p_term => $1, p_names => $2, p_now => $3)",
            term, list(names), now,
        )  # fmt: skip

    async def end_long_reports(self, now: datetime, limit: timedelta) -> int:
        """End statements of logins that read reports and ran for longer; return how many."""
        return await self._db.fetchval(
            "select odc.end_long_reports(p_now => $1, p_limit => $2)", now, limit
        )
