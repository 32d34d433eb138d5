"""Back up the whole queue to one file, with every table of schema odc at one moment, and restore
it.

The file is a zip with one member per table, in PostgreSQL's COPY text format, and manifest.json. It
does not contain job output, which is in the users' folders.

pg_dump and pg_restore cannot do this: see docs/decisions/0041.
"""

from __future__ import annotations

import codecs
import json
import re
import zipfile
import zlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any, BinaryIO

import asyncpg

from odcd import __version__
from odcd.clock import Clock
from odcd.database.connections import BACKUP
from odcd.database.pool import connect, translate
from odcd.database.schema import Source, rebuild, take_schema_lock
from odcd.database.schema_guard import DAEMONS
from odcd.errors import BadRequest, OdcError, SchemaTooNew, WrongState

# zipfile loads this codec at its first member, when we may no longer be able to read root's Python.
codecs.lookup("cp437")

FORMAT = 1
MANIFEST = "manifest.json"
# Tables that the installer fills itself.
OWN_TABLES = ("migration", "install", "planner")
IDENTIFIER = re.compile(r"^[a-z_][a-z0-9_]*$")
BOUND = re.compile(r"^(DEFAULT|FOR VALUES FROM \('?-?\d+'?\) TO \('?-?\d+'?\))$")
CHUNK = 1 << 20

# Parents before children, so that foreign keys are satisfied at every step.
TABLES = """
    with recursive own (oid) as (
        select c.oid from pg_class as c
         where c.relnamespace = 'odc'::regnamespace and c.relkind in ('r', 'p')
           and not c.relispartition and c.relname <> all ($1::text[])
    ), depth (oid, level) as (
        select oid, 0 from own
        union
        select f.conrelid, d.level + 1
          from depth as d
          join pg_constraint as f on f.confrelid = d.oid and f.contype = 'f'
         where f.conrelid <> f.confrelid and f.conparentid = 0
    )
    select c.relname as name,
           (select array_agg(a.attname order by a.attnum)
              from pg_attribute as a
             -- Transaction numbers of another cluster mean nothing, or the future.
             where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
               and a.attgenerated = ''
               and a.atttypid not in ('xid8'::regtype, 'pg_snapshot'::regtype)) as columns
      from depth as d
      join pg_class as c on c.oid = d.oid
     group by c.oid, c.relname
     order by max(d.level), c.relname
"""
PARTITIONS = """
    select c.relname as name, p.relname as parent, pg_get_expr(c.relpartbound, c.oid) as bound
      from pg_class as c
      join pg_inherits as i on i.inhrelid = c.oid
      join pg_class as p on p.oid = i.inhparent
     where c.relnamespace = 'odc'::regnamespace and c.relispartition and c.relkind = 'r'
     order by c.relname
"""
SEQUENCES = """
    select sequencename as name, coalesce(last_value, 0) as last
      from pg_sequences where schemaname = 'odc' order by sequencename
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The contents of a backup."""

    made_at: datetime
    jobs: int
    pending: int
    running: int


async def write_backup(dsn: str, file: BinaryIO, clock: Clock) -> Summary:
    """Write the queue as of one moment, while the daemon continues."""
    connection = await connect(dsn, kind=BACKUP, isolation="repeatable read")
    try:
        async with connection.transaction(readonly=True):
            return await _write(connection, file, clock)
    except Exception as error:
        raise translate(error) from error
    finally:
        await connection.close()


async def _write(connection: asyncpg.Connection, file: BinaryIO, clock: Clock) -> Summary:
    if await connection.fetchval("select to_regclass('odc.migration') is null"):
        raise OdcError("this database has no queue", "Name another database with --home or --dsn.")
    tables: dict[str, Any] = {}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as archive:
        for table in await connection.fetch(TABLES, list(OWN_TABLES)):
            columns = ", ".join(f'"{name}"' for name in table["columns"])
            with archive.open(f"{table['name']}.copy", "w", force_zip64=True) as member:

                async def write(data: bytes, member: Any = member) -> None:
                    member.write(data)

                done = await connection.copy_from_query(
                    f'select {columns} from odc."{table["name"]}"', output=write
                )
            tables[table["name"]] = {
                "columns": table["columns"],
                "rows": int(done.rpartition(" ")[2]),
            }
        summary = Summary(
            made_at=clock.now(),
            jobs=tables["job"]["rows"],
            pending=tables["pending"]["rows"],
            running=tables["running"]["rows"],
        )
        manifest = {
            "format": FORMAT,
            "odc": __version__,
            "schema_version": await connection.fetchval("select max(version) from odc.migration"),
            "made_at": summary.made_at.isoformat(),
            "tables": tables,
            "partitions": [dict(row) for row in await connection.fetch(PARTITIONS)],
            # Read after the tables: sequences never decrease, so these values cover all rows.
            "sequences": {r["name"]: r["last"] for r in await connection.fetch(SEQUENCES)},
        }
        archive.writestr(MANIFEST, json.dumps(manifest, indent=1))
    file.flush()
    return summary


