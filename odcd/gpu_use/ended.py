"""GPU usage of ended attempts: query and store it for each attempt whose usage is missing.

If the daemon is killed, the next leader finds the same attempts. Stored usage is never lost.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta

from odcd.clock import Clock
from odcd.gpu_use.prometheus import (
    Prometheus,
    PrometheusDown,
    PrometheusFailed,
    PrometheusRefused,
)
from odcd.gpu_use.queries import Labels, ask_ended, read_ended
from odcd.isolation import Isolation, IsolationWatch, explain, is_at_fault
from odcd.records.gpu_use import AttemptUsage, UnmeasuredAttempt, attempt_of
from odcd.stores.gpu_use import GpuUseStore

log = logging.getLogger(__name__)

EVERY_S = 15.0
MAX_RETRY_S = 300.0
AT_ONCE = 20
"""Attempts per query."""
SCRAPES = 2
"""Scrapes after the end of an attempt until Prometheus has its last samples."""
PATIENCE = timedelta(minutes=10)
"""Data missing from Prometheus this long after the end will never arrive."""
AGAIN, MUCH_LATER = timedelta(minutes=2), timedelta(hours=1)


class EndedUse:
    def __init__(
        self, term: int, store: GpuUseStore, prometheus: Prometheus | None, labels: Labels,
        clock: Clock, *, scrape: timedelta, kept: timedelta, watch: IsolationWatch | None = None,
    ) -> None:  # fmt: skip
        """prometheus None: only NVML's samples exist, and scrape is the time until they are
        written. kept: how long Prometheus keeps its data."""
        self._term = term
        self._store = store
        self._prometheus = prometheus
        self._labels = labels
        self._clock = clock
        self._scrape = scrape
        self._kept = kept
        self._isolation = Isolation[AttemptUsage | UnmeasuredAttempt](
            "gpu-use", clock, watch, key=attempt_of
        )
        self._every_s = min(EVERY_S, scrape.total_seconds())

    async def run(self) -> None:
        """Raises LeadershipLost or DatabaseDown."""
        pause_s = self._every_s
        while True:
            try:
                await self.settle_once()
                pause_s = self._every_s
            except PrometheusDown as error:
                log.warning("gpu_use.prometheus_down", extra={"why": str(error)})
                pause_s = min(2 * pause_s, MAX_RETRY_S)
            await self._clock.sleep(pause_s)

    async def settle_once(self) -> int:
        """Store the usage of ended attempts as far as it is known; return how many were stored.
        Raises PrometheusDown."""
        stored = 0
        while True:
            now = self._clock.now()
            # Attempts whose usage cannot be stored stay at the head of the list.
            limit = AT_ONCE + len(self._isolation)
            owed = await self._store.list_owed(self._term, now - SCRAPES * self._scrape, limit, now)
            known, to_query = self._divide(self._ready(owed), now)
            # Before the query, because Prometheus may be down.
            stored += await self._write(known, now)
            if to_query:
                assert self._prometheus is not None
                stored += await self._write(await self._ask(self._prometheus, to_query, now), now)
            if len(owed) < limit or limit < AT_ONCE + len(self._isolation):
                return stored

    def _ready(self, owed: Sequence[UnmeasuredAttempt]) -> list[UnmeasuredAttempt]:
        ready = {attempt_of(one) for one in self._isolation.ready(owed)}
        return [one for one in owed if attempt_of(one) in ready]

    async def _write(self, found: Sequence[AttemptUsage], now: datetime) -> int:
        stored = 0

        async def save(some: Sequence[AttemptUsage | UnmeasuredAttempt]) -> None:
            nonlocal stored
            usage = [one for one in some if isinstance(one, AttemptUsage)]
            try:
                stored += await self._store.save(self._term, usage, now)
            except Exception as error:
                if len(some) > 1 or not is_at_fault(error):
                    raise
                why = f"odc could not store it: {explain(error)}"
                job_id, attempt = some[0].job_id, some[0].attempt
                without = AttemptUsage(job_id=job_id, attempt=attempt, gave_up=why)
                stored += await self._store.save(self._term, [without], now)
                self._isolation.report((job_id, attempt), error, job_id=job_id)

        await self._isolation.together(found, save, job_id=lambda one: one.job_id)
        return stored

    def _divide(
        self, owed: Sequence[UnmeasuredAttempt], now: datetime
    ) -> tuple[list[AttemptUsage], list[UnmeasuredAttempt]]:
        """Split the attempts into those whose result is known and those to query Prometheus for."""
        known: list[AttemptUsage] = []
        to_query: list[UnmeasuredAttempt] = []
        for one in owed:
            if one.source == "nvml":
                known.append(_as_summed(one))
            elif one.ended_at < now - self._kept:
                days = self._kept.total_seconds() / 86_400
                known.append(
                    _without(one, f"Prometheus was not reached in the {days:g} days it keeps")
                )
            elif self._prometheus is None:
                # Another leader may be configured with a Prometheus.
                known.append(_again(one, now + MUCH_LATER))
            else:
                to_query.append(one)
        return known, to_query

    async def _ask(
        self, prometheus: Prometheus, owed: Sequence[UnmeasuredAttempt], now: datetime
    ) -> list[AttemptUsage]:
        """Query the attempts together. If Prometheus refuses, split them, and at last use fewer
        samples."""
        try:
            return await self._ask_at_once(prometheus, owed, now)
        except PrometheusRefused:
            if len(owed) > 1:
                half = len(owed) // 2
                return [
                    *await self._ask(prometheus, owed[:half], now),
                    *await self._ask(prometheus, owed[half:], now),
                ]
        try:
            return await self._ask_at_once(prometheus, owed, now, coarse=True)
        except PrometheusFailed as error:
            # Keep trying while Prometheus keeps the data: the failure is temporary and not caused
            # by the attempt.
            log.warning("gpu_use.not_stored", extra={"job_id": owed[0].job_id, "why": str(error)})
            young = now < owed[0].ended_at + PATIENCE
            return [_again(owed[0], now + (AGAIN if young else MUCH_LATER))]
        except PrometheusRefused as error:
            log.warning("gpu_use.refused", extra={"job_id": owed[0].job_id, "why": str(error)})
            return [self._later(owed[0], now, str(error))]

    async def _ask_at_once(
        self,
        prometheus: Prometheus,
        owed: Sequence[UnmeasuredAttempt],
        now: datetime,
        *,
        coarse: bool = False,
    ) -> list[AttemptUsage]:
        question = ask_ended(self._labels, owed, self._scrape, coarse=coarse)
        samples = await prometheus.query("ended", question, now)
        found = read_ended(samples, owed, self._scrape, coarse=coarse)
        seen = {(f.job_id, f.attempt): f for f in found}
        return [seen.get((one.job_id, one.attempt)) or self._later(one, now, "") for one in owed]

    def _later(self, one: UnmeasuredAttempt, now: datetime, why: str) -> AttemptUsage:
        """Schedule another query, or give up with the reason."""
        if now < one.ended_at + PATIENCE:
            return _again(one, now + AGAIN)
        if why:
            return _without(one, f"the query to Prometheus failed: {why}")
        if one.duration <= 2 * SCRAPES * self._scrape:
            return _without(one, "it ran too briefly to be measured")
        return _without(one, "Prometheus has no DCGM series of its GPUs")


def _as_summed(one: UnmeasuredAttempt) -> AttemptUsage:
    if one.covered_s > 0:
        return AttemptUsage(job_id=one.job_id, attempt=one.attempt)
    return _without(one, "NVML was not sampled while it ran")


def _again(one: UnmeasuredAttempt, at: datetime) -> AttemptUsage:
    return AttemptUsage(job_id=one.job_id, attempt=one.attempt, again_at=at)


def _without(one: UnmeasuredAttempt, why: str) -> AttemptUsage:
    return AttemptUsage(job_id=one.job_id, attempt=one.attempt, gave_up=why)
