-- odc._forecast_shapes: the nodes of a forecast in groups, and the shapes of its jobs. The free part of a node is one number,
-- its level: GPUs, or CPUs on a node without GPUs (in 62nds if it has more CPUs).
-- Nodes that jobs include or exclude by name form groups of their own. Nodes booked now are left out.
-- Arguments  p_shape_ids  the shapes of the classes
-- Returns    per node: node_ids, groups;  per group: fulls: the level of a free node, group_cpus, group_mems, domains: its EFA
--            domain, with the number after the last for none
--            class_shapes: per class the position of its shape;  per shape: counts: nodes, alt_from, alt_to: its alternatives,
--            deads: -1: it cannot run on these nodes, runs inside a booking, or is of a heterogeneous job; else 2147483647
--            per alternative: group_from, group_to: its positions in alt_groups and needs, the level that a job takes there
create or replace function odc._forecast_shapes(
    p_now timestamptz, p_shape_ids integer[],
    out node_ids integer[], out groups integer[], out fulls integer[], out group_cpus integer[], out group_mems integer[],
    out domains integer[], out class_shapes integer[], out counts integer[], out alt_from integer[], out alt_to integer[],
    out deads integer[], out group_from integer[], out group_to integer[], out alt_groups integer[], out needs integer[])
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_column
declare
    v_node record;  v_shape record;  v_named record;
    v_marks text[];             -- per group, if jobs name nodes: the shapes that name its nodes (see _split_named)
    v_group integer;  v_full integer;
begin
    select * into v_node from _plan_nodes(null);
    if exists (select from booking) then
        select array_agg(u.id order by u.o), array_agg(u.g order by u.o)
          into v_node.node_ids, v_node.groups
          from unnest(v_node.node_ids, v_node.groups) with ordinality as u (id, g, o)
         where not exists (select from _plan_bookings(p_now) as w
                            where w.node_id = u.id and w.starts_at <= p_now and w.ends_at > p_now);
    end if;
    if v_node.node_ids is null then
        return;
    end if;
    if exists (select from shape as d where d.id = any (p_shape_ids) and (d.node_list is not null or d.exclude_nodes is not null)) then
        select w.groups, w.marks, array_agg(v_node.group_ids[u.g] order by u.o) as ids,
               array_agg(v_node.group_gpus[u.g] order by u.o) as gpus, array_agg(v_node.group_cpus[u.g] order by u.o) as cpus,
               array_agg(v_node.group_mems[u.g] order by u.o) as mems, array_agg(v_node.group_domains[u.g] order by u.o) as domains
          into v_named
          from _split_named(v_node.node_ids, v_node.groups, p_shape_ids) as w
         cross join lateral unnest(w.of_groups) with ordinality as u (g, o)
         group by w.groups, w.marks;
        v_marks := v_named.marks;
        v_node.groups := v_named.groups;  v_node.group_ids := v_named.ids;  v_node.group_gpus := v_named.gpus;
        v_node.group_cpus := v_named.cpus;  v_node.group_mems := v_named.mems;  v_node.group_domains := v_named.domains;
    end if;
    select * into v_shape from _plan_shapes(v_node.group_ids, p_shape_ids, null, null);
    if v_marks is not null then
        select k.froms, k.tos, k.groups into v_shape.alt_group_from, v_shape.alt_group_to, v_shape.alt_groups
          from _keep_named(v_marks, v_shape.ids, v_shape.alt_from, v_shape.alt_to, v_shape.alt_group_from, v_shape.alt_group_to,
                           v_shape.alt_groups) as k;
    end if;
    select array_agg(w.number::integer order by u.o) into class_shapes
      from unnest(p_shape_ids) with ordinality as u (id, o)
      join unnest(v_shape.ids) with ordinality as w (id, number) on w.id = u.id;
    node_ids := v_node.node_ids;  groups := v_node.groups;  group_cpus := v_node.group_cpus;  group_mems := v_node.group_mems;
    counts := v_shape.node_counts;  alt_from := v_shape.alt_from;  alt_to := v_shape.alt_to;
    group_from := v_shape.alt_group_from;  group_to := v_shape.alt_group_to;  alt_groups := v_shape.alt_groups;
    select array_agg(case when w.gpus > 0 then w.gpus else least(w.cpus, 62) end order by w.o) into fulls
      from unnest(v_node.group_gpus, v_node.group_cpus) with ordinality as w (gpus, cpus, o);
    select array_agg(case when w.domain = 0 then w.last + 1 else w.domain end order by w.o) into domains
      from (select u.domain, u.o, max(u.domain) over () as last
              from unnest(v_node.group_domains) with ordinality as u (domain, o)) as w;

    deads := array_fill(2147483647, array[cardinality(counts)]);
    needs := array_fill(0, array[greatest(1, coalesce(cardinality(alt_groups), 0))]);
    for shape in 1..cardinality(counts) loop
        if alt_to[shape] < alt_from[shape] or group_to[alt_to[shape]] < group_from[alt_from[shape]]
           or v_shape.booking_ids[shape] is not null or v_shape.component_from[shape] <= v_shape.component_to[shape] then
            deads[shape] := -1;
            continue;
        end if;
        for i in group_from[alt_from[shape]]..group_to[alt_to[shape]] loop
            v_group := alt_groups[i];  v_full := fulls[v_group];
            needs[i] := case when v_shape.exclusives[shape] then v_full
                else least(v_full, greatest(
                     1, v_shape.gpus[shape], (2 * v_full * v_shape.cpus[shape] + group_cpus[v_group]) / (2 * group_cpus[v_group]),
                     ((2::bigint * v_full * v_shape.mems[shape] + group_mems[v_group]) / (2 * group_mems[v_group]::bigint))::integer)) end;
        end loop;
    end loop;
end;
$$;
