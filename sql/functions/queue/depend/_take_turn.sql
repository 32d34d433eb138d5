-- odc._take_turn: serialise whatever starts, ends or changes jobs, and submissions with dependencies.
-- A job that ends looks for jobs that wait for it, and a job that begins to wait checks whether its target has ended.
-- Without turns each could miss the other, and two transactions that lock jobs in different orders would deadlock.
-- Take the turn before locking any row.
-- Arguments  p_now  the time of this transaction's changes: see odc._set_now
-- Locks      advisory 0x6F6464 ("odd"), to the end of the transaction
create or replace function odc._take_turn(p_now timestamptz default null)
returns void
language sql volatile as $$
    select pg_advisory_xact_lock(7300196);
    select case when p_now is not null then odc._set_now(p_now) end;
$$;
