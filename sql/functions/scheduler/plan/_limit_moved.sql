-- odc._limit_moved: trigger on running: raise facts.version when the time limit of a running job changes. The change affects
-- when its nodes become free and how much its limits still allow.
-- Locks      facts
create or replace function odc._limit_moved()
returns trigger
language plpgsql set search_path = odc, pg_temp as $$
begin
    perform _raise_facts();
    return null;
end;
$$;
