"""Start the daemon: lock its home, install the schema, drop root, then run the event loop."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import socket
from collections.abc import Callable, Coroutine, Sequence

import uvloop

from odcd import app, outbound
from odcd.api.http.server import take_tcp
from odcd.clock import Clock, SystemClock
from odcd.database import schema, schema_guard
from odcd.database.connections import check_direct
from odcd.engines.choose import load_engine
from odcd.errors import OdcError, Unavailable
from odcd.home import account as accounts
from odcd.home import descriptors
from odcd.home import root_helper as keeper
from odcd.home.folder import own_folder, prepare_home
from odcd.home.lock import HomeLock
from odcd.home.ping import answers
from odcd.home.postgres import EmbeddedPostgres
from odcd.home.postgres_watch import WatchedPostgres
from odcd.home.processes import harden
from odcd.home.shutdown import count_running, end_runner
from odcd.jobs.submit_filter.filtering import SubmitFilter, start_filter
from odcd.notify import mail
from odcd.page import app as page
from odcd.runner import rules
from odcd.settings import Settings

log = logging.getLogger(__name__)

Announce = Callable[[Settings, WatchedPostgres | None, app.Addresses], None]

READY_POLL_S = 0.05


def run(settings: Settings, announce: Announce) -> None:
    """Run the daemon of this home until a signal ends it. If no jobs are running then, also end the
    runner and the embedded PostgreSQL.

    Raises OdcError when it fails.
    """
    account = accounts.service_account()
    prepare_home(settings.home, account)
    _prepare_socket_folder(settings, account)
    with HomeLock(settings.lock, account):
        dsn, embedded, started = _start_database(settings, account)
        source = _load(settings)
        if settings.executor == "local":
            _write_rules(settings)
        if os.geteuid() == 0:
            kept = keeper.fork(settings.runner_folder, account, embedded)
            launcher, postgres = kept.launch, kept.postgres
            try:
                # Only root can bind ports below 1024. The keeper outlives us and does not hold
                # these sockets.
                taken = take_tcp(settings.listen, settings.listen_first)
            except OdcError:
                if embedded is not None and started:
                    embedded.stop()
                raise
            accounts.become(account, settings.home)
        else:
            taken = None
            launcher, postgres = keeper.direct(settings.runner_folder, account), embedded
        # The site's code gets the rights of this account. No thread exists yet.
        submit_filter = start_filter(settings.submits)
        # Only now, after the fork: the keeper's children, jobs included, keep the original limit.
        descriptors.raise_limit()
        os.umask(0o077)
        harden()
        try:
            idle = _loop(
                _serve(settings, dsn, postgres, launcher, source, announce, taken, submit_filter)
            )
        except OdcError:
            # Stop the PostgreSQL that we started for this daemon; jobs run without a database.
            if postgres is not None and started:
                postgres.stop()
            raise
        if idle:
            end_runner(settings.runner_folder)
            if postgres is not None:
                postgres.stop()


def _start_database(
    settings: Settings, account: accounts.Account
) -> tuple[str, EmbeddedPostgres | None, bool]:
    """Return the DSN, the embedded PostgreSQL if there is one, and whether this call started it."""
    if settings.dsn is not None:
        return settings.dsn, None, False
    embedded = EmbeddedPostgres(settings.home, settings.pg_version, account)
    embedded.retire_former()
    started = not embedded.is_running()
    dsn = embedded.start()
    embedded.reset_settings()
    return dsn, embedded, started


def _load(settings: Settings) -> schema.Source:
    """Read the SQL files, the page's templates and optional libraries; return the SQL. Call this as
    the starting user: the service account may have no access to our virtual environment."""
    source = schema.read_source(schema.sql_folder())
    page.load()
    if settings.executor == "kubernetes":
        _import_client()
    if settings.disks.aws_region is not None:
        _import_aws("odcd.aws.disks", "disks")
    if settings.elastic.elastic_cluster is not None:
        _import_aws("odcd.aws.groups", "elastic groups")
    if (
        settings.executor == "kubernetes"
        or settings.login.rules()
        or settings.gpu_use.prometheus_url
        or (settings.notify.webhooks and os.geteuid() == 0)
    ):
        outbound.load()
    if settings.notify.sends_mail:
        mail.load()
    load_engine(settings.executor)
    return source


def _write_rules(settings: Settings) -> None:
    """Call this before root is dropped: the runner only accepts a file of its own user."""
    try:
        rules.write(settings.runner_folder, settings.jobs.rules())
    except OSError as error:
        raise OdcError(
            f"the rules for jobs cannot be written to {settings.runner_folder}: {error.strerror}",
            "Free space there, and make the user that starts odcd the owner of the folder.",
        ) from error


def _import_client() -> None:
    """Import now: after the switch to the service account, root's Python may not be readable."""
    try:
        for name in ("kubernetes_asyncio.client", "kubernetes_asyncio.config", "yaml"):
            importlib.import_module(name)
    except ImportError as error:
        raise OdcError(
            f"the Kubernetes executor needs a library: {error}",
            'Install it: pip install "odc[k8s]"',
        ) from error


