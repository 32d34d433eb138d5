-- odc._read_booking_nodes: the nodes that a request selects for a booking: by name; or a number or all of a type, a
-- partition or both; or all nodes. A change by names or to all nodes replaces the earlier selection; a change of type,
-- partition or count keeps the other two.
-- Arguments  as _read_booking
-- Raises     OD001 UnknownPartition, OD005 UnknownGpuType, OD007 UnknownNode, OD010 BadRequest
create or replace function odc._read_booking_nodes(p_booking booking, p_ask jsonb)
returns booking
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    b booking := p_booking;
begin
    if b.id is not null and not p_ask ?| '{node_list,gpu_type,partition,all_nodes,node_count}' then
        return b;
    end if;
    if b.id is null or p_ask ?| '{node_list,all_nodes}' then
        b.gpu_type := null;  b.partition_id := null;  b.node_count := null;
    end if;
    if b.id is null or p_ask ?| '{node_list,all_nodes,gpu_type,partition}' then
        b.node_list := nullif(array(select distinct n from unnest(_words(p_ask -> 'node_list')) as n
                                     where n is not null order by n), '{}');
    end if;
    b.all_nodes := coalesce((p_ask ->> 'all_nodes')::boolean, false);
    if p_ask ? 'gpu_type' then
        b.gpu_type := p_ask ->> 'gpu_type';
    end if;
    if p_ask ? 'node_count' then
        b.node_count := (p_ask ->> 'node_count')::integer;
    end if;
    if p_ask ? 'partition' then
        b.partition_id := (select p.id from partition as p where p.name = p_ask ->> 'partition');
    end if;
    if p_ask ->> 'partition' is not null and b.partition_id is null then
        raise exception using errcode = 'OD001',
            message = format('partition "%s" does not exist', p_ask ->> 'partition'),
            hint = format('Partitions: %s.', (select string_agg(p.name, ', ' order by p.name) from partition as p));
    elsif num_nonnulls(b.node_list, b.gpu_type, b.partition_id, b.node_count) = 0 and not b.all_nodes then
        raise exception using errcode = 'OD010',
            message = 'the booking names no nodes',
            hint = 'Name them (--nodes n[1-4]), or give --type and --count, --partition, or --all.';
    elsif b.node_list is not null and (num_nonnulls(b.gpu_type, b.partition_id, b.node_count) > 0 or b.all_nodes)
          or b.all_nodes and num_nonnulls(b.gpu_type, b.partition_id, b.node_count) > 0 then
        raise exception using errcode = 'OD010',
            message = format('%s cannot be combined with another choice of nodes',
                             case when b.all_nodes then '"all"' else 'a list of nodes' end),
            hint = 'Name the nodes, or give a type, a partition and a count, or all.';
    elsif b.node_count < 1 then
        raise exception using errcode = 'OD010',
            message = format('a booking cannot have %s nodes', b.node_count), hint = 'Book at least one node.';
    end if;
    if b.node_list is not null then
        perform _check_nodes(b.node_list);
    end if;
    if b.gpu_type is not null then
        perform _check_gpu_type(b.gpu_type);
    end if;
    return b;
end;
$$;
