"""The tables in which the installer records what it applied."""

from __future__ import annotations

import asyncpg

from odcd.clock import Clock
from odcd.database.schema_source import Migration, Source
from odcd.errors import OdcError


class Records:
    def __init__(self, connection: asyncpg.Connection, source: Source, clock: Clock) -> None:
        self._db = connection
        self._source = source
        self._clock = clock

    async def create(self) -> None:
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
            -- The oldest version whose daemons work on a database of this one.
            alter table odc.migration add column if not exists compatible_since integer;
            """
        )

    async def applied(self) -> set[int]:
        """The versions of the applied migrations. Raises OdcError if one was edited since."""
        rows = await self._db.fetch(
            "select version, name, digest from odc.migration order by version"
        )
        ours = {m.version: m for m in self._source.migrations}
        for row in rows:
            if ours[row["version"]].digest != row["digest"]:
                raise OdcError(
                    f"migration {row['name']} was edited after it was applied to this database",
                    "A released migration is frozen: restore it, and put the change in a new one.",
                )
        return {row["version"] for row in rows}

    async def add(self, migration: Migration) -> None:
        await self._db.execute(
            "insert into odc.migration (version, name, digest, applied_at, compatible_since) "
            "values ($1, $2, $3, $4, $5)",
            migration.version, migration.name, migration.digest, self._clock.now(),
            self._source.compatible_since,
        )  # fmt: skip
