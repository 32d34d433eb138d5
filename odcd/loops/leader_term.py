"""The leader's loops, run side by side while it leads. The first error ends them all."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from odcd.builds.worker import BuildWorker
from odcd.database.pool import Database
from odcd.disks.worker import DiskWorker
from odcd.engines.base import Engine
from odcd.executor.base import Executor
from odcd.gpu_use.meter import GpuUse
from odcd.history.partitions import Partitions
from odcd.history.retention import Retention
from odcd.isolation import keep
from odcd.jobs.cron_rules import CronRules
from odcd.loops.cron import Cron
from odcd.loops.elastic import Elastic
from odcd.loops.election import Leader
from odcd.loops.executor_watch import ExecutorWatch
from odcd.loops.expiry_notices import ExpiryNotices
from odcd.loops.forecaster import Forecaster
from odcd.loops.idle_monitor import IdleMonitor
from odcd.loops.jupyter import JupyterControl
from odcd.loops.lead import Lead, Pass
from odcd.loops.node_notices import NodeNotices
from odcd.loops.notifications import notification_loops
from odcd.loops.planner import Planner
from odcd.loops.quarantine import Quarantine
from odcd.loops.reconciler import Reconciler
from odcd.loops.report_limit import ReportLimit
from odcd.loops.steps import StepRecorder
from odcd.metrics import Metrics
from odcd.metrics.sampler import Sampler
from odcd.settings import Settings
from odcd.stores.store import Store

log = logging.getLogger(__name__)

Loop = Callable[[], Awaitable[None]]


class Woken(Protocol):
    """A loop that runs when it is woken by a change, and at regular intervals."""

    def wake(self) -> None: ...

    async def run(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Objects of the daemon that every term uses."""

    leader: Leader
    engine: Engine
    settings: Settings
    database: Database
    """The leader's own connections."""
    metrics: Metrics
    sampler: Sampler
    cron: CronRules
    on_pass: Callable[[Pass], None]
    """Called after every pass."""
    on_step_end: Callable[[int], None]
    """Called with the id of a job one of whose steps has ended."""


