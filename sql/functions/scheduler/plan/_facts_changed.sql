-- odc._facts_changed: trigger on the tables that a plan trusts without checking their rows again; it raises facts.version.
-- Locks      facts
create or replace function odc._facts_changed()
returns trigger
language plpgsql set search_path = odc, pg_temp as $$
begin
    if exists (select from changed_rows) then
        perform _raise_facts();
    end if;
    return null;
end;
$$;
