"""A real PostgreSQL for tests: one server per run, a template database, clones, plain sessions."""

from __future__ import annotations

import asyncio
import fcntl
import itertools
import json
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import psutil

from odcd.clock import SystemClock
from odcd.database import schema
from odcd.database.pool import close, connect
from odcd.database.session import Session
from odcd.errors import DatabaseDown
from odcd.home.database_access import as_account
from odcd.home.postgres import EmbeddedPostgres
from odcd.home.postgres_files import INSTALLS
from odcd.home.postgres_roles import ADMIN_ROLE, ROLE

MAJOR = int(os.environ.get("ODC_TEST_PG", "18"))
TEMPLATE = "odc_template"
PREFIX = "odc-test-"
DISK, MEMORY = Path("/tmp"), Path("/dev/shm")
"""Where homes are made. In memory files are made and removed in a tenth of the time, and tests do
little else; but it must be large, and programs must run there."""
ROOMY_BYTES = 8 << 30


class Sql:
    """One session with plain calls, for tests that do not use asyncio themselves.

    Inside begin() … rollback() a refused statement undoes only itself, so the test continues.
    """

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self._runner = asyncio.Runner()
        try:
            self._connection = self._runner.run(connect(dsn, name="odc test"))
        except BaseException:
            self._runner.close()
            raise
        self._session = Session(self._connection)
        self._in_transaction = False
        self._has_begun = False

    def rows(self, query: str, *args: Any) -> list[dict[str, Any]]:
        return [dict(row) for row in self._call("fetch", query, *args)]

    def row(self, query: str, *args: Any) -> dict[str, Any]:
        """The one row. Raises AssertionError when there is none, or more than one."""
        found = self.rows(query, *args)
        assert len(found) == 1, f"{len(found)} rows instead of one"
        return found[0]

    def value(self, query: str, *args: Any) -> Any:
        return self._call("fetchval", query, *args)

    def values(self, query: str, *args: Any) -> list[Any]:
        """The first column."""
        return [row[0] for row in self._call("fetch", query, *args)]

    def execute(self, query: str, *args: Any) -> str:
        return self._call("execute", query, *args)

    def begin(self) -> None:
        if not self._has_begun:
            # A rollback that undoes the session's first temporary table changes its search path,
            # and so all plans of all functions would be made again: ten times the work of a short
            # test.
            self._run("create temp table kept ()")
            self._has_begun = True
        self._run("begin; savepoint call")
        self._in_transaction = True

    def rollback(self) -> None:
        self._in_transaction = False
        self._run("rollback")

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Everything done inside, between begin() and rollback(), is undone at the end."""
        self._run("release call; savepoint trial; savepoint call")
        try:
            yield
        finally:
            self._run("rollback to trial; release trial; savepoint call")

    def close(self) -> None:
        self._runner.run(close(self._connection))
        self._runner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(self, method: str, query: str, *args: Any) -> Any:
        if not self._in_transaction:
            return self._await(getattr(self._session, method)(query, *args))
        try:
            answer = self._await(getattr(self._session, method)(query, *args))
        except BaseException:
            self._run("rollback to call")
            raise
        self._run("release call; savepoint call")
        return answer

    def _run(self, statement: str) -> None:
        self._await(self._session.execute(statement))

    def _await(self, work: Coroutine[Any, Any, Any]) -> Any:
        # Not Runner.run(), which arms and disarms SIGINT each time.
        return self._runner.get_loop().run_until_complete(work)


class TestServer:
    """The server of this test run, with a template database that has the schema."""

    __test__ = False

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._names = (f"t{os.getpid()}_{number}" for number in itertools.count())
        self._admin = Sql(self.dsn("postgres"))

    def dsn(self, database: str) -> str:
        return self._dsn.replace("@/odc?", f"@/{database}?")

    def clone(self) -> str:
        """A separate database with the schema; its DSN."""
        return self._create(TEMPLATE)

    def empty(self) -> str:
        """An empty separate database; its DSN."""
        return self._create("template1")

    def _create(self, template: str) -> str:
        name = next(self._names)
        # Half the time of the other strategy for a database as small as this.
        self._admin.execute(f"create database {name} template {template} strategy file_copy")
        return self.dsn(name)

    def drop(self, dsn: str) -> None:
        name = dsn.partition("@/")[2].partition("?")[0]
        self._admin.execute(f"drop database if exists {name} with (force)")

    def close(self) -> None:
        self._admin.close()


@contextmanager
def shared_server(run_folder: Path) -> Iterator[TestServer]:
    """The server that all workers of a test run share."""
    with _shared(run_folder, "postgres", _start) as home:
        server = TestServer(EmbeddedPostgres(home, MAJOR).dsn)
        try:
            yield server
        finally:
            server.close()


@contextmanager
def shared_seed(run_folder: Path) -> Iterator[Path]:
    """A home whose database was created with the schema and then stopped, to copy from: creating
    one takes seconds."""
    with _shared(run_folder, "seed", _make_seed) as seed:
        yield seed


@contextmanager
def _shared(run_folder: Path, name: str, make: Callable[[], Path]) -> Iterator[Path]:
    """A home for all workers: the first makes it, the last removes it."""
    state = run_folder / f"{name}-{MAJOR}.json"
    with _locked(run_folder, name):
        users = json.loads(state.read_text()) if state.exists() else None
        if users is None:
            _remove_left_over()
            users = {"home": str(make()), "count": 0}
        users["count"] += 1
        state.write_text(json.dumps(users))
    home = Path(users["home"])
    try:
        yield home
    finally:
        with _locked(run_folder, name):
            users = json.loads(state.read_text())
            users["count"] -= 1
            if users["count"]:
                state.write_text(json.dumps(users))
            else:
                state.unlink()
                remove_home(home)


def make_home() -> Path:
    """A folder that another account can enter, which pytest's own temporary folders are not."""
    home = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{_run_pid()}-", dir=_roomiest()))
    if os.geteuid() == 0:
        home.chmod(0o755)
    return home


