"""Test quarantined nodes with canaries. Runs on the leader only; the database decides which
nodes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta

from odcd.clock import Clock
from odcd.errors import RunnerDown
from odcd.executor.base import Executor
from odcd.isolation import Isolation
from odcd.loops.rounds import RoundMetrics, Rounds
from odcd.records.node import CanaryEnd
from odcd.stores.canaries import CanaryStore

log = logging.getLogger(__name__)

LOOK = timedelta(seconds=1)
"""The time between two checks of canaries that are running."""


class Quarantine(Rounds):
    name = "quarantine"

    def __init__(
        self, term: int, store: CanaryStore, executor: Executor, clock: Clock, *, every: timedelta,
        on_change: Callable[[], None], metrics: RoundMetrics | None = None,
    ) -> None:  # fmt: skip
        """every: how often to check whether a canary is due. on_change: called when a node
        returns."""
        super().__init__(clock, every, metrics)
        self._term = term
        self._store = store
        self._executor = executor
        self._on_change = on_change
        self._isolation = Isolation[CanaryEnd](
            self.name, clock, metrics, key=lambda end: end.number
        )

    async def run_once(self) -> float:
        running = await self.try_once()
        pause = min(LOOK, self._every) if running else self._every
        return pause.total_seconds()

    async def try_once(self) -> int:
        """Run and check canaries once; return how many have not ended."""
        canaries = await self._store.take(self._term, self._clock.now())
        try:
            ends = await self._executor.try_nodes(canaries)
        except RunnerDown as error:
            log.warning("quarantine.not_tried", extra={"why": error.message})
            return len(canaries)
        recorded = await self._isolation.each(
            ends, lambda end: self._store.end(self._term, end, self._clock.now())
        )
        if any(end.passed for end in recorded):
            self._on_change()
        return len(canaries) - len(ends)
