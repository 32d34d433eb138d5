-- odc.forget_range: before a partition of job is dropped, delete the rows of its jobs that are in other tables.
-- Arguments  p_low, p_high  the ids, from low to below high, within a partition that odc.whole_partitions returned
-- Locks      term for share; the rows
-- Raises     OD020 LeadershipLost
create or replace function odc.forget_range(p_term bigint, p_low bigint, p_high bigint)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_table record;
begin
    perform _hold_term(p_term);
    for v_table in select t.name, t.key from history_tables() as t where not t.partitioned order by t.name like '%\_past' loop
        execute format('delete from %I where %I >= $1 and %I < $2', v_table.name, v_table.key, v_table.key) using p_low, p_high;
    end loop;
end;
$$;
