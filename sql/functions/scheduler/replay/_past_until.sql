-- odc._past_until: rows inserted after this are not in the views of schema odc_past yet; infinity if a snapshot decides.
create or replace function odc._past_until()
returns timestamptz
language sql stable as $$
    select case when odc._past_snapshot() is null then odc._past_at() else 'infinity' end;
$$;
