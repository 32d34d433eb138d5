"""Restore an export for reading: all of it or nothing, as often as the user likes.

The rows return to the tables that they came from, so every command shows them again. Retention does
not delete them before the export's restored_until.
"""

from __future__ import annotations

import gzip
import re
import tempfile
import zlib
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from odcd.clock import Clock
from odcd.database import driver
from odcd.database.connections import BACKUP
from odcd.database.pool import close, connect, translate_on
from odcd.database.session import Session
from odcd.errors import BadRequest, OdcError, SchemaTooNew, WrongState
from odcd.history.export import APPLICATION, COLUMNS, VERSION
from odcd.history.manifest import IDENTIFIER, Manifest, check_files, read_manifest
from odcd.history.targets import Target

CHUNK = 1 << 20
KEEP = timedelta(days=30)
# Lower than every transaction of this database, so no reader treats restored events as new.
OLD_XID = "'1'::xid8"
USED_AGAIN = """
    update odc.history_gone
       set gpu_ms = gpu_ms - coalesce((
               select sum(b.gpus * odc._attempt_ms(b.started_at, b.ended_at, b.ended_at))
                 from back as b
                where not exists (select from odc.attempt as a
                                   where a.job_id = b.job_id and a.attempt = b.attempt)), 0)
"""
REMEMBER = """
    insert into odc.history_export
        (name, kind, low, high, rows, target, digest, made_at, restored_until)
    values ($1, $2, $3, $4, $5, '', '', $6::timestamptz,
            $6::timestamptz + $7::interval)
    on conflict (name) do update set restored_until = excluded.restored_until
"""


async def restore(
    dsn: str, target: Target, name: str, clock: Clock, *, keep: timedelta = KEEP
) -> tuple[Manifest, int]:
    """Return the manifest of the export, and the number of restored rows that were absent.

    Raises OdcError if the export is incomplete, was changed or belongs to another database, and
    SchemaTooNew if a newer odc wrote it. Nothing was changed then.
    """
    if re.fullmatch(r"[a-z]+-\d+-\d+-[0-9TZ]+", name) is None:
        raise BadRequest(f'"{name}" is not the name of an export', "Run odcd history list.")
    connection = await connect(dsn, name=APPLICATION, kind=BACKUP)
    try:
        with tempfile.TemporaryDirectory(prefix="odc-history-") as folder:
            scratch = Path(folder)
            manifest = await read_manifest(target, name, scratch)
            if manifest is None:
                raise OdcError(
                    f"export {name} does not exist, or was cut short: it has no manifest",
                    "Run `odcd history list` to see the complete exports.",
                )
            await _check(connection, manifest)
            files = await check_files(target, manifest, scratch)
            async with connection.transaction():
                rows = await _fill(connection, manifest, files)
                await connection.execute(
                    REMEMBER, manifest.name, manifest.kind, manifest.low, manifest.high,
                    manifest.rows, clock.now(), keep,
                )  # fmt: skip
            return manifest, rows
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise OdcError(f"export {name} is damaged: {error}", "Use another copy of it.") from error
    except driver.PostgresError as error:
        raise translate_on(connection, error) from error
    finally:
        await close(connection)


async def _check(connection: driver.Connection, manifest: Manifest) -> None:
    version = await Session(connection).fetchval(VERSION)
    if manifest.schema_version > version:
        raise SchemaTooNew(
            f"the export has version {manifest.schema_version}, but this database has {version}",
            "Upgrade the database, then restore the export.",
        )
    if manifest.server != await connection.fetchval("select id::text from odc.server"):
        raise WrongState(
            f"export {manifest.name} belongs to another database: its ids are other jobs here",
            "Restore it into the database that it was exported from, or into a backup of that.",
        )
    names = [*manifest.tables, *(c for t in manifest.tables.values() for c in t.columns)]
    if not all(re.match(IDENTIFIER, one) for one in names):
        raise BadRequest("the manifest has an invalid name", "Use another copy of the export.")


async def _fill(connection: driver.Connection, manifest: Manifest, files: dict[str, Path]) -> int:
    for parent in ("job", "attempt", "prediction") if manifest.kind == "jobs" else ():
        await _cover(connection, parent, manifest.low, manifest.high)
    if manifest.event_high > manifest.event_low:
        await _cover(connection, "event", manifest.event_low, manifest.event_high)
    restored = {
        row["name"] for row in await connection.fetch("select * from odc.history_tables()")
        if row["restored"]
    } | {"job_text"}  # fmt: skip
    back = 0
    for name in manifest.tables:
        if name in restored:
            back += await _table(connection, manifest, name, files[name])
    return back


async def _cover(connection: driver.Connection, parent: str, low: int, high: int) -> None:
    await connection.execute("select odc.cover_ids($1, $2, $3)", parent, low, high)


async def _table(connection: driver.Connection, manifest: Manifest, name: str, file: Path) -> int:
    """Restore one table through a temporary table, because some rows may still exist."""
    table = manifest.tables[name]
    here: list[str] = await Session(connection).fetchval(COLUMNS, name)
    known = [column for column in table.columns if column in here]
    gone = [column for column in table.columns if column not in here]
    await connection.execute(
        f"create temp table back on commit drop as select {_names(known)} from odc.{name} "
        "with no data"
    )
    for column in gone:
        await connection.execute(f'alter table back add column "{column}" text')
    done = await connection.copy_to_table("back", columns=table.columns, source=_Chunks(file))
    if int(done.rpartition(" ")[2]) != table.rows:
        raise OdcError(
            f"{name}.copy.gz has {done.rpartition(' ')[2]} rows, but its manifest has {table.rows}",
            "Use another copy of the export.",
        )
    if name == "attempt":
        await connection.execute(USED_AGAIN)
    xid = ("xid",) if name == "event" else ()
    inserted = await connection.execute(
        f"insert into odc.{name} ({_names([*known, *xid])}) overriding system value "
        f"select {_names(known)}{f', {OLD_XID}' if xid else ''} from back on conflict do nothing"
    )
    await connection.execute("drop table back")
    return int(inserted.rpartition(" ")[2])


def _names(columns: list[str]) -> str:
    return ", ".join(f'"{column}"' for column in columns)


class _Chunks:
    """A compressed file as an asynchronous iterator for COPY."""

    def __init__(self, file: Path) -> None:
        self._file: Any = gzip.open(file)  # noqa: SIM115

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        data: bytes = self._file.read(CHUNK)
        if not data:
            self._file.close()
            raise StopAsyncIteration
        return data