def _roomiest() -> Path:
    if not os.access(MEMORY, os.W_OK):
        return DISK
    there = os.statvfs(MEMORY)
    free = min(there.f_bavail * there.f_frsize, psutil.virtual_memory().available)
    return DISK if free < ROOMY_BYTES or there.f_flag & os.ST_NOEXEC else MEMORY


def _make_seed() -> Path:
    seed = make_home()
    postgres = EmbeddedPostgres(seed, MAJOR, durable=False)
    dsn = postgres.start()
    # Read while this is root: the account may not enter the checkout.
    source = schema.read_source(schema.sql_folder())
    as_account(
        postgres,
        lambda: asyncio.run(schema.install(dsn, SystemClock(), source)),
        of=schema.Installed,
    )
    postgres.stop()
    return seed


def sow(seed: Path, home: Path) -> None:
    """Make a home like the seed. Binaries are linked, because nothing writes to them."""
    home.mkdir()
    shutil.copystat(seed, home)
    for part in seed.iterdir():
        how = "-al" if part.name == "pg" else "-a"
        subprocess.run(["cp", how, part, home / part.name], check=True)
    if os.geteuid() == 0:
        os.chown(home, seed.stat().st_uid, seed.stat().st_gid)


def remove_home(home: Path) -> None:
    for major in INSTALLS:
        if (home / "data" / str(major)).exists():
            EmbeddedPostgres(home, major).stop("immediate")
    shutil.rmtree(home, ignore_errors=True)


def admit_root(postgres: EmbeddedPostgres) -> None:
    """Let the tests in when they run as root: the server accepts only odcd's account."""
    running = postgres.postmaster()
    assert running is not None
    if os.geteuid() == postgres.account.uid:
        return
    root = pwd.getpwuid(os.geteuid()).pw_name
    with (postgres.data / "pg_ident.conf").open("a") as mapping:
        mapping.write(f"odc {root} {ROLE}\nodc {root} {ADMIN_ROLE}\n")
    os.kill(running.pid, signal.SIGHUP)
    # Nothing reports the end of a reload, so try until a connection is accepted.
    for _ in range(6000):
        try:
            Sql(postgres.dsn).close()
        except DatabaseDown:
            time.sleep(0.01)
        else:
            return
    raise AssertionError("the server never let the tests in")


def _start() -> Path:
    home = make_home()
    postgres = EmbeddedPostgres(home, MAJOR, durable=False)
    postgres.start()
    admit_root(postgres)
    with Sql(postgres.dsn.replace(f"//{ROLE}@", f"//{ADMIN_ROLE}@")) as admin:
        # Tests make databases, roles and sessions of others; homes have a role that may do less.
        admin.execute(f"alter role {ROLE} superuser")
        admin.execute(f"create database {TEMPLATE} owner {ROLE}")
    asyncio.run(schema.install(postgres.dsn.replace("@/odc?", f"@/{TEMPLATE}?"), SystemClock()))
    return home


def _run_pid() -> int:
    """The process of the whole test run: under xdist the parent of this worker."""
    return os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()


def _remove_left_over() -> None:
    """Homes of test runs that were killed."""
    for home in (*DISK.glob(f"{PREFIX}*"), *MEMORY.glob(f"{PREFIX}*")):
        pid = home.name.removeprefix(PREFIX).partition("-")[0]
        # Another run may remove it at the same time.
        with suppress(FileNotFoundError):
            if not Path(f"/proc/{pid}").exists() and home.stat().st_uid in (0, os.geteuid()):
                remove_home(home)


@contextmanager
def _locked(run_folder: Path, name: str) -> Iterator[None]:
    with (run_folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
