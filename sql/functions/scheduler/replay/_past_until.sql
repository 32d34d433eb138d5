-- odc._past_until: what came after this is not there yet in the views of schema odc_past; by snapshot, time says nothing.
create or replace function odc._past_until()
returns timestamptz
language sql stable as $$
    select case when odc._past_snapshot() is null then odc._past_at() else 'infinity' end;
$$;
