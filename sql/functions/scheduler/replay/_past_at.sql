-- odc._past_at: the moment that the views of schema odc_past show; infinity, the present, if none is set.
create or replace function odc._past_at()
returns timestamptz
language sql stable as $$
    select coalesce(nullif(current_setting('odcd.past_at', true), '')::timestamptz, 'infinity');
$$;
