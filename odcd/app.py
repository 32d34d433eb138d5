"""The one place that constructs objects; owns the daemon's TaskGroup."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Awaitable, Callable
from datetime import timedelta

from odcd.api.app import create_app
from odcd.api.context import Api
from odcd.api.server import HttpServer
from odcd.clock import Clock, SystemClock
from odcd.db import Database
from odcd.engine import make_engine
from odcd.errors import RunnerDown
from odcd.events import EventHub
from odcd.executor.base import Executor
from odcd.forecaster import Forecaster
from odcd.leader import Lead, Leader, Pass
from odcd.metrics import Metrics
from odcd.planner import Planner
from odcd.postgres import EmbeddedPostgres
from odcd.quarantine import Quarantine
from odcd.reaper import Reaper
from odcd.settings import Settings
from odcd.store import Store
from odcd.submission import SubmitBatcher

log = logging.getLogger(__name__)

CHANNEL = "odc"
INVENTORY_EVERY = timedelta(seconds=30)
INVENTORY_GAP_S = 1.0
RUNNER_RETRY_S = 1.0
UNREACHED_LEASES = 2

Launcher = Callable[[], Awaitable[None]]


async def run(
    settings: Settings, dsn: str, postgres: EmbeddedPostgres | None, launch_runner: Launcher
) -> None:
    """Be a daemon until SIGTERM or SIGINT; then let go cleanly: jobs and their runner go on.

    Raises OtherHost when the database belongs to another machine's local executor, OdcError when an
    address for HTTP cannot be had.
    """
    clock = SystemClock()
    async with Database(dsn) as database:
        daemon = Daemon(settings, database, clock, launch_runner)
        await daemon.run(postgres)


class Daemon:
    """What lives as long as the process; what lives as long as a term is made in _lead."""

    def __init__(
        self, settings: Settings, database: Database, clock: Clock, launch_runner: Launcher
    ) -> None:
        self._settings = settings
        self._database = database
        self._clock = clock
        self._store = Store(database)
        self._events = EventHub(self._store, clock)
        self._metrics = Metrics()
        self._leader = Leader(database, clock, settings.lease, self._lead)
        self._planner: Planner | None = None
        self._forecaster: Forecaster | None = None
        self._reaper: Reaper | None = None
        self._executor: Executor | None = None
        self._engine = make_engine(settings, self._store, clock, launch_runner)
        as_root = settings.socket_mode == 0o666
        self._http = HttpServer(
            create_app(
                Api(
                    store=self._store,
                    batcher=SubmitBatcher(self._store, clock),
                    events=self._events,
                    clock=clock,
                    wake=self._wake_planner,
                    executor_of=lambda: self._executor or self._engine.reader(),
                    listening=lambda: database.listening(CHANNEL),
                    led=lambda: self._executor is not None or self._leader.follows,
                    metrics=self._metrics,
                    own_uid=os.getuid(),
                    check_job=self._engine.check_job,
                    operators=settings.operators,
                    serves_uid=None if as_root or self._engine.runs_as_anyone else os.getuid(),
                )
            ),
            path=settings.socket,
            mode=settings.socket_mode,
            listen=settings.listen,
        )

    async def run(self, postgres: EmbeddedPostgres | None) -> None:
        await self._engine.prepare()
        self._http.bind()
        stopping = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopping.set)
        try:
            await self._serve(postgres, stopping)
        finally:
            await self._engine.close()

    async def _serve(self, postgres: EmbeddedPostgres | None, stopping: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            background = [
                group.create_task(self._database.listen(CHANNEL, self._wake, self._clock)),
                group.create_task(self._events.run(), name="events"),
                group.create_task(self._leader.run(), name="leader"),
            ]
            if postgres is not None:
                background.append(group.create_task(postgres.watch(self._clock), name="postgres"))
            serving = group.create_task(self._http.run(), name="http")
            await stopping.wait()
            log.info("daemon.stops")
            self._events.close()
            self._leader.stop()
            self._http.stop()
            await serving
            for task in background:
                task.cancel()

    def _wake(self) -> None:
        """The database says that something changed."""
        self._events.wake()
        self._wake_planner()
        if self._reaper is not None:
            self._reaper.wake()

    def _note_pass(self, done: Pass) -> None:
        self._metrics.passed(done.took_ms / 1000, len(done.started))
        if done.started:
            self._events.wake()
            if self._reaper is not None:
                self._reaper.note_starts()
        if self._forecaster is not None:
            self._forecaster.wake()

    def _wake_planner(self) -> None:
        if self._planner is not None:
            self._planner.wake()

    async def _lead(self, lead: Lead) -> None:
        """Everything that only the leader does, until leadership is lost."""
        executor = await self._engine.make(lead)
        planner = Planner(
            lead, self._store, executor, self._clock, self._settings.sweep, self._note_pass
        )
        reaper = Reaper(
            lead,
            self._store,
            executor,
            self._clock,
            grace=self._settings.grace,
            node_grace=self._engine.node_grace,
            quarantine=self._engine.quarantine,
            canaries=self._engine.canaries,
            every=self._settings.sweep,
            on_change=planner.wake,
        )
        quarantine = Quarantine(
            lead.term, self._store, executor, self._clock,
            every=self._settings.sweep, on_change=planner.wake,
        )  # fmt: skip
        forecaster = Forecaster(
            lead.term, self._database, self._clock, self._settings.sweep, self._metrics.foresaw
        )
        try:
            await self._command(lead, executor, planner)
            self._planner, self._reaper, self._executor = planner, reaper, executor
            self._forecaster = forecaster
            self._metrics.leading(True)
            async with asyncio.TaskGroup() as group:
                group.create_task(planner.run(), name="planner")
                group.create_task(reaper.run(), name="reaper")
                group.create_task(forecaster.run(), name="forecaster")
                group.create_task(self._keep_inventory(executor, lead.term), name="inventory")
                if self._engine.canaries:
                    group.create_task(quarantine.run(), name="quarantine")
                if executor.reconciles:
                    group.create_task(self._reconcile(executor, lead), name="reconcile")
                    group.create_task(self._mind_reach(executor, lead), name="reach")
        finally:
            self._planner = self._reaper = self._executor = self._forecaster = None
            self._metrics.leading(False)
            await executor.close()

    async def _command(self, lead: Lead, executor: Executor, planner: Planner) -> None:
        """Take the executor over; until it can be reached, try again."""
        begun = self._clock.monotonic()
        while True:
            try:
                await self._engine.claim(lead.term)
                await executor.open(lead.term)
                await self._register(executor, lead.term)
                await take_over(lead, self._store, executor, planner)
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
        """Compare what is there with what should be, whatever was told."""
        while True:
            await self._clock.sleep(self._settings.sweep.total_seconds())
            try:
                await executor.adopt(lambda: self._store.live_members(lead.term))
            except RunnerDown as error:
                log.warning("executor.not_compared", extra={"why": error.message})

    async def _mind_reach(self, executor: Executor, lead: Lead) -> None:
        """A leader that is cut off from what runs the jobs makes way for one that may not be."""
        patience_s = UNREACHED_LEASES * self._settings.lease.total_seconds()
        while True:
            await self._clock.sleep(min(1.0, patience_s / 5))
            if executor.unreached_s > patience_s:
                await self._leader.resign(
                    lead, f"nothing answered for {executor.unreached_s:.0f} s where the jobs run"
                )

    async def _register(self, executor: Executor, term: int) -> None:
        """Write the inventory; when it cannot be had, the nodes stay as they are known."""
        try:
            nodes = await executor.inventory()
        except RunnerDown as error:
            log.warning("executor.no_inventory", extra={"why": error.message})
            return
        await self._store.register_nodes(term, nodes, self._clock.now(), whole=True)


async def take_over(lead: Lead, store: Store, executor: Executor, planner: Planner) -> None:
    """Make the executor's world and the database's one: a new leader adopts what runs.

    What the last leader placed and may not have sent is sent again (harmless if it was); then every
    member the database holds as live is either there, or reported as gone by the executor.
    """
    live = await store.live_members(lead.term)
    unsent = sorted({job_id for job_id, _, _, started in live if not started})
    if unsent:
        await planner.send(unsent)
    await executor.adopt(lambda: store.live_members(lead.term))
