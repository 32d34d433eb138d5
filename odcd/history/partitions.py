"""Create the PostgreSQL partitions that the next ids need, and the indexes that old ones lack.

Runs on the leader only, on its own connection and outside every pass and sweep. Other sessions
never wait long for it: creating a partition gives up after two seconds, and an index is built
concurrently. A step that fails is tried again; enough ids for weeks are left then.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from odcd.clock import Clock
from odcd.database import driver
from odcd.database.connections import INSTALLER
from odcd.database.pool import Database, close, connect, translate_on
from odcd.database.session import Session
from odcd.errors import DatabaseBusy, OdcError

log = logging.getLogger(__name__)

APPLICATION = "odcd-partitions"
EVERY_S = 600.0
RETRY_S = 30.0
LOCK_TIMEOUT = "2s"
# Building an index waits for every older transaction, such as a backup.
BUILD_TIMEOUT = "1h"

# Indexes of a partitioned table that a partition lacks, or that an interrupted build left invalid
# on a partition. definition: the index definition for the partition.
MISSING = """
    select p.relname as index_name, t.relname as part_name,
           format('%s_%s', p.relname, t.relname) as own_name,
           regexp_replace(pg_get_indexdef(p.oid), '^CREATE (UNIQUE )?INDEX \\S+ ON (ONLY )?\\S+ ',
                          '') as definition,
           k.oid is not null and not x.indisvalid as broken, k.oid is not null as built
      from pg_index as i
      join pg_class as p on p.oid = i.indexrelid and p.relkind = 'I'
      join pg_inherits as h on h.inhparent = i.indrelid and not h.inhdetachpending
      join pg_class as t on t.oid = h.inhrelid
      left join pg_class as k on k.relnamespace = t.relnamespace
                             and k.relname = format('%s_%s', p.relname, t.relname)
      left join pg_index as x on x.indexrelid = k.oid
     where p.relnamespace = 'odc'::regnamespace and not i.indisprimary
       and not exists (select from pg_inherits as ih
                         join pg_index as c on c.indexrelid = ih.inhrelid
                        where ih.inhparent = p.oid and c.indrelid = t.oid)
     order by t.oid, p.relname
"""


class Partitions:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def run(self) -> None:
        while True:
            done = await self._look()
            await self._clock.sleep(EVERY_S if done else RETRY_S)

    async def _look(self) -> bool:
        try:
            made = await make_partitions(self._database.dsn)
            if made:
                log.info("partitions.created", extra={"partitions": ",".join(made)})
            for name in await finish_indexes(self._database.dsn):
                log.info("partitions.index_built", extra={"index": name})
        except OdcError as error:
            log.warning("partitions.not_created", extra={"why": error.message})
            return False
        except Exception:
            # Enough ids for weeks are left, so the leader keeps starting jobs.
            log.exception("partitions.failed")
            return False
        return True


async def make_partitions(dsn: str) -> Sequence[str]:
    """Create partitions and return their names. Raises OdcError when a lock was not free."""
    connection = await connect(dsn, name=APPLICATION)
    try:
        return await Session(connection).fetchval("select odc.create_partitions()")
    except DatabaseBusy as error:
        raise OdcError(
            f"a partition was not created: {error}", "The leader tries again."
        ) from error
    except Exception as error:
        raise translate_on(connection, error) from error
    finally:
        await close(connection)


async def finish_indexes(dsn: str) -> Sequence[str]:
    """Build the indexes in MISSING concurrently, one by one, and return their names."""
    connection = await connect(dsn, name=APPLICATION, kind=INSTALLER)
    try:
        missing = await connection.fetch(MISSING)
        for row in missing:
            await _build(connection, row)
        return [row["own_name"] for row in missing]
    except driver.LockNotAvailableError as error:
        raise OdcError(f"an index was not built: {error}", "The leader tries again.") from error
    except Exception as error:
        raise translate_on(connection, error) from error
    finally:
        await close(connection)


async def _build(connection: driver.Connection, row: driver.Record) -> None:
    own, part = f'odc."{row["own_name"]}"', f'odc."{row["part_name"]}"'
    await connection.execute(f"set lock_timeout = '{BUILD_TIMEOUT}'")
    if row["broken"]:
        await connection.execute(f"drop index concurrently {own}")
    if row["broken"] or not row["built"]:
        await connection.execute(
            f'create index concurrently "{row["own_name"]}" on {part} {row["definition"]}'
        )
    await connection.execute(f"set lock_timeout = '{LOCK_TIMEOUT}'")
    await connection.execute(f'alter index odc."{row["index_name"]}" attach partition {own}')
