-- odc._final_below: what transactions below this one wrote to this database will not change any more.
-- The snapshot knows the open transactions of the whole server; those of other databases, and autovacuum's, are
-- left out as far as the caller's rights let it see them: they write nothing here and may stay open for long.
create or replace function odc._final_below()
returns xid8
language sql stable as $$
    select coalesce(
        (select x
           from pg_snapshot_xip(s) as x
          where not exists (select from pg_stat_activity as a
                             where a.backend_xid = x::xid
                               and (a.datname <> current_database() or a.backend_type = 'autovacuum worker'))
          order by x
          limit 1),
        pg_snapshot_xmax(s))
      from pg_current_snapshot() as s
$$;
