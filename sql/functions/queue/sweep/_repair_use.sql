-- odc._repair_use: count again what running jobs use, correct rows that differ, and delete rows without jobs.
-- Returns    one sentence per corrected row
-- Locks      the caller holds the turn; running_use rows that differ
-- enable_nestloop: see _repair_nodes.
create or replace function odc._repair_use()
returns text[]
language plpgsql volatile set search_path = odc, pg_temp set enable_nestloop = off as $$
declare
    v_wrong text[];
begin
    delete from running_use where jobs = 0 and started_ms = 0;
    select coalesce(array_agg(w order by w), '{}') into v_wrong from _wrong_use() as w;
    if v_wrong <> '{}' then
        delete from running_use;
        insert into running_use select * from _count_use();
    end if;
    return v_wrong;
end;
$$;
