"""Running attempts: facts about them, and the stops, ends and signals that are due.

Every method raises LeadershipLost when the term is not the newest.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from odcd.database.pool import Database
from odcd.records.dispatch import PROGRESS, Fact, SignalDue, Stop


class AttemptStore:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def list_live_members(self, term: int) -> list[tuple[int, int, int, bool]]:
        """(job, attempt, rank, started) of every member that has not ended."""
        rows = await self._db.fetch(
            "select job_id, attempt, rank, started from odc.live_members(p_term => $1)", term
        )
        return [(r["job_id"], r["attempt"], r["rank"], r["started"]) for r in rows]

    async def record_facts(self, term: int, facts: Sequence[Fact], now: datetime) -> list[int]:
        """Record the facts that an executor reported; return the ids of jobs whose attempt they
        ended. Idempotent."""
        # First: progress is not recorded for a member that has ended.
        if progress := [fact for fact in facts if fact.kind in PROGRESS]:
            await self.record_progress(term, progress, now)
            facts = [fact for fact in facts if fact.kind not in PROGRESS]
            if not facts:
                return []
        rows = await self._db.fetch(
            "select job_id from odc.record_facts(p_term => $1, p_job_ids => $2, p_attempts => $3, "
            "p_ranks => $4, p_kinds => $5, p_ats => $6, p_exit_codes => $7, p_signals => $8, "
            "p_causes => $9, p_details => $10, p_now => $11, p_suspects => $12, "
            "p_drains => $13, p_used => $14)",
            term,
            [f.job_id for f in facts], [f.attempt for f in facts], [f.rank for f in facts],
            [f.kind for f in facts], [f.at for f in facts], [f.exit_code for f in facts],
            [f.signal for f in facts], [f.cause for f in facts], [f.detail for f in facts], now,
            [f.suspect for f in facts],
            [f.drains for f in facts] if any(f.drains for f in facts) else None,
            [_array(f.used) for f in facts] if any(f.used for f in facts) else None,
        )  # fmt: skip
        return [row["job_id"] for row in rows]

    async def fail_start(self, term: int, job_id: int, why: str, now: datetime) -> None:
        """Record that a job cannot be started, for each member that has not."""
        facts = [
            Fact(
                job_id=job_id, attempt=attempt, rank=rank, kind="start_failed", at=now,
                detail=f"odc could not start it: {why}",
            )
            for job, attempt, rank, started in await self.list_live_members(term)
            if job == job_id and not started
        ]  # fmt: skip
        await self.record_facts(term, facts, now)

    async def record_progress(self, term: int, facts: Sequence[Fact], now: datetime) -> None:
        """Record the phases of dev servers' members, and which of their containers restarted."""
        await self._db.fetchval(
            "select odc.record_progress(p_term => $1, p_job_ids => $2, p_attempts => $3, "
            "p_ranks => $4, p_kinds => $5, p_ats => $6, p_details => $7, p_now => $8)",
            term,
            [f.job_id for f in facts], [f.attempt for f in facts], [f.rank for f in facts],
            [f.kind for f in facts], [f.at for f in facts], [f.detail for f in facts], now,
        )  # fmt: skip

    async def take_stops(self, term: int, now: datetime, *, again: bool = False) -> list[Stop]:
        """Running attempts that must end and whose stop was not sent (or not within 60 s; with
        again, all of them). Marks them as sent."""
        rows = await self._db.fetch(
            "select job_id, attempt, intent, grace_s "
            "from odc.take_stops(p_term => $1, p_now => $2, p_again => $3)",
            term, now, again,
        )  # fmt: skip
        return [
            Stop(job_id=r["job_id"], attempt=r["attempt"], intent=r["intent"], grace_s=r["grace_s"])
            for r in rows
        ]

    async def list_moved_ends(self, term: int) -> list[tuple[int, int, datetime | None]]:
        """(job, attempt, end) of running attempts whose time limit changed, until record_ends()."""
        rows = await self._db.fetch(
            "select job_id, attempt, ends_at from odc.moved_ends(p_term => $1)", term
        )
        return [(r["job_id"], r["attempt"], r["ends_at"]) for r in rows]

    async def record_ends(
        self, term: int, ends: Sequence[tuple[int, int, datetime | None]]
    ) -> None:
        """Record that the executor has received these ends."""
        await self._db.execute(
            "select odc.note_ends(p_term => $1, p_job_ids => $2, p_attempts => $3, p_ends => $4)",
            term, *(list(column) for column in zip(*ends, strict=True)),
        )  # fmt: skip

    async def list_due_signals(self, term: int, now: datetime) -> list[SignalDue]:
        """Attempts whose signal before the time limit is due, with the ranks that have not
        acknowledged it."""
        rows = await self._db.fetch(
            "select job_id, attempt, signal, batch_only, ranks "
            "from odc.due_signals(p_term => $1, p_now => $2)",
            term, now,
        )  # fmt: skip
        return [
            SignalDue(
                job_id=r["job_id"], attempt=r["attempt"], signal=r["signal"],
                batch_only=r["batch_only"], ranks=tuple(r["ranks"]),
            )
            for r in rows
        ]  # fmt: skip

    async def record_signals(
        self, term: int, sent: Sequence[tuple[int, int, int, str | None]], now: datetime
    ) -> None:
        """sent: (job, attempt, rank, why it was not delivered or None)."""
        await self._db.fetchval(
            "select odc.note_signals(p_term => $1, p_job_ids => $2, p_attempts => $3, "
            "p_ranks => $4, p_troubles => $5, p_now => $6)",
            term, *(list(column) for column in zip(*sent, strict=True)), now,
        )  # fmt: skip


def _array(numbers: Sequence[int] | None) -> str | None:
    """The text of an array of PostgreSQL."""
    return None if numbers is None else "{" + ",".join(map(str, numbers)) + "}"
