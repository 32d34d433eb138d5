-- odc._hold_partitions: no partition is deleted until this transaction ends; many may hold them at once.
-- Locks      advisory 0x6F6465 ("ode"), shared
create or replace function odc._hold_partitions()
returns void
language sql volatile as $$
    select pg_advisory_xact_lock_shared(7300197);
$$;