def read_manifest(archive: zipfile.ZipFile) -> dict[str, Any]:
    """Raises BadRequest if the file is not a backup of odc, or was tampered with."""
    try:
        manifest = json.loads(archive.read(MANIFEST))
        names = [*manifest["tables"], *manifest["sequences"]]
        names += [name for table in manifest["tables"].values() for name in table["columns"]]
        names += [p[key] for p in manifest["partitions"] for key in ("name", "parent")]
        sound = (
            manifest["format"] == FORMAT
            and all(IDENTIFIER.match(name) for name in names)
            and all(BOUND.match(p["bound"]) for p in manifest["partitions"])
            and all(isinstance(last, int) for last in manifest["sequences"].values())
            and {"job", "pending", "running", "term"} <= set(manifest["tables"])
        )
    except (KeyError, TypeError, ValueError, AttributeError, zipfile.BadZipFile) as error:
        raise _not_a_backup() from error
    if not sound:
        raise _not_a_backup()
    return manifest


def _not_a_backup() -> BadRequest:
    return BadRequest(
        "the file is not a complete backup of odc", "Make one with `odcd backup FILE`."
    )


async def restore_backup(
    dsn: str, file: BinaryIO, source: Source, clock: Clock, *, replace: bool, term: int = 0
) -> Summary:
    """Replace the database's contents with the file's: all of it, or nothing if any step fails.

    term: the term of a runner on this machine, which obeys no lower one. Jobs that were running are
    running again in the database. The next daemon adopts them and ends those that have no process.
    Raises WrongState when the queue is not empty, or a daemon uses it.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            manifest = read_manifest(archive)
            connection = await connect(dsn, kind=BACKUP, name="odc restore")
            try:
                await take_schema_lock(connection)
                async with connection.transaction():
                    return await _Restore(connection, archive, manifest, source, clock).run(
                        replace, term
                    )
            finally:
                await connection.close()
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise _not_a_backup() from error
    except Exception as error:
        raise translate(error) from error


class _Restore:
    def __init__(
        self, connection: asyncpg.Connection, archive: zipfile.ZipFile, manifest: dict[str, Any],
        source: Source, clock: Clock,
    ) -> None:  # fmt: skip
        self._db = connection
        self._archive = archive
        self._manifest = manifest
        self._source = source
        self._clock = clock

    async def run(self, replace: bool, term: int) -> Summary:
        version = self._manifest["schema_version"]
        if version > self._source.version:
            raise SchemaTooNew(
                f"the backup has schema version {version}, but this odc knows only "
                f"{self._source.version}",
                "Restore it with the odc that wrote it, or a newer one.",
            )
        if await self._db.fetchval(DAEMONS):
            raise WrongState("a daemon is using this database", "Stop it first: odcd down")
        seen = await self._seen(replace)
        await rebuild(self._db, self._source, self._clock, version, self._fill)
        await self._raise_sequences(seen)
        await self._db.execute("select odc.make_partitions()")
        await self._db.execute(
            "select odc.finish_restore(p_term => $1, p_made_at => $2, p_now => $3)",
            max(term, seen.get("term", 0)), self._made_at, self._clock.now(),
        )  # fmt: skip
        tables = self._manifest["tables"]
        return Summary(
            made_at=self._made_at,
            jobs=tables["job"]["rows"],
            pending=tables["pending"]["rows"],
            running=tables["running"]["rows"],
        )

    @property
    def _made_at(self) -> datetime:
        return datetime.fromisoformat(self._manifest["made_at"])

    async def _seen(self, replace: bool) -> dict[str, int]:
        """The highest numbers this database has assigned: none may be assigned again."""
        if await self._db.fetchval("select to_regclass('odc.job') is null"):
            return {}
        jobs = await self._db.fetchval("select count(*) from odc.job")
        if jobs and not replace:
            raise WrongState(
                f"the queue here is not empty: {jobs} jobs",
                "Restore into a new home, or discard this queue with --replace.",
            )
        seen: dict[str, int] = {row["name"]: row["last"] for row in await self._db.fetch(SEQUENCES)}
        seen["term"] = int(await self._db.fetchval("select max(term) from odc.term") or 0)
        return seen

    async def _fill(self) -> None:
        tables = self._manifest["tables"]
        await self._db.execute(f"truncate {', '.join(f'odc.{name}' for name in tables)}")
        for part in self._manifest["partitions"]:
            await self._db.execute(
                f"create table odc.{part['name']} partition of odc.{part['parent']} {part['bound']}"
            )
        for name, table in tables.items():
            with self._archive.open(f"{name}.copy") as member:
                done = await self._db.copy_to_table(
                    name, schema_name="odc", columns=table["columns"], source=_Chunks(member)
                )
            if int(done.rpartition(" ")[2]) != table["rows"]:
                raise _not_a_backup()

    async def _raise_sequences(self, seen: dict[str, int]) -> None:
        for name, last in self._manifest["sequences"].items():
            floor = max(last, seen.get(name, 0))
            if floor:
                await self._db.execute(
                    "select setval($1::text::regclass, $2)", f"odc.{name}", floor
                )


class _Chunks:
    """A file as the asynchronous iterator that COPY requires."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def __aiter__(self) -> _Chunks:
        return self

    async def __anext__(self) -> bytes:
        data = self._file.read(CHUNK)
        if not data:
            raise StopAsyncIteration
        return data
