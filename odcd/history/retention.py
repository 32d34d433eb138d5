"""Delete ended jobs that are older than the settings allow, after exporting them if configured.

Runs on the leader only, once an hour, on its own connection, in small transactions. Jobs that
cannot be exported are not deleted. An interrupted run leaves whole jobs; the next one continues.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

from odcd.clock import Clock
from odcd.database.connections import BACKUP
from odcd.database.pool import Database
from odcd.database.session import Session
from odcd.errors import LeadershipLost, OdcError
from odcd.history.detach import drop_partition, finish_drops
from odcd.history.export import APPLICATION, Selection, export
from odcd.history.settings import HistorySettings
from odcd.history.targets import Target, open_target
from odcd.isolation import Isolation, IsolationWatch

log = logging.getLogger(__name__)

EVERY_S = 3600.0
FIRST_S = 60.0
LOOKED_AT = 20_000
EXPORTED = 50_000
BATCH = 200
"""Jobs that one transaction deletes while it holds the turn, which passes wait for."""
ROWS = 5_000
CHUNK = 1_000_000
"""Ids in one export of a whole partition."""
RANGE = 2_000
PAUSE_S = 0.05
"""Pause between two transactions, so that other sessions get the turn."""


@dataclass(slots=True, kw_only=True)
class Deleted:
    """The result of one run."""

    jobs: int = 0
    events: int = 0
    texts: int = 0
    past: int = 0
    exports: int = 0
    partitions: int = 0


class Retention:
    def __init__(
        self, term: int, database: Database, clock: Clock, settings: HistorySettings,
        watch: IsolationWatch | None = None,
    ) -> None:  # fmt: skip
        self._term = term
        self._database = database
        self._clock = clock
        self._settings = settings
        self._isolation = Isolation[int]("history", clock, watch)

    async def run(self) -> None:
        """Raises LeadershipLost."""
        if self._settings.keep_jobs is None and self._settings.keep_past is None:
            return
        await self._clock.sleep(FIRST_S)
        while True:
            try:
                done = await self.delete_once()
                log.info("history.deleted", extra={n: getattr(done, n) for n in done.__slots__})
            except LeadershipLost:
                raise
            except OdcError as error:
                log.warning("history.not_deleted", extra={"why": error.message})
            except Exception:
                log.exception("history.failed")
            await self._clock.sleep(EVERY_S)

    async def delete_once(self, done: Deleted | None = None) -> Deleted:
        """done: counts to continue. Raises LeadershipLost, and OdcError when an export cannot be
        written: its rows are then not deleted."""
        done, now = done or Deleted(), self._clock.now()
        keep, past = self._settings.keep_jobs, self._settings.keep_past or self._settings.keep_jobs
        async with AsyncExitStack() as stack:
            session = await stack.enter_async_context(
                # Dropping a partition of 100 million rows takes longer than a loop's statement may.
                self._database.dedicated(name=APPLICATION, kind=BACKUP)
            )
            target = await stack.enter_async_context(self._target())
            if keep is not None:
                await finish_drops(session)
                await self._drop_whole(session, target, now - keep, done)
                await self._delete_jobs(session, target, now - keep, done)
                await self._delete_events(session, target, now - keep, done)
                done.texts += await self._all(
                    session, "select odc.forget_texts($1, $2, $3)", ROWS, now
                )
            if past is not None:
                done.past += await self._all(
                    session, "select odc.forget_past($1, $3, $2)", ROWS, now - past
                )
        return done

    @asynccontextmanager
    async def _target(self) -> AsyncGenerator[Target | None]:
        if self._settings.export_target is None:
            yield None
            return
        async with open_target(self._settings.export_target, self._settings.endpoint) as target:
            yield target

    async def _all(self, session: Session, query: str, limit: int, at: datetime) -> int:
        """Run the query batch by batch until one finds no rows."""
        total = 0
        while gone := await session.fetchval(query, self._term, limit, at):
            total += gone
            await self._clock.sleep(PAUSE_S)
        return total

    async def _export(self, target: Target | None, selection: Selection, done: Deleted) -> None:
        if target is not None and await export(self._database.dsn, target, selection, self._clock):
            done.exports += 1

    async def _delete_jobs(
        self, session: Session, target: Target | None, before: datetime, done: Deleted
    ) -> None:
        async def forget(job_ids: Sequence[int]) -> None:
            done.jobs += await session.fetchval(
                "select odc.forget_jobs($1, $2, $3, $4)",
                self._term, list(job_ids), before, self._clock.now(),
            )  # fmt: skip
            await self._clock.sleep(PAUSE_S)

        last, picked = 0, list[int]()
        while True:
            row = await session.fetchrow(
                "select ids, last from odc.pick_old_jobs($1, $2, $3, $4)",
                last, before, LOOKED_AT, self._clock.now(),
            )  # fmt: skip
            assert row is not None
            picked += row["ids"]
            if picked and (row["last"] is None or len(picked) >= EXPORTED):
                await self._export(target, Selection(ids=picked), done)
                # A job that cannot be deleted is kept, and tried again in the next run.
                await self._isolation.together(picked, forget, most=BATCH)
                picked = []
            if row["last"] is None:
                return
            last = row["last"]

    async def _delete_events(
        self, session: Session, target: Target | None, before: datetime, done: Deleted
    ) -> None:
        last = 0
        while True:
            row = await session.fetchrow(
                "select ids, last from odc.pick_old_events($1, $2, $3)", last, before, LOOKED_AT
            )
            assert row is not None
            ids: Sequence[int] = row["ids"]
            if ids:
                await self._export(target, Selection(kind="events", ids=ids), done)
                done.events += await session.fetchval(
                    "select odc.forget_events($1, $2)", self._term, ids
                )
                await self._clock.sleep(PAUSE_S)
            if row["last"] is None:
                return
            last = row["last"]

    async def _drop_whole(
        self, session: Session, target: Target | None, before: datetime, done: Deleted
    ) -> None:
        """Drop partitions in which every job is old enough."""
        rows = await session.fetch(
            "select part, low, high from odc.whole_partitions($1, $2)", before, self._clock.now()
        )
        for row in rows:
            part, low, high = row["part"], row["low"], row["high"]
            for at in range(low, high, CHUNK) if target is not None else ():
                end = min(at + CHUNK, high)
                if not await session.fetchval(EXPORTED_RANGE, at, end):
                    await self._export(target, Selection(low=at, high=end), done)
                    await session.execute(NOTE_RANGE, at, end, self._clock.now())
            # The export may have taken hours, in which some of these jobs were restored.
            if not await session.fetchval(STILL_WHOLE, before, self._clock.now(), part):
                continue
            for at in range(low, high, RANGE):
                await session.execute(
                    "select odc.forget_range($1, $2, $3)", self._term, at, min(at + RANGE, high)
                )
                await self._clock.sleep(PAUSE_S)
            await drop_partition(session, self._term, part, low, high)
            done.partitions += 1


# Each part of a whole partition is exported once, even if a later run deletes the partition. The
# note is a separate row, because an export is named after its jobs.
EXPORTED_RANGE = (
    "select exists (select from odc.history_export where name = format('range-%s-%s', $1::bigint, "
    "$2::bigint))"
)
STILL_WHOLE = "select exists (select from odc.whole_partitions($1, $2) where part = $3)"
NOTE_RANGE = (
    "insert into odc.history_export (name, kind, low, high, rows, target, digest, made_at) values "
    "(format('range-%s-%s', $1::bigint, $2::bigint), 'jobs', $1, $2, 0, '', '', $3)"
)
