"""Put a database back as it was, so that the sessions of a test keep their compiled functions."""

from __future__ import annotations

from tests.support.database import Sql

_TABLES = """
    select format('odc.%I', c.relname) as name, format('photo.%I', c.relname) as kept,
           string_agg(quote_ident(a.attname), ', ' order by a.attnum) as columns
      from pg_class as c
      join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
           and a.attgenerated = ''
     where c.relnamespace = 'odc'::regnamespace and c.relkind in ('r', 'p')
       and not c.relispartition and c.relname not in ('migration', 'install')
     group by c.relname order by c.relname
"""


_LAST_ID = "select last_value from odc.job_id_seq"
_LIVE = (
    "pending", "running", "allocation", "planned", "array_job", "dependency", "node_free", "node",
    "booking", "booking_node", "licence", "resource_limit", "partition", "term", "reservation",
)  # fmt: skip

_ROWS = " union all ".join(f"select '{name}' || t::text as t from odc.{name} as t" for name in _LIVE)
FINGERPRINT = (
    f"select md5(string_agg(t, ',' order by t)) from ({_ROWS} union all "
    "select id || ' ' || coalesce(state::text, '') || coalesce(array_tasks, '') from odc.job) as u"
)
"""Of all that decides what happens from here on; equal for schedules that come to the same end."""


def take_photo(sql: Sql) -> None:
    """Keep the rows of every table, and make the function that puts them back."""
    sql.execute("drop schema if exists photo cascade")
    sql.execute("create schema photo")
    lines = []
    for table in sql.rows(_TABLES):
        name, kept, columns = table["name"], table["kept"], table["columns"]
        sql.execute(f"create table {kept} as select {columns} from {name}")
        lines.append(f"if exists (select from {name}) then delete from {name}; end if;")
        if sql.value(f"select exists (select from {kept})"):
            lines.append(
                f"insert into {name} ({columns}) overriding system value "
                f"select {columns} from {kept};"
            )
    # The same ids in each schedule, so that two that come to the same end can be told to.
    lines.append(f"perform setval('odc.job_id_seq', {sql.value(_LAST_ID)});")
    body = "\n".join(lines)
    # Triggers stay silent: what they keep is in the photo, too.
    sql.execute(
        "create function photo.restore() returns void language plpgsql "
        "set session_replication_role = replica as "
        f"$photo$ begin {body} end; $photo$"
    )


def restore(sql: Sql) -> None:
    sql.execute("select photo.restore()")

