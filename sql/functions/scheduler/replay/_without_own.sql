-- odc._without_own: a snapshot of this transaction as other sessions see it, without this transaction's writes.
-- PostgreSQL does not list the current transaction as running, so without this it would seem to have committed.
create or replace function odc._without_own(p_snapshot pg_snapshot)
returns pg_snapshot
language sql volatile as $$
    select case when pg_visible_in_snapshot(pg_current_xact_id(), p_snapshot)
                then format('%s:%s:%s', least(pg_snapshot_xmin(p_snapshot)::text::bigint, pg_current_xact_id()::text::bigint),
                            pg_snapshot_xmax(p_snapshot),
                            (select string_agg(x.id::text, ',' order by x.id)
                               from (select pg_snapshot_xip(p_snapshot)::text::bigint as id
                                      union all select pg_current_xact_id()::text::bigint) as x))::pg_snapshot
                else p_snapshot end;
$$;
