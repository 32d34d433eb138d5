-- odc._take_turn: one at a time: what starts, ends or changes jobs, and what submits with dependencies.
-- A job that ends looks for those that wait for it, and a job that begins to wait looks whether the other has
-- ended; without turns each could miss the other, and two that lock jobs in different orders would deadlock.
-- Take it before any row.
-- Arguments  p_now  the moment at which this transaction changes things: see odc._set_now
-- Locks      advisory 0x6F6464 ("odd"), to the end of the transaction
create or replace function odc._take_turn(p_now timestamptz default null)
returns void
language sql volatile as $$
    select pg_advisory_xact_lock(7300196);
    select case when p_now is not null then odc._set_now(p_now) end;
$$;
