"""Install sql/ into a database: new migrations, then all functions and views.

The folder is the schema: objects without a file are dropped. Installing is safe at every start and
from several daemons at once. An install that changes nothing only reads a few rows. An older odc
never changes a newer schema.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

import asyncpg

from odcd.clock import Clock
from odcd.database.connections import INSTALLER
from odcd.database.patience import Patience, at_once
from odcd.database.pool import close, connect, translate_on
from odcd.database.schema_calls import end_calls, ending_calls
from odcd.database.schema_functions import Functions, of_file
from odcd.database.schema_guard import Beside, check_beside, newer_version
from odcd.database.schema_records import Records
from odcd.database.schema_source import Migration, Source, read_source, sql_folder
from odcd.errors import WrongState

__all__ = [
    "Installed", "Source", "install", "read_source", "rebuild", "sql_folder", "take_schema_lock",
]  # fmt: skip

log = logging.getLogger(__name__)

T = TypeVar("T")

# The installer holds this lock during the install: "odc" in ASCII.
SCHEMA_LOCK = 0x6F6463
NO_TRANSACTION = "-- transaction: none"
COMMENT = re.compile(r"^\s*--.*$", re.MULTILINE)
# An index whose build was interrupted: `if not exists` would treat it as complete.
BROKEN_INDEXES = """
    select c.relname
      from pg_index as i join pg_class as c on c.oid = i.indexrelid
     where c.relnamespace = 'odc'::regnamespace and c.relkind = 'i' and not c.relispartition
       and not i.indisvalid
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """The result of one install."""

    version: int
    migrations: tuple[str, ...] = ()
    loaded: int = 0
    dropped: tuple[str, ...] = ()


class Runs(Protocol):
    """The signature of Patience.run."""

    async def __call__(
        self, step: str, work: Callable[[], Coroutine[Any, Any, T]], *, queues: bool = True
    ) -> T: ...


async def install(
    dsn: str, clock: Clock, source: Source | None = None, *, beside: Beside = "any"
) -> Installed:
    """Bring the database to the state of the folder, unless a newer odc wrote it.

    beside: which daemons may run meanwhile. Raises SchemaTooNew when a newer odc wrote the database
    and this one does not work on it, WrongState when daemons prevent the change, DatabaseDown when
    another session keeps a lock, and OdcError when an applied migration was edited or a file does
    not load. After an OdcError the functions are unchanged.
    """
    source = source or read_source(sql_folder())
    connection = await connect(dsn, kind=INSTALLER)
    try:
        patience = Patience(dsn, connection, clock)
        return await _Installer(connection, source, clock, patience.run).install(beside)
    except Exception as error:
        raise translate_on(connection, error) from error
    finally:
        await close(connection)


async def take_schema_lock(connection: asyncpg.Connection) -> None:
    """Become the only session that changes the schema, until the connection closes."""
    # Wait as long as the other install takes; the connection's timeout is meant for table locks.
    limit = await connection.fetchval("select current_setting('lock_timeout')")
    await connection.execute("set lock_timeout = 0")
    await connection.execute("select pg_advisory_lock($1)", SCHEMA_LOCK)
    await connection.execute("select set_config('lock_timeout', $1, false)", limit)


async def rebuild(
    connection: asyncpg.Connection, source: Source, clock: Clock, version: int,
    fill: Callable[[], Awaitable[None]],
) -> None:  # fmt: skip
    """Drop the schema and create it again in the caller's transaction: the tables of a version,
    then the rows from fill(), then later migrations, and all functions."""
    await connection.execute("drop schema if exists odc cascade")
    installer = _Installer(connection, source, clock, at_once)
    await installer.records.create()
    await installer.migrate(up_to=version)
    await fill()
    await installer.migrate()
    await installer.functions.reload()


