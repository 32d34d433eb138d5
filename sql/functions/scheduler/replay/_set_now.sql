-- odc._set_now: set the time of this transaction's changes, for the triggers that keep the past.
-- Every entry function that changes a table with a past calls it, most of them through _take_turn.
create or replace function odc._set_now(p_now timestamptz)
returns void
language sql volatile as $$
    select set_config('odcd.now', p_now::text, true);
$$;
