-- odc._past_own: a transaction whose changes the views of schema odc_past show besides those of odc._past_snapshot; 0:
-- none.
create or replace function odc._past_own()
returns xid8
language sql stable as $$
    select coalesce(nullif(current_setting('odcd.past_own', true), ''), '0')::xid8;
$$;
