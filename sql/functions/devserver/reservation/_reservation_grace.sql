-- odc._reservation_grace: how long after expires_at a reservation keeps its nodes, and can still be extended.
create or replace function odc._reservation_grace()
returns interval
language sql immutable as $$
    select interval '120 seconds'
$$;
