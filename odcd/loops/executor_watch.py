"""Keep the executor and the database in step: take over, compare, resign when it is unreachable."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import timedelta

from odcd.engines.base import Engine
from odcd.errors import RunnerDown
from odcd.executor.base import Executor
from odcd.isolation import Isolation, IsolationWatch, is_at_fault
from odcd.loops.election import Leader
from odcd.loops.lead import Lead
from odcd.loops.planner import Planner
from odcd.records.node import NodeReport
from odcd.settings import Settings
from odcd.stores.attempts import AttemptStore
from odcd.stores.store import Store

log = logging.getLogger(__name__)

INVENTORY_EVERY = timedelta(seconds=30)
INVENTORY_GAP_S = 1.0
RUNNER_RETRY_S = 1.0
UNREACHED_LEASES = 2
OUTPUTS_EVERY = timedelta(minutes=10)


class ExecutorWatch:
    """The executor of one term."""

    def __init__(
        self, lead: Lead, leader: Leader, executor: Executor, engine: Engine, store: Store,
        settings: Settings, watch: IsolationWatch | None = None,
    ) -> None:  # fmt: skip
        self._lead = lead
        self._leader = leader
        self._executor = executor
        self._engine = engine
        self._store = store
        self._clock = lead.clock
        self._lease = settings.lease
        self._every = settings.sweep
        self._isolation = Isolation[NodeReport](
            "inventory", lead.clock, watch, key=lambda node: node.name
        )
        self._most_output_bytes = settings.jobs.output_total_mib << 20

    async def take_over(self, planner: Planner) -> None:
        """Take over the executor; retry until it is reachable."""
        lead, executor = self._lead, self._executor
        begun = self._clock.monotonic()
        while True:
            try:
                await self._engine.claim(lead.term)
                await executor.open(lead.term)
                await self.register_once()
                await take_over(lead, self._store.attempts, executor, planner)
                took_ms = round((self._clock.monotonic() - begun) * 1000)
                log.info("executor.ready", extra={"took_ms": took_ms})
                return
            except RunnerDown as error:
                log.error("executor.down", extra={"why": error.message})
                patience_s = UNREACHED_LEASES * self._lease.total_seconds()
                if executor.reconciles and self._clock.monotonic() - begun > patience_s:
                    await self._leader.resign(lead, error.message)
                await self._clock.sleep(RUNNER_RETRY_S)

    async def keep_inventory(self) -> None:
        while True:
            try:
                async with asyncio.timeout(INVENTORY_EVERY.total_seconds()):
                    await self._executor.nodes_changed()
            except TimeoutError:
                pass
            await self.register_once()
            await self._clock.sleep(INVENTORY_GAP_S)

    async def reconcile(self) -> None:
        """Periodically compare what runs with what should run, regardless of notifications."""
        while True:
            await self._clock.sleep(self._every.total_seconds())
            try:
                await self._executor.adopt(
                    lambda: self._store.attempts.list_live_members(self._lead.term)
                )
            except RunnerDown as error:
                log.warning("executor.not_compared", extra={"why": error.message})

    async def limit_outputs(self) -> None:
        """Periodically replace output that the database keeps above its limit."""
        while True:
            gone = await self._store.outputs.drop(self._lead.term, self._most_output_bytes)
            if gone:
                log.info("executor.outputs_dropped", extra={"members": gone})
            await self._clock.sleep(OUTPUTS_EVERY.total_seconds())

    async def resign_when_unreached(self) -> None:
        """Resign when the systems that run the jobs are unreachable: another daemon may reach
        them."""
        patience_s = UNREACHED_LEASES * self._lease.total_seconds()
        while True:
            await self._clock.sleep(min(1.0, patience_s / 5))
            if self._executor.unreached_s > patience_s:
                await self._leader.resign(
                    self._lead,
                    f"the executor has not answered for {self._executor.unreached_s:.0f} s",
                )

    async def register_once(self) -> None:
        """Store the node inventory. If it is unavailable, the nodes keep their last known state."""
        try:
            nodes = await self._executor.inventory()
        except RunnerDown as error:
            log.warning("executor.no_inventory", extra={"why": error.message})
            return
        ready = self._isolation.ready(nodes)
        try:
            # While a node is set aside it keeps its last state, and so do nodes that are missing.
            await self._store_nodes(ready, whole=len(ready) == len(nodes))
        except Exception as error:
            if not is_at_fault(error):
                raise
            await self._isolation.together(nodes, lambda some: self._store_nodes(some, whole=False))
            if not len(self._isolation):
                raise
        else:
            self._isolation.keep_only(nodes)
            for node in ready if len(self._isolation) else ():
                self._isolation.clear(node)

    async def _store_nodes(self, nodes: Sequence[NodeReport], *, whole: bool) -> None:
        await self._store.nodes.register(
            self._lead.term, nodes, self._clock.now(), whole=whole,
            keep=self._executor.keeps_declared,
        )  # fmt: skip


async def take_over(
    lead: Lead, attempts: AttemptStore, executor: Executor, planner: Planner
) -> None:
    """Make the executor match the database: a new leader adopts the running jobs.

    Jobs that the last leader placed but may not have sent are sent again, which is harmless if it
    did. Jobs that must end are not: the last leader may have removed what ran for them before it
    was recorded. After that, every member that is live in the database either runs, or the executor
    reports it as gone.
    """
    await planner.send_unstarted()
    await executor.adopt(lambda: attempts.list_live_members(lead.term))
