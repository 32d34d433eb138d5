"""Put a database back as it was, so that the sessions of a test keep their compiled functions."""

from __future__ import annotations

from tests.support.harness.database import Sql

_TABLES = """
    select c.relname as name, string_agg(quote_ident(a.attname), ', ' order by a.attnum) as columns
      from pg_class as c
      join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
           and a.attgenerated = ''
     where c.relnamespace = 'odc'::regnamespace and c.relkind in ('r', 'p')
       and not c.relispartition and c.relname not in ('migration', 'install')
     group by c.relname order by c.relname
"""
_SEQUENCES = (
    "select format('odc.%I', relname) from pg_class "
    "where relnamespace = 'odc'::regnamespace and relkind = 'S' order by 1"
)
_LIVE = (
    "pending", "running", "allocation", "planned", "array_job", "dependency", "node_free", "node",
    "booking", "booking_node", "licence", "resource_limit", "partition", "term", "reservation",
)  # fmt: skip
_ROWS = " union all ".join(
    f"select '{name}' || (to_jsonb(t) - '{{pass_id,backend_pid,born_xid}}'::text[])::text as t "
    f"from odc.{name} as t"
    for name in _LIVE
)
FINGERPRINT = (
    r"select md5(string_agg(regexp_replace(t, '\.\d+\+00', '+00', 'g'), ',' order by t)) "
    f"from ({_ROWS} union all "
    "select id || ' ' || coalesce(state::text, '') || coalesce(array_tasks, '') from odc.job) as u"
)
"""A fingerprint of all data that decides the next steps; equal for schedules that reach the same
state. Fractions of seconds do not count: a pass that decides twice adds its duration."""


class Photo:
    """The rows of every table of odc, and where its sequences stood."""

    def __init__(self, sql: Sql, name: str) -> None:
        self._sql = sql
        self._name = name
        sql.execute(f"create schema {name}")
        take, put = [], []
        for table in sql.rows(_TABLES):
            live, columns = f"odc.{table['name']}", table["columns"]
            kept = f"{name}.{table['name']}"
            sql.execute(f"create unlogged table {kept} as select {columns} from {live} limit 0")
            for lines, there, from_ in ((take, kept, live), (put, live, kept)):
                overriding = " overriding system value" if there == live else ""
                lines += [
                    f"if exists (select from {there}) then delete from {there}; end if;",
                    f"if exists (select from {from_}) then insert into {there} ({columns})"
                    f"{overriding} select {columns} from {from_}; end if;",
                ]
        # The same ids each time, so that equal states of two schedules can be recognized.
        sql.execute(f"create table {name}.ids (sequence text, last bigint, called boolean)")
        take.append(f"delete from {name}.ids;")
        for sequence in sql.values(_SEQUENCES):
            take.append(
                f"insert into {name}.ids select '{sequence}', last_value, is_called "
                f"from {sequence};"
            )
        put.append(f"perform setval(sequence::regclass, last, called) from {name}.ids;")
        for verb, lines in (("take", take), ("put", put)):
            body = "\n".join(lines)
            # Triggers stay silent: the rows that they maintain are in the photo, too.
            sql.execute(
                f"create function {name}._{verb}() returns void language plpgsql "
                "set session_replication_role = replica as "
                f"$photo$ begin {body} end; $photo$"
            )

    def take(self) -> None:
        self._sql.execute(f"select {self._name}._take()")

    def restore(self) -> None:
        self._sql.execute(f"select {self._name}._put()")