class Leading:
    """One term of one daemon. run() is called once."""

    def __init__(self, lead: Lead, executor: Executor, services: Services) -> None:
        settings, engine = services.settings, services.engine
        database, metrics = services.database, services.metrics
        store, clock = Store(database), lead.clock
        self._lead = lead
        self._engine = engine
        self._settings = settings
        self._store = store
        self._clock = clock
        self._metrics = metrics
        self._sampler = services.sampler
        self._on_pass = services.on_pass
        self._cron = services.cron
        self._commands = False
        self._executor = executor
        self._watch = ExecutorWatch(
            lead, services.leader, executor, engine, store, settings, metrics.rounds
        )
        term, every = lead.term, settings.sweep
        self._planner = Planner(
            lead, store.dispatches, executor, clock, every, self._note_pass, self._fail_start,
            metrics.rounds,
        )  # fmt: skip
        self._reconciler = Reconciler(
            lead, store, executor, clock,
            grace=settings.grace, node_grace=engine.node_grace, quarantine=engine.quarantine,
            canaries=engine.canaries, every=every, stale_after=settings.reservation_wait,
            on_change=self._planner.wake, watch=metrics.rounds,
        )  # fmt: skip
        rounds = metrics.rounds
        dev_servers = store.dev_servers, executor.dev_servers
        self._quarantine = Quarantine(
            term, store.canaries, executor, clock, every=every, on_change=self._planner.wake,
            metrics=rounds,
        )  # fmt: skip
        self._forecaster = Forecaster(term, database, clock, every, metrics.foresaw, rounds)
        self._partitions = Partitions(database, clock)
        self._retention = Retention(term, database, clock, settings.history, rounds)
        self._idle_monitor = IdleMonitor(term, *dev_servers, clock, settings.look, rounds)
        self._disks: DiskWorker | None = None
        self._builds: BuildWorker | None = None
        self._woken: dict[str, Woken] = {
            "planner": self._planner,
            "reconciler": self._reconciler,
            "expiry": ExpiryNotices(term, *dev_servers, clock, every, rounds),
            "node-notices": NodeNotices(term, *dev_servers, clock, every, rounds),
        }
        kubernetes = settings.kubernetes if settings.executor == "kubernetes" else None
        self._gpu_use = self._woken["gpu-use"] = GpuUse(
            term, store.gpu_use, clock, settings.gpu_use,
            namespaces=kubernetes.namespaces if kubernetes else None, every=every,
            calls=metrics.backend("prometheus"), nvml_calls=metrics.backend("nvml"),
            watch=rounds,
        )  # fmt: skip
        self._steps = StepRecorder(
            term, store.steps, executor, clock, services.on_step_end
        )  # fmt: skip
        if engine.ssh:
            self._woken["jupyter"] = JupyterControl(term, *dev_servers, clock, every, rounds)

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

    async def _fail_start(self, job_id: int, why: str) -> None:
        now = self._clock.now()
        await self._store.attempts.fail_start(self._lead.term, job_id, why, now)

    def _note_pass(self, done: Pass) -> None:
        self._on_pass(done)
        self._forecaster.wake()
        if done.started:
            self._reconciler.note_starts()
            self._gpu_use.wake()
            if self._disks is not None:
                self._disks.wake()

    async def run(self) -> None:
        """Raises LeadershipLost or DatabaseDown."""
        executor = self._executor
        try:
            await self._watch.take_over(self._planner)
            self._commands = True
            self._metrics.leading(True)
            async with asyncio.TaskGroup() as group:
                for name, loop in self._loops(executor).items():
                    group.create_task(
                        keep(name, loop, self._clock, self._metrics.rounds), name=name
                    )
        finally:
            self._commands = False
            self._metrics.leading(False)
            self._metrics.rounds.end_term()
            await executor.close()

    def _loops(self, executor: Executor) -> dict[str, Loop]:
        lead = self._lead
        loops: dict[str, Loop] = {name: loop.run for name, loop in self._woken.items()}
        loops |= {
            "forecaster": self._forecaster.run,
            "idles": self._idle_monitor.run,
            "partitions": self._partitions.run,
            "retention": self._retention.run,
            "steps": self._steps.run,
            "reports": ReportLimit(self._store.leader, self._clock).run,
            "metrics": lambda: self._sampler.run(lead.term, executor.placed),
            "inventory": self._watch.keep_inventory,
        }
        loops["cron"] = Cron(
            lead.term, self._store.cron, self._cron, self._clock, leads=lambda: lead.certain,
            on_submit=self._planner.wake, metrics=self._metrics.rounds,
        ).run  # fmt: skip
        for one in notification_loops(
            lead.term, self._store.notifications, self._clock, self._settings.notify,
            self._settings.sweep, lambda: lead.certain, self._metrics.rounds,
        ):  # fmt: skip
            loops[one.name] = one.run
        if self._settings.disks.aws_region is not None:
            loops["disks"] = lambda: self._mind_disks(lead)
        if self._settings.elastic.elastic_cluster is not None:
            loops["elastic"] = lambda: self._mind_elastic(lead)
        if self._settings.builds.registry is not None:
            loops["builds"] = lambda: self._mind_builds(lead)
        if self._engine.canaries:
            loops["quarantine"] = self._quarantine.run
        if executor.reconciles:
            loops["reconcile"] = self._watch.reconcile
            loops["reach"] = self._watch.resign_when_unreached
            loops["outputs"] = self._watch.limit_outputs
        return loops

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
            own.efs_id, lambda: lead.certain, self._metrics.rounds,
        )  # fmt: skip
        try:
            await self._disks.run()
        finally:
            self._disks = None
            await cloud.close()

    async def _mind_elastic(self, lead: Lead) -> None:
        from odcd.aws.groups import Groups

        own, disks = self._settings.elastic, self._settings.disks
        cluster = self._engine.elastic_nodes()
        assert own.elastic_cluster is not None
        assert cluster is not None
        cloud = Groups(
            own.elastic_cluster, disks.aws_region, disks.aws_endpoint,
            self._metrics.backend("aws"),
        )  # fmt: skip
        await cloud.open()
        try:
            await Elastic(
                lead.term, self._store.elastic, cloud, cluster, self._clock, own.elastic_every,
                leads=lambda: lead.certain, metrics=self._metrics.rounds,
            ).run()  # fmt: skip
        finally:
            await cloud.close()

    async def _mind_builds(self, lead: Lead) -> None:
        builder = await self._engine.make_builder(lead)
        self._builds = BuildWorker(
            lead.term, self._store.builds, builder, self._clock, every=self._settings.sweep,
            at_once=self._settings.builds.at_once, on_change=self._planner.wake,
            watch=self._metrics.rounds,
        )  # fmt: skip
        try:
            await self._builds.run()
        finally:
            self._builds = None
            await builder.close()
