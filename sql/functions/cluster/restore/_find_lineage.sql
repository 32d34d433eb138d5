-- odc._find_lineage: identify this PostgreSQL. initdb creates the system identifier; each promotion and each recovery to a
-- point in time starts a new timeline. The timeline comes from the WAL, because the last checkpoint may still name the old one.
create or replace function odc._find_lineage()
returns table (system_id bigint, timeline integer)
language sql stable as $$
    select c.system_identifier, ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::integer
      from pg_control_system() as c
$$;
