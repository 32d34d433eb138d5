-- odc._shape_id: the id of a shape; equal shapes have one row.
-- Locks      shape, the new row: others that need the same shape wait until this transaction ends
-- Raises     OD010 BadRequest: another shape has the same digests
create or replace function odc._shape_id(p_shape shape)
returns integer
language plpgsql volatile set search_path = odc, pg_temp set enable_seqscan = off as $$
declare
    v_id   integer;
    v_hash bigint := hash_record_extended(row(
        p_shape.node_count, p_shape.gpus_per_node, p_shape.gpu_type, p_shape.cpus_per_node, p_shape.mem_per_node_mib,
        p_shape.exclusive, p_shape.partition_ids, p_shape.constraint_expr, p_shape.node_list, p_shape.exclude_nodes,
        p_shape.node_count_max, p_shape.switches, p_shape.switches_wait_s, p_shape.booking_id, p_shape.licences), 0);
begin
    -- The planner can only find the rows by shape_hash, even without statistics of the table: no index supports `is not
    -- distinct from`. On the third try, the conflicting row is not one that was written meanwhile.
    for v_try in 1..3 loop
        select s.id into v_id
          from (select *
                  from shape as h
                 where hash_record_extended(row(
                           h.node_count, h.gpus_per_node, h.gpu_type, h.cpus_per_node, h.mem_per_node_mib, h.exclusive,
                           h.partition_ids, h.constraint_expr, h.node_list, h.exclude_nodes, h.node_count_max, h.switches,
                           h.switches_wait_s, h.booking_id, h.licences), 0) = v_hash
                offset 0) as s
         where s.node_count = p_shape.node_count and s.gpus_per_node = p_shape.gpus_per_node
           and s.gpu_type is not distinct from p_shape.gpu_type
           and s.cpus_per_node = p_shape.cpus_per_node and s.mem_per_node_mib = p_shape.mem_per_node_mib
           and s.exclusive = p_shape.exclusive and s.partition_ids = p_shape.partition_ids
           and s.constraint_expr is not distinct from p_shape.constraint_expr
           and s.node_list is not distinct from p_shape.node_list
           and s.exclude_nodes is not distinct from p_shape.exclude_nodes
           and s.node_count_max is not distinct from p_shape.node_count_max
           and s.switches is not distinct from p_shape.switches
           and s.switches_wait_s is not distinct from p_shape.switches_wait_s
           and s.booking_id is not distinct from p_shape.booking_id
           and s.licences is not distinct from p_shape.licences
           and s.tmp_per_node_mib = p_shape.tmp_per_node_mib
           and s.components is not distinct from p_shape.components;
        if found then
            return v_id;
        end if;
        insert into shape (partition_ids, node_count, gpus_per_node, gpu_type, cpus_per_node, mem_per_node_mib,
                           exclusive, constraint_expr, node_list, exclude_nodes,
                           node_count_max, switches, switches_wait_s, booking_id, licences,
                           tmp_per_node_mib, components)
        values (p_shape.partition_ids, p_shape.node_count, p_shape.gpus_per_node, p_shape.gpu_type,
                p_shape.cpus_per_node, p_shape.mem_per_node_mib, p_shape.exclusive, p_shape.constraint_expr,
                p_shape.node_list, p_shape.exclude_nodes, p_shape.node_count_max, p_shape.switches,
                p_shape.switches_wait_s, p_shape.booking_id, p_shape.licences, p_shape.tmp_per_node_mib, p_shape.components)
        on conflict do nothing
        returning id into v_id;
        if found then
            return v_id;
        end if;
    end loop;
    raise exception using errcode = 'OD010',
        message = 'odc cannot store this combination of nodes, constraint and licences',
        hint = 'Write the constraint, the nodes or the licences in another order.';
end;
$$;