class _Installer:
    def __init__(
        self, connection: asyncpg.Connection, source: Source, clock: Clock, runs: Runs
    ) -> None:
        self._db = connection
        self._source = source
        self._clock = clock
        self._runs = runs
        self.records = Records(connection, source, clock)
        self.functions = Functions(connection, source, clock)

    async def install(self, beside: Beside) -> Installed:
        state, version = await self._state()
        done = Installed(version=version)
        if state == "old":
            await take_schema_lock(self._db)
            # Another installer may have finished the work while this one waited.
            state, version = await self._state()
            done = Installed(version=version)
            if state == "old" and await self._may_change(beside):
                done = await self._upgrade()
        if state == "newer":
            log.warning("schema.newer", extra={"database": version, "known": self._source.version})
        await self._make_partitions()
        # At every start, because an operator may have created the role in the meantime.
        if any(name.endswith("/grant_reports.sql") for name, _ in self._source.functions):
            await self._db.execute("select odc.grant_reports()")
        return done

    async def _upgrade(self) -> Installed:
        """Upgrade in one transaction, so that no daemon sees new tables with old functions. A
        migration that cannot run in a transaction splits it: the migrations before it are committed
        first."""
        await self._runs("the table of migrations", self.records.create)
        new = await self._new()
        together: list[Migration] = []
        for migration in new:
            if migration.text.startswith(NO_TRANSACTION):
                await self._commit(together)
                await self._migrate_alone(migration)
                together = []
            else:
                together.append(migration)

        async def finish() -> tuple[int, list[str]]:
            async with ending_calls(self._db), self._db.transaction():
                await self._migrate_all(together)
                changed = await self.functions.reload()
                await end_calls(self._db)
                return changed

        loaded, dropped = await self._runs(f"the upgrade to version {self._source.version}", finish)
        return Installed(
            version=self._source.version,
            migrations=tuple(m.name for m in new),
            loaded=loaded,
            dropped=tuple(dropped),
        )

    async def _commit(self, migrations: Sequence[Migration]) -> None:
        async def work() -> None:
            async with self._db.transaction():
                await self._migrate_all(migrations)

        if migrations:
            await self._runs(f"migration {migrations[-1].name}", work)

    async def _may_change(self, beside: Beside) -> bool:
        """Return False if daemons are running and only the objects in the database differ, such as
        a function made by hand. Raises WrongState."""
        if await self._db.fetchval("select to_regclass('odc.install') is null"):
            return True
        try:
            await check_beside(self._db, self._source, beside, self._clock)
        except WrongState:
            if not await self._same_files():
                raise
            return False
        return True

    async def _state(self) -> tuple[Literal["old", "current", "newer"], int]:
        """Compare the database with the folder; return the result and the version once no change is
        needed."""
        own = self._source.version
        if await self._db.fetchval("select to_regclass('odc.install') is null"):
            return "old", own
        newer = await newer_version(self._db, self._source)
        if newer is not None:
            return "newer", newer
        await self.records.applied()
        if not await self._same_files():
            return "old", own
        count = await self._db.fetchval("select object_count from odc.install")
        return ("current" if count == len(await self.functions.objects()) else "old"), own

    async def _same_files(self) -> bool:
        row = await self._db.fetchrow(
            "select digest, (select max(version) from odc.migration) as version from odc.install"
        )
        return (
            row is not None
            and row["digest"] == self._source.digest
            and row["version"] == self._source.version
        )

    async def _new(self, up_to: int | None = None) -> list[Migration]:
        applied = await self.records.applied()
        last = self._source.version if up_to is None else up_to
        return [
            m for m in self._source.migrations if m.version not in applied and m.version <= last
        ]

    async def migrate(self, up_to: int | None = None) -> None:
        """Run the new migrations in the caller's transaction."""
        await self._migrate_all(await self._new(up_to))

    async def _migrate_all(self, migrations: Sequence[Migration]) -> None:
        if migrations:
            # The views in odc_past would block changes to tables; reload() creates them again.
            await self._db.execute("drop schema if exists odc_past cascade")
        for migration in migrations:
            async with self._db.transaction():
                await self._run(migration.name, migration.text)
                await self.records.add(migration)

    async def _migrate_alone(self, migration: Migration) -> None:
        for statement in _statements(migration.text):

            async def work(statement: str = statement) -> None:
                await self._drop_broken()
                await self._run(migration.name, statement)

            # A concurrent build waits for other sessions, but they do not wait for it.
            queues = not re.search(r"\bconcurrently\b", statement, re.IGNORECASE)
            await self._runs(f"migration {migration.name}", work, queues=queues)
        await self.records.add(migration)

    async def _drop_broken(self) -> None:
        for row in await self._db.fetch(BROKEN_INDEXES):
            await self._db.execute(f'drop index concurrently if exists odc."{row["relname"]}"')

    async def _make_partitions(self) -> None:
        # If a lock is not available now, the leader tries again: the existing partitions last for
        # weeks.
        with suppress(asyncpg.LockNotAvailableError):
            await self._db.execute("select odc.make_partitions()")

    async def _run(self, name: str, text: str) -> None:
        # A migration may be only a comment: it then orders the functions of two versions.
        if not COMMENT.sub("", text).strip():
            return
        try:
            await self._db.execute(text)
        except asyncpg.PostgresError as error:
            raise of_file(name, error) from error


def _statements(text: str) -> list[str]:
    """The statements of a migration without a transaction: each ends with a semicolon at a line's
    end."""
    return [part for part in re.split(r"(?<=;)\s*\n", text) if part.strip()]
