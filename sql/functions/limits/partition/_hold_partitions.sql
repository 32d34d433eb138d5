-- odc._hold_partitions: prevent the deletion of partitions until this transaction ends; many sessions may do so at once.
-- Locks      advisory 0x6F6465 ("ode"), shared
create or replace function odc._hold_partitions()
returns void
language sql volatile as $$
    select pg_advisory_xact_lock_shared(7300197);
$$;
