-- odc._past_from: what changed before this is over and done with in the views of schema odc_past.
-- By snapshot, a change told earlier may have been committed later; by an hour at most: clocks and transactions are
-- not that far off.
create or replace function odc._past_from()
returns timestamptz
language sql stable as $$
    select odc._past_at() - case when odc._past_snapshot() is null then interval '0' else interval '1 hour' end;
$$;
