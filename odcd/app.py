"""Constructs the daemon's objects and owns its TaskGroup. No other module constructs them."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from odcd.api.app import create_app
from odcd.api.cron import cron_rules
from odcd.api.http.clients import version_of
from odcd.api.http.context import Api
from odcd.api.http.credentials import Credentials
from odcd.api.http.door import Door
from odcd.api.http.server import HttpServer
from odcd.api.slurm.inside import InsideCalls
from odcd.audit.front import AuditedWatch
from odcd.audit.log import AuditLog
from odcd.builds.settings import LIMIT, no_target
from odcd.clock import Clock, SystemClock
from odcd.database.connections import API, LEADER
from odcd.database.pool import Database
from odcd.database.slots import AT_ONCE, Slots, half_of_cpus
from odcd.engines.choose import make_engine
from odcd.events import EventHub
from odcd.executor.base import Executor
from odcd.executor.declaring import Declaring
from odcd.executor.other_hosts import find_other_hosts
from odcd.fairness.disk_reserve import DiskReserve
from odcd.fairness.limits import Fairness
from odcd.front.hosts import Hosts, own_names
from odcd.front.tls import warn_of_clear_text
from odcd.home.postgres_watch import WatchedPostgres
from odcd.isolation import keep
from odcd.jobs.github_keys import GithubKeys
from odcd.jobs.submit_batches import SubmitBatcher
from odcd.jobs.submit_filter.filtering import SubmitFilter
from odcd.login.logins import make_logins
from odcd.loops.election import Leader
from odcd.loops.lead import Lead, Pass
from odcd.loops.leader_term import Leading, Services
from odcd.metrics import Metrics
from odcd.metrics.sampler import Sampler
from odcd.page.app import Page
from odcd.settings import Settings
from odcd.stores.store import Store

log = logging.getLogger(__name__)

CHANNEL = "odc"
API_CONNECTIONS = AT_ONCE + 2
"""For requests, plus shared work that belongs to no single request: batched submits, keys, events
and readiness checks."""
LEADER_CONNECTIONS = 4

Launcher = Callable[[], Awaitable[None]]

Addresses = Sequence[tuple[str, int]]


async def run(
    settings: Settings, dsn: str, postgres: WatchedPostgres | None, launch_runner: Launcher,
    listens: Callable[[Addresses], None], taken: Sequence[socket.socket] | None = None,
    submit_filter: SubmitFilter | None = None,
) -> None:  # fmt: skip
    """Run the daemon until SIGTERM or SIGINT, then stop cleanly; jobs and their runner continue.

    listens: called with the TCP addresses once they are bound. taken: listeners opened by root.

    Raises OtherHost when the database belongs to another machine's local executor, and OdcError
    when an HTTP address is not available.
    """
    clock = SystemClock()
    metrics = Metrics()
    async with (
        Database(
            dsn, kind=API, size=API_CONNECTIONS, watch=metrics, tagged=True,
            slots=Slots(slow=half_of_cpus()),
        ) as database,
        Database(
            dsn, kind=LEADER, size=LEADER_CONNECTIONS, watch=metrics, tagged=True
        ) as for_leader,
    ):  # fmt: skip
        daemon = Daemon(
            settings, database, for_leader, clock, launch_runner, metrics, taken, submit_filter
        )
        await daemon.run(postgres, listens)


class Daemon:
    """Objects that live as long as the process. Objects that live for one term are created in
    _lead."""

    def __init__(
        self, settings: Settings, database: Database, for_leader: Database, clock: Clock,
        launch_runner: Launcher, metrics: Metrics, taken: Sequence[socket.socket] | None = None,
        submit_filter: SubmitFilter | None = None,
    ) -> None:  # fmt: skip
        """database: connections for requests. for_leader: connections for everything only the
        leader does, so that requests never make it wait for a connection."""
        self._settings, self._submit_filter = settings, submit_filter
        self._for_leader, self._database = for_leader, database
        self._clock, self._metrics = clock, metrics
        self._store = Store(database)
        self._events = EventHub(self._store.events, clock)
        metrics.watch_events(lambda: self._events.clients)
        metrics.watch_listener(lambda: database.listening(CHANNEL))
        if settings.executor == "kubernetes":
            metrics.limit_phases(settings.kubernetes.phase_limits | {"image_build": LIMIT})
        self._sampler = Sampler(for_leader, clock, metrics)
        self._leader = Leader(
            for_leader, clock, settings.lease, self._lead, metrics.saw_term,
            clock_limit=settings.clock_limit,
            tokens=lambda: [for_leader.token, database.token],
        )  # fmt: skip
        metrics.watch_clock(lambda: self._leader.clock_ahead_s)
        self._leading: Leading | None = None
        self._engine = make_engine(settings, Store(for_leader), clock, launch_runner, metrics)
        self._keys = GithubKeys(settings.github_url, clock) if self._engine.ssh else None
        fairness = Fairness(settings.fairness, clock)
        check_disk = _check_disk(settings, clock, metrics)
        as_root = settings.socket_mode == 0o666
        serves_uid = None if as_root or self._engine.runs_as_anyone else os.getuid()
        self._logins = make_logins(
            settings.login, self._store.logins, clock, settings.operators, serves_uid
        )
        self._credentials = Credentials()
        self._audit = AuditLog(settings.audit_log, clock) if settings.audit_log else None
        api = self._api = self._make_api(fairness, check_disk, serves_uid)
        self._page = Page(api, create_app(api))
        watch = metrics if self._audit is None else AuditedWatch(metrics, self._audit)
        own = own_names(settings.listen, settings.login.url)
        hosts = Hosts.of(settings.front.hosts, own)
        self._http = HttpServer(
            Door(self._page, hosts, settings.front.proxies, watch),
            path=settings.socket,
            mode=settings.socket_mode,
            listen=settings.listen,
            listen_first=settings.listen_first,
            taken=taken,
            front=settings.front,
            watch=watch,
        )

    def _make_api(
        self, fairness: Fairness, check_disk: Callable[[], None], serves_uid: int | None
    ) -> Api:
        settings, oldest = self._settings, self._settings.oldest_client
        batcher = SubmitBatcher(
            self._store.jobs, self._clock, pending=fairness.pending,
            stored_bytes=fairness.stored_bytes, check_disk=check_disk,
        )  # fmt: skip
        return Api(
            store=self._store,
            batcher=batcher,
            check_disk=check_disk,
            fairness=fairness,
            events=self._events,
            clock=self._clock,
            wake=self._wake_planner,
            executor_of=lambda: self._executor or self._engine.reader(),
            listening=lambda: self._database.listening(CHANNEL),
            led=lambda: self._executor is not None or self._leader.follows,
            metrics=self._metrics,
            scrape=self._sampler.scrape,
            commands=lambda: self._executor is not None,
            address=str(settings.socket),
            listens=lambda: self._http.addresses,
            tls=settings.front.tls_cert is not None,
            own_uid=os.getuid(),
            check_job=self._engine.check_job,
            submit_filter=self._submit_filter,
            declaring=Declaring(
                on_cluster=settings.executor == "kubernetes",
                fixed=frozenset(node.name for node in settings.nodes),
                other_hosts=find_other_hosts,
            ),
            dev_server_terminals=not self._engine.ssh,
            keys=self._keys,
            operators=settings.operators,
            logins=self._logins,
            disk_gib=settings.disks.disk_gib if settings.disks.aws_region else None,
            shared_storage=settings.disks.efs_id is not None,
            build_target=settings.builds.target if self._engine.ssh else no_target,
            serves_uid=serves_uid,
            proxy_uids=settings.proxy_uids,
            credentials=self._credentials,
            notify=settings.notify,
            audit=self._audit,
            oldest_client=version_of(oldest) if oldest else None,
        )

    async def run(
        self, postgres: WatchedPostgres | None, listens: Callable[[Addresses], None]
    ) -> None:
        await self._engine.prepare()
        self._http.bind()
        warn_of_clear_text(self._settings.front, self._http.addresses)
        listens(self._http.addresses)
        stopping = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopping.set)
        try:
            await self._serve(postgres, stopping)
        finally:
            if self._keys is not None:
                await self._keys.close()
            if self._logins is not None:
                await self._logins.close()
            await self._engine.close()

    async def _serve(self, postgres: WatchedPostgres | None, stopping: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            background = [
                group.create_task(self._database.listen(CHANNEL, self._wake, self._clock)),
                *(group.create_task(self._keep(name, run)) for name, run in self._loops().items()),
                group.create_task(self._leader.run(), name="leader"),
            ]
            if self._audit is not None:
                background.append(group.create_task(self._audit.run(), name="audit"))
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
            if self._audit is not None:
                self._audit.close()

    def _loops(self) -> dict[str, Callable[[], Coroutine[Any, Any, None]]]:
        credentials = self._credentials.run
        return {"events": self._events.run, "page": self._page.run,
                "credentials": lambda: credentials(self._store.keys, self._clock)}  # fmt: skip

    async def _keep(self, name: str, loop: Callable[[], Coroutine[Any, Any, None]]) -> None:
        await keep(name, loop, self._clock, self._metrics.rounds)

    def _wake(self) -> None:
        """Called when the database notifies that something changed."""
        self._events.wake()
        if self._leading is not None:
            self._leading.wake()

    def _wake_planner(self) -> None:
        if self._leading is not None:
            self._leading.wake_planner()

    def _note_pass(self, done: Pass) -> None:
        self._metrics.passed(done.took_ms / 1000, done.looked, self._clock.now().timestamp())
        if done.started:
            self._events.wake()

    @property
    def _executor(self) -> Executor | None:
        """The executor, while this daemon commands it; None otherwise."""
        return None if self._leading is None else self._leading.executor

    async def _lead(self, lead: Lead) -> None:
        executor = await self._engine.make(lead)
        if executor.steps is not None:
            executor.steps.answer_calls(InsideCalls(self._api).answer)
        self._leading = Leading(
            lead,
            executor,
            Services(
                leader=self._leader,
                engine=self._engine,
                settings=self._settings,
                database=self._for_leader,
                metrics=self._metrics,
                sampler=self._sampler,
                cron=cron_rules(self._api),
                on_pass=self._note_pass,
                on_step_end=self._api.steps.wake,
            ),
        )
        try:
            await self._leading.run()
        finally:
            self._leading = None


def _check_disk(settings: Settings, clock: Clock, metrics: Metrics) -> Callable[[], None]:
    """Return the check that raises DiskAlmostFull. It does nothing unless the database is on a disk
    of this machine."""
    if settings.dsn is not None or not (settings.home / "data").exists():
        return lambda: None
    reserve = DiskReserve(settings.home / "data", settings.disk_reserve_mib, clock)
    metrics.watch_disk(reserve.free_bytes, reserve.reserved_bytes)
    return reserve.check
