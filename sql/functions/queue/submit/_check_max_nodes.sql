-- odc._check_max_nodes: refuse more nodes than one of these partitions gives a job.
-- Raises     OD009 LimitExceeded
create or replace function odc._check_max_nodes(p_partition_ids integer[], p_node_count bigint)
returns void
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_limit record;
begin
    select p.name, p.max_nodes into v_limit
      from partition as p
     where p.id = any (p_partition_ids) and p.max_nodes < p_node_count
     order by p.max_nodes, p.name limit 1;
    if found then
        raise exception using errcode = 'OD009',
            message = format('%s nodes exceed the limit of %s of partition "%s"', p_node_count, v_limit.max_nodes, v_limit.name),
            hint = 'Request fewer nodes, or name another partition.';
    end if;
end;
$$;
