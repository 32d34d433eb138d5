"""The leader's loops, run side by side while it leads. The first error ends them all."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Protocol

from odcd.builds.worker import BuildWorker
from odcd.database.pool import Database
from odcd.disks.worker import DiskWorker
from odcd.engines.base import Engine
from odcd.errors import DatabaseBusy, RunnerDown
from odcd.executor.base import Executor
from odcd.gpu_use.meter import GpuUse
from odcd.history.partitions import Partitions
from odcd.history.retention import Retention
from odcd.loops.election import Lead, Leader, Pass
from odcd.loops.expiry_notices import Warner
from odcd.loops.forecaster import Forecaster
from odcd.loops.idle_monitor import Idles
from odcd.loops.jupyter import Jupyters
from odcd.loops.planner import Planner
from odcd.loops.quarantine import Quarantine
from odcd.loops.reconciler import Reaper
from odcd.metrics import Metrics
from odcd.metrics.sampler import Sampler
from odcd.settings import Settings
from odcd.stores.attempts import AttemptStore
from odcd.stores.store import Store

log = logging.getLogger(__name__)

INVENTORY_EVERY = timedelta(seconds=30)
INVENTORY_GAP_S = 1.0
RUNNER_RETRY_S = 1.0
UNREACHED_LEASES = 2
BUSY_RETRY_S = 1.0

Loop = Callable[[], Awaitable[None]]


class Woken(Protocol):
    """A loop that runs when it is woken by a change, and at regular intervals."""

    def wake(self) -> None: ...

    async def run(self) -> None: ...


class Leading:
    """One term of one daemon. run() is called once."""

    def __init__(
        self, lead: Lead, leader: Leader, executor: Executor, engine: Engine, settings: Settings,
        database: Database, metrics: Metrics, sampler: Sampler, on_pass: Callable[[Pass], None],
    ) -> None:  # fmt: skip
        """database: the leader's own connections. on_pass: called after every pass."""
        store, clock = Store(database), lead.clock
        self._lead = lead
        self._leader = leader
        self._engine = engine
        self._settings = settings
        self._store = store
        self._clock = clock
        self._metrics = metrics
        self._sampler = sampler
        self._on_pass = on_pass
        self._commands = False
        self._executor = executor
        term, every = lead.term, settings.sweep
        self._planner = Planner(lead, store.dispatches, executor, clock, every, self._note_pass)
        self._reaper = Reaper(
            lead, store, executor, clock,
            grace=settings.grace, node_grace=engine.node_grace, quarantine=engine.quarantine,
            canaries=engine.canaries, every=every, stale_after=settings.reservation_wait,
            on_change=self._planner.wake,
        )  # fmt: skip
        rounds = metrics.rounds
        self._quarantine = Quarantine(
            term, store.canaries, executor, clock, every=every, on_change=self._planner.wake,
            metrics=rounds,
        )  # fmt: skip
        self._forecaster = Forecaster(term, database, clock, every, metrics.foresaw)
        self._partitions = Partitions(database, clock)
        self._retention = Retention(term, database, clock, settings.history)
        self._idles = Idles(term, store.dev_servers, executor, clock, settings.look, rounds)
        self._disks: DiskWorker | None = None
        self._builds: BuildWorker | None = None
        self._woken: dict[str, Woken] = {
            "planner": self._planner,
            "reaper": self._reaper,
            "warner": Warner(term, store.dev_servers, executor, clock, every, rounds),
        }
        kubernetes = settings.kubernetes if settings.executor == "kubernetes" else None
        self._gpu_use = self._woken["gpu-use"] = GpuUse(
            term, store.gpu_use, clock, settings.gpu_use,
            namespaces=kubernetes.namespaces if kubernetes else None, every=every,
            calls=metrics.backend("prometheus"), nvml_calls=metrics.backend("nvml"),
        )  # fmt: skip
        if engine.ssh:
            servers = store.dev_servers
            self._woken["jupyter"] = Jupyters(term, servers, executor, clock, every, rounds)

    @property
    def executor(self) -> Executor | None:
        """The executor, once this daemon commands it."""
        return self._executor if self._commands else None

    def wake(self) -> None:
        """Called when the database notifies that something changed."""
        for loop in self._woken.values():
            loop.wake()
        if self._disks is not None:
            self._disks.wake()
        if self._builds is not None:
            self._builds.wake()

    def wake_planner(self) -> None:
        self._planner.wake()

    def _note_pass(self, done: Pass) -> None:
        self._on_pass(done)
        self._forecaster.wake()
        if done.started:
            self._reaper.note_starts()
            self._gpu_use.wake()
            if self._disks is not None:
                self._disks.wake()

    async def run(self) -> None:
        """Raises LeadershipLost or DatabaseDown."""
        lead, executor = self._lead, self._executor
        try:
            await self._command(lead, executor, self._planner)
            self._commands = True
            self._metrics.leading(True)
            async with asyncio.TaskGroup() as group:
                for name, loop in self._loops(executor).items():
                    group.create_task(self._unless_busy(name, loop), name=name)
        finally:
            self._commands = False
            self._metrics.leading(False)
            await executor.close()

    def _loops(self, executor: Executor) -> dict[str, Loop]:
        lead = self._lead
        loops: dict[str, Loop] = {name: loop.run for name, loop in self._woken.items()}
        loops |= {
            "forecaster": self._forecaster.run,
            "idles": self._idles.run,
            "partitions": self._partitions.run,
            "retention": self._retention.run,
            "metrics": lambda: self._sampler.run(lead.term, executor.placed),
            "inventory": lambda: self._keep_inventory(executor, lead.term),
        }
        if self._settings.disks.aws_region is not None:
            loops["disks"] = lambda: self._mind_disks(lead)
        if self._settings.builds.registry is not None:
            loops["builds"] = lambda: self._mind_builds(lead)
        if self._engine.canaries:
            loops["quarantine"] = self._quarantine.run
        if executor.reconciles:
            loops["reconcile"] = lambda: self._reconcile(executor, lead)
            loops["reach"] = lambda: self._mind_reach(executor, lead)
        return loops

    async def _unless_busy(self, name: str, loop: Loop) -> None:
        """Run a loop, and restart it when a statement waited too long. Such a statement changed
        nothing and is no reason to hand over leadership."""
        while True:
            try:
                await loop()
                return
            except* DatabaseBusy as errors:
                why = _message(errors)
            log.warning("leader.loop_busy", extra={"loop": name, "why": why})
            await self._clock.sleep(BUSY_RETRY_S)

    async def _mind_disks(self, lead: Lead) -> None:
        # An optional dependency, imported only where it is used; odcd.daemon has imported it
        # already.
        from odcd.aws.disks import Aws

        own, claims = self._settings.disks, self._engine.claims()
        assert claims is not None
        cloud = Aws(
            own,
            await self._store.cluster.get_server_id(),
            self._clock,
            calls=self._metrics.backend("aws"),
        )
        await cloud.open()
        self._disks = DiskWorker(
            lead.term, self._store.disk_work, cloud, claims, self._clock, self._settings.sweep,
            own.efs_id, lambda: lead.certain,
        )  # fmt: skip
        try:
            await self._disks.run()
        finally:
            self._disks = None
            await cloud.close()

    async def _mind_builds(self, lead: Lead) -> None:
        builder = await self._engine.make_builder(lead)
        self._builds = BuildWorker(
            lead.term, self._store.builds, builder, self._clock, every=self._settings.sweep,
            at_once=self._settings.builds.at_once, on_change=self._planner.wake,
        )  # fmt: skip
        try:
            await self._builds.run()
        finally:
            self._builds = None
            await builder.close()

    async def _command(self, lead: Lead, executor: Executor, planner: Planner) -> None:
        """Take over the executor; retry until it is reachable."""
        begun = self._clock.monotonic()
        while True:
            try:
                await self._engine.claim(lead.term)
                await executor.open(lead.term)
                await self._register(executor, lead.term)
                await take_over(lead, self._store.attempts, executor, planner)
                took_ms = round((self._clock.monotonic() - begun) * 1000)
                log.info("executor.ready", extra={"took_ms": took_ms})
                return
            except RunnerDown as error:
                log.error("executor.down", extra={"why": error.message})
                patience_s = UNREACHED_LEASES * self._settings.lease.total_seconds()
                if executor.reconciles and self._clock.monotonic() - begun > patience_s:
                    await self._leader.resign(lead, error.message)
                await self._clock.sleep(RUNNER_RETRY_S)

    async def _keep_inventory(self, executor: Executor, term: int) -> None:
        while True:
            try:
                async with asyncio.timeout(INVENTORY_EVERY.total_seconds()):
                    await executor.nodes_changed()
            except TimeoutError:
                pass
            await self._register(executor, term)
            await self._clock.sleep(INVENTORY_GAP_S)

    async def _reconcile(self, executor: Executor, lead: Lead) -> None:
        """Periodically compare what runs with what should run, regardless of notifications."""
        while True:
            await self._clock.sleep(self._settings.sweep.total_seconds())
            try:
                await executor.adopt(lambda: self._store.attempts.list_live_members(lead.term))
            except RunnerDown as error:
                log.warning("executor.not_compared", extra={"why": error.message})

    async def _mind_reach(self, executor: Executor, lead: Lead) -> None:
        """Resign when the systems that run the jobs are unreachable: another daemon may reach
        them."""
        patience_s = UNREACHED_LEASES * self._settings.lease.total_seconds()
        while True:
            await self._clock.sleep(min(1.0, patience_s / 5))
            if executor.unreached_s > patience_s:
                await self._leader.resign(
                    lead, f"the executor has not answered for {executor.unreached_s:.0f} s"
                )

    async def _register(self, executor: Executor, term: int) -> None:
        """Store the node inventory. If it is unavailable, the nodes keep their last known state."""
        try:
            nodes = await executor.inventory()
        except RunnerDown as error:
            log.warning("executor.no_inventory", extra={"why": error.message})
            return
        await self._store.nodes.register(term, nodes, self._clock.now(), whole=True)


async def take_over(
    lead: Lead, attempts: AttemptStore, executor: Executor, planner: Planner
) -> None:
    """Make the executor match the database: a new leader adopts the running jobs.

    Jobs that the last leader placed but may not have sent are sent again, which is harmless if it
    did. After that, every member that is live in the database either runs, or the executor reports
    it as gone.
    """
    live = await attempts.list_live_members(lead.term)
    unsent = sorted({job_id for job_id, _, _, started in live if not started})
    if unsent:
        await planner.send(unsent)
    await executor.adopt(lambda: attempts.list_live_members(lead.term))


def _message(errors: BaseExceptionGroup[DatabaseBusy]) -> str:
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error)
