-- odc._limit_moved: trigger on running: the time limit of a running job has changed, and with it what limits leave and when
-- its nodes are free.
-- Locks      facts
create or replace function odc._limit_moved()
returns trigger
language plpgsql set search_path = odc, pg_temp as $$
begin
    perform _raise_facts();
    return null;
end;
$$;
