-- odc._disk_delay: the delay before a failed operation is retried: 1, 2, 4 s, … up to a minute.
create or replace function odc._disk_delay(p_tries integer)
returns interval
language sql immutable as $$
    select least(60, 1 << least(greatest(p_tries, 0), 6)) * interval '1 second'
$$;
