-- odc._find_lineage: which PostgreSQL this is. initdb draws the system's number; each promotion and each recovery to a point
-- in time begins a timeline. The last checkpoint would still name the old one for a while: the WAL does not.
create or replace function odc._find_lineage()
returns table (system_id bigint, timeline integer)
language sql stable as $$
    select c.system_identifier, ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::integer
      from pg_control_system() as c
$$;
