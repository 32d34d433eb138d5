-- odc._take_turn: one at a time: what submits with dependencies, and what ends jobs.
-- A job that ends looks for those that wait for it, and a job that begins to wait looks whether the other has
-- ended; without turns each could miss the other. Take it before any row. A pass takes none: it only starts jobs,
-- and what waits for a start is looked at again by every sweep.
-- Locks      advisory 0x6F6464 ("odd"), to the end of the transaction
create or replace function odc._take_turn()
returns void
language sql volatile as $$
    select pg_advisory_xact_lock(7300196);
$$;
