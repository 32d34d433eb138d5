-- odc._disk_delay: after how long something that failed so often is tried again: 1, 2, 4 s, … up to a minute.
create or replace function odc._disk_delay(p_tries integer)
returns interval
language sql immutable as $$
    select least(60, 1 << least(greatest(p_tries, 0), 6)) * interval '1 second'
$$;