def _import_aws(module: str, what: str) -> None:
    """Import now, for the same reason as _import_client."""
    try:
        importlib.import_module(module)
    except ImportError as error:
        raise OdcError(
            f"{what} at AWS need a library: {error}", 'Install it: pip install "odc[aws]"'
        ) from error


def _loop(daemon: Coroutine[object, object, bool]) -> bool:
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(daemon)
    except OdcError:
        raise
    except Exception as error:
        log.exception("daemon.failed")
        raise OdcError(
            f"the daemon failed: {type(error).__name__}: {error}",
            "This is a bug in odc; its log has the details. Jobs continue: start odcd again.",
        ) from error


async def _serve(
    settings: Settings, dsn: str, postgres: WatchedPostgres | None, launcher: keeper.Launcher,
    source: schema.Source, announce: Announce, taken: Sequence[socket.socket] | None,
    submit_filter: SubmitFilter | None,
) -> bool:  # fmt: skip
    """Run the daemon. Return whether no jobs were left running at its end."""
    clock = SystemClock()
    if submit_filter is not None:
        await submit_filter.check()
    await check_direct(dsn)
    # An embedded home has no other daemon: this daemon holds its lock.
    beside: schema_guard.Beside = "any" if settings.dsn is None else "none"
    installed = await schema.install(dsn, clock, source, beside=beside)
    log.info(
        "schema.ready", extra={"version": installed.version, "migrations": installed.migrations}
    )
    addresses: list[tuple[str, int]] = []
    try:
        async with asyncio.TaskGroup() as group:
            reporting = group.create_task(
                _tell(settings, lambda: announce(settings, postgres, addresses), clock)
            )
            await app.run(settings, dsn, postgres, launcher, addresses.extend, taken, submit_filter)
            reporting.cancel()
    except BaseExceptionGroup as errors:
        raise _first(errors) from errors
    try:
        return await count_running(dsn) == 0
    except Unavailable as error:
        log.warning("daemon.leaves_processes", extra={"why": error.message})
        return False


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error to show the user: an expected error comes before any other."""
    expected, _ = errors.split(OdcError)
    found: BaseException = expected or errors
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found


async def _tell(settings: Settings, announce: Callable[[], None], clock: Clock) -> None:
    while not await asyncio.to_thread(answers, settings.socket):
        await clock.sleep(READY_POLL_S)
    announce()


def _prepare_socket_folder(settings: Settings, account: accounts.Account) -> None:
    folder = settings.socket.parent
    if folder == settings.home:
        return
    try:
        folder.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        own_folder(folder, account.uid, account.gid, 0o755)
    except OSError as error:
        raise OdcError(
            f"{folder} cannot be created: {error.strerror}", "Choose another folder with --home."
        ) from error
