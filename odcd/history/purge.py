"""Delete ended jobs of a certain age once, or count them: what retention does, on request."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from odcd.clock import Clock
from odcd.database.pool import Database
from odcd.errors import LeadershipLost
from odcd.history.retention import LOOKED_AT, Deleted, Retention
from odcd.history.settings import HistorySettings

TRIES = 5
"""How often the purge starts again if another daemon takes over meanwhile."""
OLD_JOBS = "select count(*) from odc.job where state is not null and ended_at < $1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """The rows that a purge would delete."""

    jobs: int
    kept: int
    """Ended jobs of that age that stay: something that is not so old needs them."""
    events: int
    """Events without a job."""


async def count(dsn: str, before: datetime, now: datetime) -> Count:
    """The rows that purge would delete now. Reads only."""
    async with Database(dsn, size=1) as database:
        old = await database.fetchval(OLD_JOBS, before)
        jobs = events = last = 0
        while True:
            row = await database.fetchrow(
                "select cardinality(ids) as count, last from odc.pick_old_jobs($1, $2, $3, $4)",
                last, before, LOOKED_AT, now,
            )  # fmt: skip
            assert row is not None
            jobs += row["count"]
            if row["last"] is None:
                break
            last = row["last"]
        last = 0
        while True:
            row = await database.fetchrow(
                "select cardinality(ids) as count, last from odc.pick_old_events($1, $2, $3)",
                last, before, LOOKED_AT,
            )  # fmt: skip
            assert row is not None
            events += row["count"] or 0
            if row["last"] is None:
                return Count(jobs=jobs, kept=old - jobs, events=events)
            last = row["last"]


async def purge(dsn: str, age: timedelta, settings: HistorySettings, clock: Clock) -> Deleted:
    """Delete them as retention does, also while a daemon runs.

    settings: where to export first. Raises LeadershipLost if another daemon takes over again and
    again.
    """
    own = HistorySettings(
        keep_jobs=age, export_target=settings.export_target, endpoint=settings.endpoint
    )
    done = Deleted()
    async with Database(dsn, size=1) as database:
        for left in reversed(range(TRIES)):
            term = await database.fetchval("select term from odc.term")
            try:
                await Retention(term, database, clock, own).delete_once(done)
            except LeadershipLost:
                if not left:
                    raise
            else:
                break
    return done
