"""Load the functions and views of sql/ into a database, and drop those that have no file."""

from __future__ import annotations

import re
from collections.abc import Sequence

import asyncpg

from odcd.clock import Clock
from odcd.database.pool import translate
from odcd.database.schema_source import File, Source
from odcd.errors import OdcError

CREATED = re.compile(
    r"^create or replace (function|procedure|aggregate|view) (odc(?:_report)?\.\w+)", re.MULTILINE
)
OBJECT_NAME = re.compile(r"^(function|procedure|aggregate|view) (odc(?:_report)?\.\w+)")
MAX_RELOADS = 3
# Errors of a statement that names an object created by a later file.
NOT_YET_THERE = (
    asyncpg.UndefinedFunctionError,
    asyncpg.UndefinedTableError,
    asyncpg.UndefinedObjectError,
    asyncpg.UndefinedColumnError,
)
# Errors of `create or replace` when the old object must be dropped first because its result,
# argument names or columns differ.
MUST_DROP = (asyncpg.InvalidFunctionDefinitionError, asyncpg.InvalidTableDefinitionError)
AMBIGUOUS = re.compile(r"function (?:odc\.)?(\w+)\(")
"""The function that an AmbiguousFunctionError names. An old version of it without a new optional
argument fits the same call, until it is dropped because it has no file."""


class Functions:
    """The functions and views of one database, over its installer's connection."""

    def __init__(self, connection: asyncpg.Connection, source: Source, clock: Clock) -> None:
        self._db = connection
        self._source = source
        self._clock = clock

    async def reload(self) -> tuple[int, list[str]]:
        files = self._source.functions + self._source.views
        dropped: list[str] = []
        async with self._db.transaction():
            for _ in range(MAX_RELOADS):
                before = await self.objects()
                await self._load(files)
                after = await self.objects()
                # `create or replace` writes the row again; an object whose row did not move has no
                # file.
                stale = [name for name, row in after.items() if before.get(name) == row]
                for name in stale:
                    await self._db.execute(f"drop {name} cascade")
                dropped += stale
                # A loaded function was bound to a stale one and was dropped with it: load again.
                if len(await self.objects()) == len(after) - len(stale):
                    break
            else:
                raise OdcError(f"functions still need other functions that have no file: {dropped}")
            if any(name.endswith("/_build_past.sql") for name, _ in files):
                await self._db.execute("select odc._build_past()")
            await self._db.execute(
                "insert into odc.install (digest, object_count, installed_at) values ($1, $2, $3) "
                "on conflict (one) do update set digest = excluded.digest, "
                "object_count = excluded.object_count, installed_at = excluded.installed_at",
                self._source.digest, len(after) - len(stale), self._clock.now(),
            )  # fmt: skip
            await self._db.execute(
                "update odc.migration set compatible_since = $2 where version = $1",
                self._source.version, self._source.compatible_since,
            )  # fmt: skip
        return len(files), dropped

    async def objects(self) -> dict[str, str]:
        """The routines and views of the schemas, as `drop` names them, with the position of their
        row."""
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
            # Functions that name each other: no order works. Create them unchecked, then check
            # them.
            await self._db.execute("set local check_function_bodies = off")
            await self._load_possible(list(left))
            await self._db.execute("set local check_function_bodies = on")
            left = await self._load_possible(list(left))
        for (name, _), error in left.items():
            raise of_file(name, error) from error

    async def _load_possible(self, files: Sequence[File]) -> dict[File, asyncpg.PostgresError]:
        """Load the files, each after those it needs; return the rest with their errors."""
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
                except asyncpg.AmbiguousFunctionError as error:
                    found = AMBIGUOUS.match(str(error))
                    if found is None or found[1] in replaced:
                        raise of_file(name, error) from error
                    replaced.add(found[1])
                    await self._drop_all({("function", f"odc.{found[1]}")})
                    restart = True
                    break
                except asyncpg.PostgresError as error:
                    if not isinstance(error, MUST_DROP) or name in replaced:
                        raise of_file(name, error) from error
                    replaced.add(name)
                    await self._drop_all(set(CREATED.findall(text)))
                    restart = True  # objects that depended on it were dropped with it
                    break
            if len(failed) == len(waiting):
                return failed
            waiting = list(files) if restart else list(failed)
        return {}

    async def _drop_all(self, defined: set[tuple[str, str]]) -> None:
        """Drop these objects (kind, name), whatever their current arguments are."""
        for old in await self.objects():
            match = OBJECT_NAME.match(old)
            if match and (match[1], match[2]) in defined:
                await self._db.execute(f"drop {old} cascade")


def of_file(name: str, error: asyncpg.PostgresError) -> BaseException:
    """Add the file name to the error, unless the server itself failed."""
    known = translate(error)
    if isinstance(known, OdcError):
        return known
    return OdcError(f"sql/{name} does not load: {error}", getattr(error, "hint", None))
