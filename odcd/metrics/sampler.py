"""Measure the cluster periodically while this daemon leads and is scraped.

Measurements use a separate connection with a time limit. Scrapes are answered from memory, and no
scheduling pass ever waits for a measurement.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from odcd.clock import Clock
from odcd.database.connections import METRICS
from odcd.database.pool import Database
from odcd.database.session import Session
from odcd.errors import LeadershipLost, OdcError, Unavailable
from odcd.metrics.families import MEASURES
from odcd.metrics.process import Metrics, negotiate
from odcd.metrics.sample import Row, Sample
from odcd.metrics.scrapes import Scrapes

log = logging.getLogger(__name__)

APPLICATION = METRICS.name
EVERY_S = 5.0
SHARE = 20
"""After each sample it rests for this many times the sample's duration: at most 5 % of a core."""
SCRAPED_S = 120.0
"""After this time without a scrape, measuring stops."""
FOLD_EVERY_S = 60.0
"""Events are counted even without scrapes, so that the next scrape does not show them all at
once."""
FOLD = 2_000
"""Events per transaction; fewer after a failure."""
FOLDS = 20
"""Transactions per sample: a long backlog is spread over the next samples."""
PATIENCE_S = 2.0
"""How long the first scrape after a pause waits for a sample."""
MAX_S = 5.0
"""The time limit for one measurement."""
RETRY_S = 5.0
NEVER = float("-inf")

Placed = Callable[[], Mapping[str, Sequence[int]]]


