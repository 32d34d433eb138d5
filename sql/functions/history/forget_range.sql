-- odc.forget_range: delete the rows of the jobs of some ids that are not in the partitions of job, before these are dropped.
-- Arguments  p_low, p_high  the ids, from low to below high, within a partition that odc.whole_partitions named
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
