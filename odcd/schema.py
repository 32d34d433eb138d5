"""Install sql/ into a database: new migrations, then all functions and views.

The folder is the schema: what has no file goes. Safe to run at every start and by several at once;
an install that changes nothing reads a few rows.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from odcd.clock import Clock
from odcd.db import close, connect, translate, translate_on
from odcd.errors import OdcError, SchemaTooNew

# Held by whoever installs, for the length of the install: "odc" in ASCII.
SCHEMA_LOCK = 0x6F6463
NO_TRANSACTION = "-- transaction: none"
MIGRATION_NAME = re.compile(r"^(\d{4})_[a-z0-9_]+\.sql$")
CREATED = re.compile(
    r"^create or replace (function|procedure|aggregate|view) (odc(?:_report)?\.\w+)", re.MULTILINE
)
OBJECT_NAME = re.compile(r"^(function|procedure|aggregate|view) (odc(?:_report)?\.\w+)")
MAX_RELOADS = 3

File = tuple[str, str]
"""A file's path below sql/, and its text."""

# What a statement raises when it names something that a later file creates.
NOT_YET_THERE = (
    asyncpg.UndefinedFunctionError,
    asyncpg.UndefinedTableError,
    asyncpg.UndefinedObjectError,
    asyncpg.UndefinedColumnError,
)
# What `create or replace` raises when the old one must go first: other result, names or columns.
MUST_DROP = (asyncpg.InvalidFunctionDefinitionError, asyncpg.InvalidTableDefinitionError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    version: int
    name: str
    text: str

    @property
    def digest(self) -> str:
        return _digest(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """What one install did."""

    version: int
    migrations: tuple[str, ...] = ()
    loaded: int = 0
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The sql folder, read."""

    migrations: tuple[Migration, ...]
    functions: tuple[File, ...]
    views: tuple[File, ...]

    @property
    def version(self) -> int:
        return max((m.version for m in self.migrations), default=0)

    @property
    def digest(self) -> str:
        return _digest("\0".join(f"{name}\0{text}" for name, text in self.functions + self.views))


def sql_folder() -> Path:
    """sql/ of the wheel, or of the checkout."""
    packaged = Path(__file__).parent / "sql"
    return packaged if packaged.is_dir() else Path(__file__).parent.parent / "sql"


def read_source(folder: Path) -> Source:
    migrations: list[Migration] = []
    for path in sorted((folder / "migrations").glob("*.sql")):
        match = MIGRATION_NAME.match(path.name)
        if match is None:
            raise OdcError(
                f"migration {path.name} is not named like 0001_what.sql", "Rename the file."
            )
        migrations.append(
            Migration(version=int(match[1]), name=path.name, text=path.read_text("utf-8"))
        )
    if [m.version for m in migrations] != list(range(1, len(migrations) + 1)):
        raise OdcError("migrations are not numbered 1, 2, 3, …", "Renumber the newest file.")
    return Source(
        migrations=tuple(migrations),
        functions=_texts(folder / "functions"),
        views=_texts(folder / "views"),
    )


def _texts(folder: Path) -> tuple[File, ...]:
    return tuple(
        (path.relative_to(folder.parent).as_posix(), path.read_text("utf-8"))
        for path in sorted(folder.rglob("*.sql"))
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def install(dsn: str, clock: Clock, source: Source | None = None) -> Installed:
    """Bring the database to what the folder says.

    Raises SchemaTooNew when a newer odc wrote the database, OdcError when an applied migration was
    edited or a file does not load; then the functions are as they were before.
    """
    source = source or read_source(sql_folder())
    connection = await connect(dsn, name="odcd install", timeout_s=None)
    try:
        return await _Installer(connection, source, clock).install()
    except Exception as error:
        raise translate_on(connection, error) from error
    finally:
        await close(connection)


async def take_schema_lock(connection: asyncpg.Connection) -> None:
    """Be the only one who changes the schema, until the connection closes."""
    await connection.execute("select pg_advisory_lock($1)", SCHEMA_LOCK)


async def rebuild(
    connection: asyncpg.Connection, source: Source, clock: Clock, version: int,
    fill: Callable[[], Awaitable[None]],
) -> None:  # fmt: skip
    """Drop the schema and make it anew in the caller's transaction: the tables of a version, what
    fill() puts into them, then the migrations since, and all functions."""
    await connection.execute("drop schema if exists odc cascade")
    installer = _Installer(connection, source, clock)
    await installer.create_records()
    await installer.migrate(up_to=version)
    await fill()
    await installer.migrate()
    await installer.reload()


class _Installer:
    def __init__(self, connection: asyncpg.Connection, source: Source, clock: Clock) -> None:
        self._db = connection
        self._source = source
        self._clock = clock

    async def install(self) -> Installed:
        done = Installed(version=self._source.version)
        if not await self._current():
            await take_schema_lock(self._db)
            # Another installer may have done it all while this one waited.
            if not await self._current():
                await self.create_records()
                migrations = await self.migrate()
                loaded, dropped = await self.reload()
                done = Installed(
                    version=self._source.version,
                    migrations=tuple(migrations),
                    loaded=loaded,
                    dropped=tuple(dropped),
                )
        await self._make_partitions()
        # At every start, for an operator may have made the role meanwhile.
        if any(name.endswith("/grant_reports.sql") for name, _ in self._source.functions):
            await self._db.execute("select odc.grant_reports()")
        return done

    async def _current(self) -> bool:
        """Everything of the folder is there already, and nothing else."""
        if await self._db.fetchval("select to_regclass('odc.install') is null"):
            return False
        await self._check_applied()
        row = await self._db.fetchrow(
            "select digest, object_count, (select max(version) from odc.migration) as version "
            "from odc.install"
        )
        return (
            row is not None
            and row["digest"] == self._source.digest
            and row["version"] == self._source.version
            and row["object_count"] == len(await self._objects())
        )

    async def create_records(self) -> None:
        await self._db.execute(
            """
            create schema if not exists odc;
            create table if not exists odc.migration (
                version    integer primary key,
                name       text not null,
                digest     text not null,
                applied_at timestamptz not null
            );
            create table if not exists odc.install (
                one          boolean primary key default true check (one),
                digest       text not null,
                object_count integer not null,
                installed_at timestamptz not null
            );
            """
        )

    async def _check_applied(self) -> set[int]:
        rows = await self._db.fetch(
            "select version, name, digest from odc.migration order by version"
        )
        ours = {m.version: m for m in self._source.migrations}
        for row in rows:
            if row["version"] not in ours:
                raise SchemaTooNew(
                    f"the database is at version {rows[-1]['version']}, this odc knows "
                    f"{self._source.version}",
                    "Run the newer odc that wrote it, or restore a backup made before the upgrade.",
                )
            if ours[row["version"]].digest != row["digest"]:
                raise OdcError(
                    f"migration {row['name']} was edited after it was applied to this database",
                    "A released migration is frozen: restore it, and put the change in a new one.",
                )
        return {row["version"] for row in rows}

    async def migrate(self, up_to: int | None = None) -> list[str]:
        applied = await self._check_applied()
        last = self._source.version if up_to is None else up_to
        new = [m for m in self._source.migrations if m.version not in applied and m.version <= last]
        if new:
            # Its views would be in the way of a table that changes; reload() makes it anew.
            await self._db.execute("drop schema if exists odc_past cascade")
        for migration in new:
            if migration.text.startswith(NO_TRANSACTION):
                for statement in _statements(migration.text):
                    await self._run(migration.name, statement)
                await self._record(migration)
            else:
                async with self._db.transaction():
                    await self._run(migration.name, migration.text)
                    await self._record(migration)
        return [m.name for m in new]

    async def _record(self, migration: Migration) -> None:
        await self._db.execute(
            "insert into odc.migration (version, name, digest, applied_at) values ($1, $2, $3, $4)",
            migration.version, migration.name, migration.digest, self._clock.now(),
        )  # fmt: skip

    async def reload(self) -> tuple[int, list[str]]:
        files = self._source.functions + self._source.views
        dropped: list[str] = []
        async with self._db.transaction():
            for _ in range(MAX_RELOADS):
                before = await self._objects()
                await self._load(files)
                after = await self._objects()
                # `create or replace` writes the row anew; what is still where it was has no file.
                stale = [name for name, row in after.items() if before.get(name) == row]
                for name in stale:
                    await self._db.execute(f"drop {name} cascade")
                dropped += stale
                # A loaded function had bound itself to a stale one and went with it: load again.
                if len(await self._objects()) == len(after) - len(stale):
                    break
            else:
                raise OdcError(f"functions keep needing others without a file: {dropped}")
            if any(name.endswith("/_build_past.sql") for name, _ in files):
                await self._db.execute("select odc._build_past()")
            await self._db.execute(
                "insert into odc.install (digest, object_count, installed_at) values ($1, $2, $3) "
                "on conflict (one) do update set digest = excluded.digest, "
                "object_count = excluded.object_count, installed_at = excluded.installed_at",
                self._source.digest, len(after) - len(stale), self._clock.now(),
            )  # fmt: skip
        return len(files), dropped

    async def _objects(self) -> dict[str, str]:
        """Routines and views of the schemas, as `drop` names them, with where their row lies."""
        rows = await self._db.fetch(
            """
            select case p.prokind when 'p' then 'procedure ' when 'a' then 'aggregate '
                   else 'function ' end || 'odc.' || quote_ident(p.proname)
                   || '(' || pg_get_function_identity_arguments(p.oid) || ')' as name,
                   p.xmin::text || p.ctid::text as row
              from pg_proc as p
             where p.pronamespace = 'odc'::regnamespace
               and not exists (select from pg_depend as d where d.deptype = 'e'
                                  and d.classid = 'pg_proc'::regclass and d.objid = p.oid)
             union all
            select 'view ' || n.nspname || '.' || quote_ident(c.relname),
                   r.xmin::text || r.ctid::text
              from pg_class as c
              join pg_namespace as n on n.oid = c.relnamespace
              join pg_rewrite as r on r.ev_class = c.oid and r.rulename = '_RETURN'
             where n.nspname in ('odc', 'odc_report') and c.relkind = 'v'
            """
        )
        return {row["name"]: row["row"] for row in rows}

    async def _load(self, files: Sequence[File]) -> None:
        left = await self._load_possible(files)
        if left:
            # Functions that name each other: no order is right. Make them unread, then read them.
            await self._db.execute("set local check_function_bodies = off")
            await self._load_possible(list(left))
            await self._db.execute("set local check_function_bodies = on")
            left = await self._load_possible(list(left))
        for (name, _), error in left.items():
            raise _of_file(name, error) from error

    async def _load_possible(self, files: Sequence[File]) -> dict[File, asyncpg.PostgresError]:
        """Run the files, each after those it needs; those left over, with what they want."""
        replaced: set[str] = set()
        waiting = list(files)
        while waiting:
            failed: dict[File, asyncpg.PostgresError] = {}
            restart = False
            for name, text in waiting:
                try:
                    async with self._db.transaction():
                        await self._db.execute(text)
                except NOT_YET_THERE as error:
                    failed[name, text] = error
                except asyncpg.PostgresError as error:
                    if not isinstance(error, MUST_DROP) or name in replaced:
                        raise _of_file(name, error) from error
                    replaced.add(name)
                    await self._drop_old(text)
                    restart = True  # what depended on it went with it
                    break
            if len(failed) == len(waiting):
                return failed
            waiting = list(files) if restart else list(failed)
        return {}

    async def _drop_old(self, text: str) -> None:
        """Drop all that the file defines, whatever its arguments are now."""
        defined = set(CREATED.findall(text))
        for old in await self._objects():
            match = OBJECT_NAME.match(old)
            if match and (match[1], match[2]) in defined:
                await self._db.execute(f"drop {old} cascade")

    async def _make_partitions(self) -> None:
        # When a lock is not free now, the leader tries again: ids for weeks are left.
        with suppress(asyncpg.LockNotAvailableError):
            await self._db.execute("select odc.make_partitions()")

    async def _run(self, name: str, text: str) -> None:
        try:
            await self._db.execute(text)
        except asyncpg.PostgresError as error:
            raise _of_file(name, error) from error


def _statements(text: str) -> list[str]:
    """Of a migration without a transaction: each ends with a semicolon at the end of a line."""
    return [part for part in re.split(r"(?<=;)\s*\n", text) if part.strip()]


def _of_file(name: str, error: asyncpg.PostgresError) -> BaseException:
    """The error with the file it is of, unless it is the server that is in trouble."""
    known = translate(error)
    if isinstance(known, OdcError):
        return known
    return OdcError(f"sql/{name} does not load: {error}", getattr(error, "hint", None))
