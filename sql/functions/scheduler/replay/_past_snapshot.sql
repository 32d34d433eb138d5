-- odc._past_snapshot: the transactions whose changes the views of schema odc_past show; null: select by time.
create or replace function odc._past_snapshot()
returns pg_snapshot
language sql stable as $$
    select nullif(current_setting('odcd.past_snapshot', true), '')::pg_snapshot;
$$;
