-- odc._most_nodes: how many nodes a gang of a class may take, given its limits.
-- Arguments  p_least, p_most  minimum and maximum of its request;  the others  as for _use_limits
create or replace function odc._most_nodes(
    p_least integer, p_most integer, p_left bigint[], p_buckets integer[], p_needs bigint[], p_mores bigint[],
    p_from integer, p_to integer)
returns integer
language plpgsql immutable set search_path = odc, pg_temp as $$
begin
    for i in p_from..p_to loop
        if p_mores[i] > 0 then
            p_most := least(p_most, p_least + (p_left[p_buckets[i]] - p_needs[i]) / p_mores[i]);
        end if;
    end loop;
    return p_most;
end;
$$;
