-- odc._final_below: a transaction id below which everything written to this database is final.
-- The snapshot includes the open transactions of the whole server. Those of other databases, autovacuum's, and those of
-- logins that cannot write events are ignored as far as the caller's rights show them: they write nothing
-- here and may stay open for a long time.
create or replace function odc._final_below()
returns xid8
language sql stable as $$
    select coalesce(
        (select x
           from pg_snapshot_xip(s) as x
          where not exists (select from pg_stat_activity as a
                             where a.backend_xid = x::xid
                               and (a.datname <> current_database() or a.backend_type = 'autovacuum worker'
                                    or not (pg_has_role(a.usesysid, (select n.nspowner from pg_namespace as n where n.nspname = 'odc'), 'member')
                                            or pg_has_role(a.usesysid, 'pg_database_owner', 'member')
                                            or has_table_privilege(a.usesysid, 'odc.event', 'insert'))))
          order by x
          limit 1),
        pg_snapshot_xmax(s))
      from pg_current_snapshot() as s
$$;
