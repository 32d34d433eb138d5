"""Write ended jobs, or events without a job, to a target: one file per table, then the manifest.

An export without a manifest is incomplete and is not used. The files are read back and compared
before the manifest is written, so that retention can safely delete exported rows.
"""

from __future__ import annotations

import asyncio
import gzip
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from odcd import __version__
from odcd.clock import Clock
from odcd.database import driver
from odcd.database.connections import BACKUP
from odcd.database.pool import close, connect, translate_on
from odcd.database.session import Session
from odcd.errors import OdcError
from odcd.history import manifest as records
from odcd.history.manifest import FORMAT, MANIFEST, Manifest, Table
from odcd.history.targets import Target

APPLICATION = "odcd-history"
LEVEL = 6
BY_IDS = "select u.id from unnest($1::bigint[]) as u (id)"
BY_END = (
    "select j.id from odc.job as j where j.state is not null and j.id >= $1 and j.id < $2 "
    "and ($3::timestamptz is null or j.ended_at < $3)"
)
COLUMNS = """
    select array_agg(a.attname::text order by a.attnum) from pg_attribute as a
     where a.attrelid = ('odc.' || $1)::regclass and a.attnum > 0 and not a.attisdropped
       and a.attgenerated = '' and a.atttypid not in ('xid8'::regtype, 'pg_snapshot'::regtype)
"""
VERSION = "select max(version) from odc.migration"
SPAN = "select min(id) as low, max(id) + 1 as high, count(*) as rows from picked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The rows to export: these ids, or all ended jobs of a range."""

    kind: str = "jobs"
    ids: Sequence[int] | None = None
    low: int = 0
    high: int = 2**62
    before: datetime | None = None


async def export(dsn: str, target: Target, selection: Selection, clock: Clock) -> Manifest | None:
    """Write an export, read it back and return its manifest; None if there is nothing to export.

    Raises OdcError if a file cannot be written, or if reading it back gives different content.
    """
    connection = await connect(dsn, name=APPLICATION, isolation="repeatable read", kind=BACKUP)
    try:
        with tempfile.TemporaryDirectory(prefix="odc-history-") as folder:
            async with connection.transaction():
                manifest = await _write(connection, Path(folder), selection, clock)
                if manifest is None:
                    return None
            await _send(target, manifest, Path(folder))
        await connection.execute(
            "insert into odc.history_export (name, kind, low, high, rows, target, digest, made_at) "
            "values ($1, $2, $3, $4, $5, $6, $7, $8)",
            manifest.name, manifest.kind, manifest.low, manifest.high, manifest.rows,
            type(target).__name__.lower(), records.digest(records.encode(manifest)), clock.now(),
        )  # fmt: skip
        return manifest
    except OSError as error:
        raise OdcError(
            f"the export was not written: {error.strerror or error}", "Check the space in $TMPDIR."
        ) from error
    except driver.PostgresError as error:
        raise translate_on(connection, error) from error
    finally:
        await close(connection)


async def _write(
    connection: driver.Connection, folder: Path, selection: Selection, clock: Clock
) -> Manifest | None:
    await connection.execute("create temp table picked (id bigint primary key) on commit drop")
    if selection.ids is not None:
        await connection.execute(f"insert into picked {BY_IDS}", list(selection.ids))
    else:
        await connection.execute(
            f"insert into picked {BY_END}", selection.low, selection.high, selection.before
        )
    await connection.execute("analyze picked")
    span = await connection.fetchrow(SPAN)
    if span is None or not span["rows"]:
        return None
    tables = {
        name: await _copy(connection, folder, name, condition)
        for name, condition in await _sources(connection, selection.kind)
    }
    events = await connection.fetchrow(
        "select coalesce(min(e.id), 0) as low, coalesce(max(e.id) + 1, 0) as high "
        "from odc.event as e where "
        + ("e.id" if selection.kind == "events" else "e.job_id")
        + " in (select id from picked)"
    )
    assert events is not None
    made_at = clock.now()
    name = f"{selection.kind}-{span['low']}-{span['high'] - 1}-{made_at:%Y%m%dT%H%M%S%fZ}"
    return Manifest(
        format=FORMAT, odc=__version__, kind=selection.kind, name=name,
        server=await Session(connection).fetchval("select id::text from odc.server"),
        schema_version=await Session(connection).fetchval(VERSION),
        made_at=made_at.isoformat(),
        before=selection.before.isoformat() if selection.before else None,
        low=span["low"], high=span["high"], rows=span["rows"],
        event_low=events["low"], event_high=events["high"], tables=tables,
    )  # fmt: skip


async def _sources(connection: driver.Connection, kind: str) -> list[tuple[str, str]]:
    """Each table with the condition on its rows."""
    if kind == "events":
        return [("event", "id in (select id from picked)")]
    rows = await connection.fetch("select name, key from odc.history_tables() where exported")
    texts = (
        "digest in (select script_digest from odc.job where id in (select id from picked) union "
        "select environment_digest from odc.job where id in (select id from picked))"
    )
    keyed = [(row["name"], f"{row['key']} in (select id from picked)") for row in rows]
    return [*keyed, ("job_text", texts)]


async def _copy(connection: driver.Connection, folder: Path, name: str, condition: str) -> Table:
    columns: list[str] = await Session(connection).fetchval(COLUMNS, name)
    file = folder / f"{name}.copy.gz"
    quoted = ", ".join(f'"{column}"' for column in columns)
    with file.open("wb") as raw, gzip.GzipFile("", "wb", LEVEL, raw, mtime=0) as packed:

        async def write(data: bytes, packed: Any = packed) -> None:
            # In a thread: the event loop also runs the leader's beat.
            await asyncio.to_thread(packed.write, data)

        done = await connection.copy_from_query(
            f'select {quoted} from odc."{name}" where {condition}', output=write
        )
    return Table(
        columns=columns, rows=int(done.rpartition(" ")[2]), bytes=file.stat().st_size,
        sha256=await asyncio.to_thread(records.digest_of, file),
    )  # fmt: skip


async def _send(target: Target, manifest: Manifest, folder: Path) -> None:
    for name in manifest.tables:
        await target.put(records.member(manifest.name, name), folder / f"{name}.copy.gz")
    scratch = folder / "read"
    scratch.mkdir()
    await records.check_files(target, manifest, scratch)
    file = folder / MANIFEST
    file.write_bytes(records.encode(manifest))
    await target.put(f"{manifest.name}/{MANIFEST}", file)
    if await records.read_manifest(target, manifest.name, scratch) != manifest:
        raise OdcError(
            f"the manifest of {manifest.name} was written, but reading it back gave different "
            "content",
            "Try again.",
        )
