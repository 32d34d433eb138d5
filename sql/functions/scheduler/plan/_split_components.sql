-- odc._split_components: what each component of the heterogeneous jobs among these shapes asks for.
-- Arguments  as for _plan_shapes
-- Returns    id: below -10000000;  whole_id: its job's shape;  ord: its number, from 1;  the others as in shape
create or replace function odc._split_components(p_shape_ids integer[], p_what_if jsonb)
returns table (
    id integer, whole_id integer, partition_ids integer[], booking_id integer, node_count integer, gpus_per_node integer,
    gpu_type text, cpus_per_node integer, mem_per_node_mib integer, exclusive boolean, constraint_expr text, node_list text[],
    exclude_nodes text[], tmp_per_node_mib integer, ord bigint)
language sql stable set search_path = odc, pg_temp as $$
    with whole as (
        select s.id, s.partition_ids, s.booking_id, s.components
          from shape as s where s.id = any (p_shape_ids) and s.components is not null
        union all
        select -w.ord::integer, array(select p::integer from jsonb_array_elements_text(w.body -> 'partition_ids') as p),
               (w.body ->> 'booking_id')::integer, w.body -> 'components'
          from jsonb_array_elements(coalesce(p_what_if, '[]')) with ordinality as w (body, ord)
         where jsonb_typeof(w.body -> 'components') = 'array'
    )
    select -10000000 - row_number() over (order by w.id, c.ord)::integer, w.id, w.partition_ids, w.booking_id,
           c.node_count, c.gpus_per_node, c.gpu_type, c.cpus_per_node, c.mem_per_node_mib, c.exclusive, c.constraint_expr,
           c.node_list, c.exclude_nodes, c.tmp_per_node_mib, c.ord
      from whole as w
     cross join lateral rows from (jsonb_to_recordset(w.components) as (
           node_count integer, gpus_per_node integer, gpu_type text, cpus_per_node integer, mem_per_node_mib integer,
           exclusive boolean, constraint_expr text, node_list text[], exclude_nodes text[], tmp_per_node_mib integer))
           with ordinality as c (
           node_count, gpus_per_node, gpu_type, cpus_per_node, mem_per_node_mib, exclusive, constraint_expr, node_list,
           exclude_nodes, tmp_per_node_mib, ord)
$$;
