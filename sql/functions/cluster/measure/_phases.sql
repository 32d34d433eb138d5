-- odc._phases: the phases of a reservation, as its JSON names them.
create or replace function odc._phases()
returns text[]
language sql immutable as $$
    select '{queued,image_build,starting,disk,scheduling,init,image_pull,ssh,gang_barrier,active,cleaning_up}'::text[]
$$;
