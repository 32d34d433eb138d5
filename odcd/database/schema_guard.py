"""Check whether this odc may use or change a database of another version, or one in use."""

from __future__ import annotations

from typing import Literal

import asyncpg

from odcd.clock import Clock
from odcd.database.schema_source import Source
from odcd.errors import SchemaTooNew, WrongState

Beside = Literal["any", "compatible", "none"]
"""The daemons that may run while the schema changes: any (an embedded home has only this daemon),
those that work on the new version (`odcd migrate`), or none (`odcd serve`)."""

# A daemon that has just ended may leave a backend that has not noticed it yet.
GONE_WITHIN_S = 10.0
LOOK_EVERY_S = 0.2

# The daemon, its leader and its listener; not the commands.
DAEMONS = """
    select count(*) from pg_stat_activity
     where datname = current_database() and application_name like 'odcd%'
       and application_name <> 'odcd install' and pid <> pg_backend_pid()
"""
# Version 24 added the column: older databases lack it.
NEWEST = """
    select version, (to_jsonb(m)->>'compatible_since')::integer as compatible_since
      from odc.migration as m order by version desc limit 1
"""


async def newer_version(connection: asyncpg.Connection, source: Source) -> int | None:
    """Return the version of a database that a newer odc wrote and that this odc can use; None if
    the database is not newer. Raises SchemaTooNew when this odc cannot use it."""
    row = await connection.fetchrow(NEWEST)
    if row is None or row["version"] <= source.version:
        return None
    since = row["compatible_since"]
    if since is not None and since <= source.version:
        return int(row["version"])
    works = f"; daemons that know version {since} or newer can use it" if since is not None else ""
    raise SchemaTooNew(
        f"the database has schema version {row['version']}, but this odc knows only "
        f"{source.version}{works}",
        "Run the newer odc that wrote it, or restore a backup made before the upgrade.",
    )


async def check_beside(
    connection: asyncpg.Connection, source: Source, beside: Beside, clock: Clock
) -> None:
    """Raises WrongState when daemons use the database and the change could break them."""
    if beside == "any":
        return
    row = await connection.fetchrow(NEWEST)
    if row is None:
        return
    if beside == "compatible" and row["version"] >= source.compatible_since:
        return
    if not await _at_work(connection, clock):
        return
    if beside == "compatible":
        raise WrongState(
            f"daemons of version {row['version']} are using this database, and they cannot "
            f"use version {source.version}",
            "Stop all of them, run `odcd migrate` again, then start the new ones. Jobs continue "
            "meanwhile.",
        )
    same = row["version"] == source.version
    raise WrongState(
        f"the database is at version {row['version']}"
        + (
            ", as is this odc, but with different functions"
            if same
            else f", but this odc is at version {source.version}"
        )
        + "; other daemons are using it",
        "Upgrade the database first: run `odcd migrate` of the newer odc. To avoid a rolling "
        "upgrade, stop the other daemons.",
    )


async def _at_work(connection: asyncpg.Connection, clock: Clock) -> bool:
    until = clock.monotonic() + GONE_WITHIN_S
    while await connection.fetchval(DAEMONS):
        if clock.monotonic() > until:
            return True
        await clock.sleep(LOOK_EVERY_S)
    return False