class Sampler:
    def __init__(
        self, database: Database, clock: Clock, metrics: Metrics,
        measures: Mapping[str, float] = MEASURES,
    ) -> None:  # fmt: skip
        self._database = database
        self._clock = clock
        self._metrics = metrics
        self._measures = measures
        self._scrapes = Scrapes(clock)
        self._sample: Sample | None = None
        self._scraped_at = NEVER
        self._measuring = False
        self._wake = asyncio.Event()
        self._news = asyncio.Event()
        self._accepts: dict[str, None] = {}
        self._rows: dict[str, list[Row]] = {}
        self._due: dict[str, float] = {}
        self._batch = FOLD

    # -- scrapes ----------------------------------------------------------------------------------

    async def scrape(self, accept: str | None) -> tuple[bytes, str]:
        """Return all metrics with their media type. Waits only for the first sample after a pause,
        and never for a database that does not answer."""
        first = self._sample is None or not self._is_scraped
        self._scraped_at = self._clock.monotonic()
        if len(self._accepts) < 4:
            self._accepts[accept or ""] = None
        self._wake.set()
        if self._measuring and first:
            with suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE_S):
                    await self._news.wait()
        media_type = negotiate(accept)[1]
        return self._scrapes.answer(media_type, lambda: self._metrics.expose(accept, self._sample))

    @property
    def _is_scraped(self) -> bool:
        return self._clock.monotonic() - self._scraped_at < SCRAPED_S

    # -- samples ----------------------------------------------------------------------------------

    async def run(self, term: int, placed: Placed) -> None:
        """Run while this daemon leads. placed: jobs with pods, by namespace. Raises
        LeadershipLost."""
        try:
            while True:
                try:
                    async with self._database.dedicated(kind=METRICS, limit_s=MAX_S) as session:
                        self._measuring = True
                        await self._measure_forever(session, term, placed)
                except LeadershipLost:
                    raise
                except OdcError as error:
                    log.warning("metrics.stop", extra={"why": error.message})
                except Exception:
                    # Metrics go stale, but jobs must still be started.
                    log.exception("metrics.failed")
                self._forget()
                await self._clock.sleep(RETRY_S)
        finally:
            self._forget()

    def _forget(self) -> None:
        """Drop the sample, which is no longer true, and wake scrapes that wait for one."""
        self._measuring = False
        self._sample = None
        self._due.clear()
        self._rows.clear()
        self._wake_scrapes()

    def _wake_scrapes(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def _measure_forever(self, session: Session, term: int, placed: Placed) -> None:
        await self._retry_aside(session, term)
        while True:
            self._wake.clear()
            begun = self._clock.monotonic()
            if self._is_scraped:
                await self.measure_once(session, term, placed)
                took_s = self._clock.monotonic() - begun
                await self._clock.sleep(max(EVERY_S, SHARE * took_s) - took_s)
            else:
                await self._fold(session, term)
                with suppress(TimeoutError):
                    async with asyncio.timeout(FOLD_EVERY_S):
                        await self._wake.wait()

    async def measure_once(self, session: Session, term: int, placed: Placed) -> None:
        """Raises LeadershipLost, DatabaseDown."""
        begun, now = self._clock.monotonic(), self._clock.now()
        await self._fold(session, term)
        for name, every_s in self._measures.items():
            if self._due.get(name, begun) <= begun:
                self._due[name] = begun + every_s
                self._rows[name] = await self._measure(session, name)
        job_info = await self._job_info(session, placed())
        rows: list[Row] = [row for rows in self._rows.values() for row in rows]
        rows.append(("odcd_sample_timestamp_seconds", (), now.timestamp()))
        rows.append(("odcd_sample_seconds", (), self._clock.monotonic() - begun))
        if self._metrics.last_pass is not None:
            at, looked = self._metrics.last_pass
            rows.append(("odcd_scheduler_last_success_timestamp_seconds", (), at))
            rows.append(("odcd_scheduler_jobs_considered", (), looked))
        # In a thread: rendering takes a while, and this process must answer others.
        try:
            self._sample = await asyncio.to_thread(_make, rows, job_info, list(self._accepts))
        except Exception as error:
            if not await self._drop_unrenderable(session):
                raise
            log.warning("metrics.rendered_in_part", extra={"why": str(error)})
            return
        self._wake_scrapes()

    async def _drop_unrenderable(self, session: Session) -> bool:
        """Drop the rows of measurements that cannot be rendered, so that the next sample has the
        others. Return whether there were any."""
        dropped = False
        for name, rows in self._rows.items():
            try:
                await asyncio.to_thread(_make, rows, "", list(self._accepts))
            except Exception as error:
                self._note(session, name, error)
                self._rows[name] = []
                dropped = True
        return dropped

    async def _fold(self, session: Session, term: int) -> None:
        """Fold new events into the totals. After a failure, halve the batch until it is only the
        failing event."""
        failed = False
        for _ in range(FOLDS):
            batch = self._batch
            try:
                folded = await session.fetchval(
                    "select odc.fold_tally(p_term => $1, p_limit => $2, p_now => $3)",
                    term, batch, self._clock.now(),
                )  # fmt: skip
                if folded < batch:
                    return
                self._batch = min(FOLD, 2 * batch)
            except LeadershipLost:
                raise
            except Exception as error:
                if not failed or session.closed:
                    self._note(session, "fold_tally", error)
                failed = True
                self._batch = max(1, batch // 2)
                # A statement that was too slow will be slow again: continue with the next sample.
                if isinstance(error, Unavailable):
                    return
                if batch == 1 and not await self._set_aside(session, term):
                    return

    async def _set_aside(self, session: Session, term: int) -> bool:
        """Set aside the next event if it cannot be counted. Return whether folding can continue."""
        try:
            row = await session.fetchrow(
                "select event_id, why from odc.set_event_aside(p_term => $1, p_now => $2)",
                term, self._clock.now(),
            )  # fmt: skip
        except LeadershipLost:
            raise
        except Exception as error:
            self._note(session, "set_event_aside", error)
            return False
        if row is not None:
            log.error("metrics.event_aside", extra={"event_id": row["event_id"], "why": row["why"]})
        return True

    async def _retry_aside(self, session: Session, term: int) -> None:
        try:
            counted = await session.fetchval("select odc.retry_aside(p_term => $1)", term)
        except LeadershipLost:
            raise
        except Exception as error:
            self._note(session, "retry_aside", error)
            return
        if counted:
            log.info("metrics.events_counted", extra={"events": counted})

    async def _measure(self, session: Session, name: str) -> list[Row]:
        try:
            found = await session.fetch(
                f"select metric, labels, value from odc.{name}(p_now => $1)", self._clock.now()
            )
        except Exception as error:
            self._note(session, name, error)
            return []
        return [(row["metric"], row["labels"], row["value"]) for row in found]

    async def _job_info(self, session: Session, placed: Mapping[str, Sequence[int]]) -> str:
        job_ids = [job_id for ids in placed.values() for job_id in ids]
        namespaces = [name for name, ids in placed.items() for _ in ids]
        try:
            return await session.fetchval(
                "select odc.render_job_info(p_job_ids => $1, p_namespaces => $2)",
                job_ids, namespaces,
            )  # fmt: skip
        except Exception as error:
            self._note(session, "render_job_info", error)
            return ""

    def _note(self, session: Session, name: str, error: Exception) -> None:
        """Record a failed or slow measurement; the others continue. Re-raises if the connection is
        closed."""
        if session.closed:
            raise error
        self._metrics.unmeasured(name)
        log.warning("metrics.unmeasured", extra={"measure": name, "why": str(error)})


def _make(rows: Sequence[Row], job_info: str, accepts: Sequence[str]) -> Sample:
    sample = Sample(rows, job_info)
    for accept in accepts:
        sample.render(*negotiate(accept))
    return sample
