"""Current GPU usage of running jobs: one query to Prometheus per minute for all jobs."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta

from odcd.clock import Clock
from odcd.gpu_use.prometheus import (
    Prometheus,
    PrometheusDown,
    PrometheusRefused,
    Sample,
)
from odcd.gpu_use.queries import Labels, Window, ask_live, read_live
from odcd.isolation import Isolation, IsolationWatch
from odcd.records.gpu_use import CurrentUsage, attempt_of, usage_by_job
from odcd.stores.gpu_use import GpuUseStore

log = logging.getLogger(__name__)

EVERY = timedelta(seconds=60)
PATIENCE = 3
"""Missed queries before the usage counts as unknown."""
LEAST_S = 1.0


class LiveUse:
    def __init__(
        self, term: int, store: GpuUseStore, prometheus: Prometheus, labels: Labels, clock: Clock,
        *, scrape: timedelta, idle_ratio: float, every: timedelta = EVERY,
        watch: IsolationWatch | None = None,
    ) -> None:  # fmt: skip
        self._term = term
        self._store = store
        self._prometheus = prometheus
        self._labels = labels
        self._clock = clock
        # Windows overlap by one scrape, so that no sample falls between two of them.
        self._length = every + scrape
        self._idle_ratio = idle_ratio
        self._every = every
        self._isolation = Isolation[CurrentUsage]("gpu-use", clock, watch, key=attempt_of)

    async def run(self) -> None:
        """Raises LeadershipLost or DatabaseDown."""
        while True:
            began_s = self._clock.monotonic()
            try:
                await self.look_once()
            except (PrometheusDown, PrometheusRefused) as error:
                # The stored values expire by themselves.
                log.warning("gpu_use.not_sampled", extra={"why": str(error)})
            took_s = self._clock.monotonic() - began_s
            await self._clock.sleep(max(LEAST_S, self._every.total_seconds() - took_s))

    async def look_once(self) -> int:
        """Query once; return how many jobs were seen. Raises PrometheusDown, PrometheusRefused."""
        now = self._clock.now()
        window = Window(end=now, length=self._length)
        samples = await self._prometheus.query("live", ask_live(self._labels, window), now)
        # In a thread: with thousands of GPUs this would delay a scheduling pass.
        usage = await asyncio.to_thread(self._by_job, samples)
        self._isolation.keep_only(usage)
        await self._isolation.together(
            usage,
            lambda some: self._store.record_current(
                self._term, some, now - self._length, now + PATIENCE * self._every, now
            ),
        )
        return len(usage)

    def _by_job(self, samples: list[Sample]) -> list[CurrentUsage]:
        return usage_by_job(read_live(samples, self._labels), self._idle_ratio)
