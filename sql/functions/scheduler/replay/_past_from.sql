-- odc._past_from: changes before this moment are always included in the views of schema odc_past.
-- With a snapshot, a change with an earlier time may have been committed later, by at most one hour: clocks and
-- transactions do not differ by more than that.
create or replace function odc._past_from()
returns timestamptz
language sql stable as $$
    select odc._past_at() - case when odc._past_snapshot() is null then interval '0' else interval '1 hour' end;
$$;
