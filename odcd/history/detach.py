"""Detach whole partitions concurrently and drop them; finish interrupted drops."""

from __future__ import annotations

from odcd.database.session import Session

LOCK_TIMEOUT = "5s"
MARK = "odc: exported where that is wanted, and to be dropped"
FITTING = """
    select c.relname as name, p.relname as parent
      from pg_inherits as i
      join pg_class as c on c.oid = i.inhrelid
      join pg_class as p on p.oid = i.inhparent
     cross join lateral regexp_match(pg_get_expr(c.relpartbound, c.oid),
                                     'FROM \\(''?(\\d+)''?\\) TO \\(''?(\\d+)') as b (bounds)
     where p.relnamespace = 'odc'::regnamespace and p.relname in ('attempt', 'prediction', 'job')
       and (b.bounds)[1]::bigint >= $1 and (b.bounds)[2]::bigint <= $2
     -- The jobs last: as long as they exist, an interrupted run starts again.
     order by p.relname = 'job', c.relname
"""
UNFINISHED = """
    select c.relname as name, p.relname as parent, coalesce(i.inhdetachpending, false) as pending,
           i.inhrelid is not null as attached
      from pg_class as c
      left join pg_inherits as i on i.inhrelid = c.oid
      left join pg_class as p on p.oid = i.inhparent
     where c.relnamespace = 'odc'::regnamespace and obj_description(c.oid, 'pg_class') = $1
"""


async def drop_partition(session: Session, term: int, part: str, low: int, high: int) -> None:
    """Drop a partition of job, and those of attempt and prediction that lie within its ids.
    Rows in other partitions stay: no command reads them without the job."""
    fitting = await session.fetch(FITTING, low, high)
    await session.execute("select odc._hold_term($1)", term)
    for row in fitting:
        await session.execute(f"comment on table odc.\"{row['name']}\" is '{MARK}'")
        await _detach(session, row["parent"], row["name"])
        await session.execute("select odc.drop_detached($1)", row["name"])


async def finish_drops(session: Session) -> None:
    """Finish the drops of an interrupted run. Partitions that are still attached stay: the next run
    decides about them again."""
    for row in await session.fetch(UNFINISHED, MARK):
        if row["pending"]:
            await session.execute(
                f'alter table odc."{row["parent"]}" detach partition odc."{row["name"]}" finalize'
            )
        if row["pending"] or not row["attached"]:
            await session.execute("select odc.drop_detached($1)", row["name"])


async def _detach(session: Session, parent: str, name: str) -> None:
    """Wait for the sessions that use the parent now, without blocking others."""
    await session.execute(f"set lock_timeout = '{LOCK_TIMEOUT}'")
    try:
        await session.execute(
            f'alter table odc."{parent}" detach partition odc."{name}" concurrently'
        )
    finally:
        await session.execute("reset lock_timeout")
