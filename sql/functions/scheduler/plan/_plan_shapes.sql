-- odc._plan_shapes: the requests of a pass's jobs, and the groups of nodes on which each could ever run.
-- A shape has one alternative per partition it names, in that order; a gang never mixes partitions. A gang with GPUs of
-- any type has one alternative per type, too, least GPU memory first: it never mixes types.
-- Nodes for profiling (feature nsight) are the last alternative, offered only to jobs on one node: other jobs run there
-- only if there is no room elsewhere.
-- The groups of an alternative are listed with those without GPUs first, so that a job without GPUs
-- fills them before it takes CPUs from nodes with GPUs.
-- Arguments  p_group_ids  ids of the dense groups 1.. of _plan_nodes
--            p_shape_ids  the shapes of the classes
--            p_what_if    hypothetical jobs: their shapes join, with negative ids
--            p_claims     shapes of the jobs that claim nodes, in order; each is added as -1000000 - its position
-- The components of a heterogeneous job are shapes of their own, with ids below -10000000. Its own shape may use each group
-- that a component may use, and asks for one CPU on each node: the least that its jobs take.
-- Returns    one row of arrays: per shape (position = the planner's number of a shape) its id, amounts and
--            alternatives alt_from..alt_to; per alternative its partition and group list
--            alt_group_from..alt_group_mid (no GPUs), alt_group_mid+1..alt_group_to; the flat list itself;
--            and why a shape has no alternative at all
--            component_*: as _order_components returns it
create or replace function odc._plan_shapes(
    p_group_ids integer[], p_shape_ids integer[], p_what_if jsonb, p_claims integer[],
    out ids integer[], out node_counts integer[], out node_maxes integer[], out switches integer[],
    out switches_waits_s integer[], out booking_ids integer[], out gpus integer[], out cpus integer[], out mems integer[],
    out exclusives boolean[], out listed boolean[], out alt_from integer[], out alt_to integer[], out idle_reasons text[],
    out alt_partitions integer[], out alt_spreads boolean[], out alt_group_from integer[], out alt_group_mid integer[],
    out alt_group_to integer[], out alt_groups integer[], out component_from integer[], out component_to integer[],
    out component_shapes integer[], out component_ords integer[], out component_lists jsonb[])
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_column
begin
    with whole as materialized (
        select s.id, s.partition_ids, s.node_count, s.node_count_max, s.gpus_per_node, s.gpu_type, s.cpus_per_node,
               s.mem_per_node_mib, s.exclusive, s.constraint_expr, s.node_list, s.exclude_nodes, s.switches,
               s.switches_wait_s, s.booking_id, s.tmp_per_node_mib, s.components
          from (select distinct id from unnest(p_shape_ids) as u (id) where id > 0) as f
          join shape as s on s.id = f.id
        union all
        select -w.ord::integer, w.partition_ids, w.node_count, w.node_count_max, w.gpus_per_node, w.gpu_type,
               w.cpus_per_node, w.mem_per_node_mib, coalesce(w.exclusive, false), w.constraint_expr, w.node_list,
               w.exclude_nodes, w.switches, w.switches_wait_s, w.booking_id, coalesce(w.tmp_per_node_mib, 0),
               nullif(w.components, 'null')
          from rows from (jsonb_to_recordset(coalesce(p_what_if, '[]')) as (
               partition_ids integer[], node_count integer, node_count_max integer, gpus_per_node integer, gpu_type text,
               cpus_per_node integer, mem_per_node_mib integer, exclusive boolean, constraint_expr text,
               node_list text[], exclude_nodes text[], switches integer, switches_wait_s integer, booking_id integer,
               tmp_per_node_mib integer, components jsonb))
               with ordinality as w (
               partition_ids, node_count, node_count_max, gpus_per_node, gpu_type, cpus_per_node, mem_per_node_mib,
               exclusive, constraint_expr, node_list, exclude_nodes, switches, switches_wait_s, booking_id, tmp_per_node_mib,
               components, ord)
         union all
        select -1000000 - c.ord::integer, s.partition_ids, s.node_count, null, s.gpus_per_node, s.gpu_type,
               s.cpus_per_node, s.mem_per_node_mib, s.exclusive, s.constraint_expr, '{-}', null, null, null, s.booking_id,
               s.tmp_per_node_mib, null
          from unnest(p_claims) with ordinality as c (shape_id, ord)
          join shape as s on s.id = c.shape_id
    ), component as materialized (
        select * from _split_components(p_shape_ids, p_what_if)
    ), asked as (
        select * from whole as w where w.components is null
        union all
        select w.id, w.partition_ids, w.node_count, null, 0, null, 1, 0, false, null, null, null, null, null, w.booking_id, 0,
               w.components
          from whole as w where w.components is not null
        union all
        select c.id, c.partition_ids, c.node_count, null, c.gpus_per_node, c.gpu_type, c.cpus_per_node, c.mem_per_node_mib,
               c.exclusive, c.constraint_expr, c.node_list, c.exclude_nodes, null, null, c.booking_id, c.tmp_per_node_mib, null
          from component as c
    ), s as (
        select a.*, row_number() over (order by id)::integer as number,
               coalesce(a.node_count_max, a.node_count) > 1 and a.gpus_per_node > 0 and a.gpu_type is null as sorted,
               coalesce(a.node_count_max, a.node_count) = 1 as single
          from asked as a
    ), kind as materialized (
        select g.*, u.number, dense_rank() over (order by t.gpu_mem_mib, t.name) as type_ord
          from unnest(p_group_ids) with ordinality as u (id, number)
          join node_group as g on g.id = u.id
          join gpu_type as t on t.name = g.gpu_type
    ), alternative as (
        select s.number as shape, w.ord, p.id as partition_id, p.state, p.placement = 'spread' as spread, fit.groups,
               fit.plain, fit.type_ord, fit.avoided
          from s
         cross join unnest(s.partition_ids) with ordinality as w (partition_id, ord)
          join partition as p on p.id = w.partition_id
          left join lateral (
               select array_agg(x.number order by x.gpus > 0, x.number) as groups,
                      count(*) filter (where x.gpus = 0)::integer as plain,
                      case when s.sorted then x.type_ord end as type_ord, s.single and 'nsight' = any (x.features) as avoided
                 from kind as x
                where p.id = any (x.partition_ids)
                  and (s.gpu_type is null or x.gpu_type = s.gpu_type)
                  and x.gpus >= s.gpus_per_node and x.cpus >= s.cpus_per_node and x.mem_mib >= s.mem_per_node_mib
                  and x.tmp_mib >= s.tmp_per_node_mib
                  and (s.constraint_expr is null or _matches_features(s.constraint_expr, x.features))
                  and case when s.components is null then true else exists (
                          select from component as c
                           where c.whole_id = s.id
                             and (c.gpu_type is null or x.gpu_type = c.gpu_type)
                             and x.gpus >= c.gpus_per_node and x.cpus >= c.cpus_per_node and x.mem_mib >= c.mem_per_node_mib
                             and x.tmp_mib >= c.tmp_per_node_mib
                             and (c.constraint_expr is null or _matches_features(c.constraint_expr, x.features))) end
                group by case when s.sorted then x.type_ord end, s.single and 'nsight' = any (x.features)) as fit on true
    ), usable as (
        select *, row_number() over (order by shape, ord, avoided, type_ord)::integer as number,
               sum(cardinality(groups)) over (order by shape, ord, avoided, type_ord)::integer as group_to
          from alternative
         where state in ('UP', 'DRAIN') and groups is not null
    ), per_shape as (
        select s.number, s.id, s.node_count, coalesce(s.node_count_max, s.node_count) as node_max, s.switches,
               s.switches_wait_s, s.booking_id, s.gpus_per_node, s.cpus_per_node, s.mem_per_node_mib, s.exclusive,
               coalesce(cardinality(s.node_list), 0) + coalesce(cardinality(s.exclude_nodes), 0) > 0 as listed,
               coalesce(min(u.number), 0) as alt_from, coalesce(max(u.number), -1) as alt_to,
               case when count(u.number) > 0 then null
                    else (select case max(a.state) when 'DOWN' then 'PartitionDown'
                                                   when 'INACTIVE' then 'PartitionInactive'
                                                   else 'ReqNodeNotAvail' end
                            from alternative as a where a.shape = s.number) end as idle_reason
          from s left join usable as u on u.shape = s.number
         group by s.number, s.id, s.node_count, s.node_count_max, s.switches, s.switches_wait_s, s.booking_id,
                  s.gpus_per_node, s.cpus_per_node, s.mem_per_node_mib, s.exclusive, s.node_list, s.exclude_nodes
    )
    select array_agg(id order by number), array_agg(node_count order by number),
           array_agg(node_max order by number), array_agg(switches order by number),
           array_agg(switches_wait_s order by number), array_agg(booking_id order by number),
           array_agg(gpus_per_node order by number), array_agg(cpus_per_node order by number),
           array_agg(mem_per_node_mib order by number), array_agg(exclusive order by number),
           array_agg(listed order by number), array_agg(alt_from order by number),
           array_agg(alt_to order by number), array_agg(idle_reason order by number),
           (select array_agg(partition_id order by number) from usable),
           (select array_agg(spread order by number) from usable),
           (select array_agg(group_to - cardinality(groups) + 1 order by number) from usable),
           (select array_agg(group_to - cardinality(groups) + plain order by number) from usable),
           (select array_agg(group_to order by number) from usable),
           (select array_agg(w.place order by u.number, w.ord) from usable as u, unnest(u.groups) with ordinality as w (place, ord))
      into ids, node_counts, node_maxes, switches, switches_waits_s, booking_ids, gpus, cpus, mems, exclusives, listed, alt_from,
           alt_to, idle_reasons, alt_partitions, alt_spreads, alt_group_from, alt_group_mid, alt_group_to, alt_groups
      from per_shape;
    select * into component_from, component_to, component_shapes, component_ords, component_lists
      from _order_components(p_shape_ids, p_what_if, ids, alt_from, alt_to, alt_group_from, alt_group_to);
    for v_whole in 1..case when component_shapes is null then 0 else cardinality(ids) end loop
        for v_at in component_from[v_whole]..component_to[v_whole] loop
            -- It cannot start while one of its components cannot.
            idle_reasons[v_whole] := coalesce(idle_reasons[component_shapes[v_at]], idle_reasons[v_whole]);
        end loop;
    end loop;
end;
$$;
