-- odc._sweep_steps: the steps of a sweep, in their order.
-- Late reservations end before time limits are checked, because the time of reservations that are not active yet has not
-- begun.
create or replace function odc._sweep_steps()
returns text[]
language sql immutable as $$
    select '{bookings,begin,delays,deadline,reservations,disks,limit,nodes,books,quarantine,tidy}'::text[]
$$;
