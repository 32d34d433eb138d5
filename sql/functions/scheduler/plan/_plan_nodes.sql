-- odc._plan_nodes: the nodes that may start jobs, as parallel arrays; the position is the planner's number of a node.
-- Arguments  p_without  count the allocations of these jobs as free; null: none
-- Returns    one row: node_ids, groups (dense numbers 1..), masks and amounts free, and per dense group its
--            id, totals and EFA domain (0: gangs there need none); blocks: dense numbers of the nodes' topology
--            blocks, null if no node reports its topology; nodes that report none form one block per zone and
--            placement group
create or replace function odc._plan_nodes(
    p_without bigint[],
    out node_ids integer[], out groups integer[], out masks bigint[], out gpus integer[], out cpus integer[],
    out mems integer[], out jobs integer[], out group_ids integer[], out group_gpus integer[],
    out group_cpus integer[], out group_mems integer[], out group_domains integer[],
    out blocks integer[])
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_column
declare
    v_before  integer;
    v_numbers integer[];        -- dense numbers by id of the group, less v_before
    v_use record;
begin
    select array_agg(g.id order by g.number), array_agg(g.gpus order by g.number),
           array_agg(g.cpus order by g.number), array_agg(g.mem_mib order by g.number),
           array_agg(g.domain order by g.number)
      into group_ids, group_gpus, group_cpus, group_mems, group_domains
      from (select g.id, g.gpus, g.cpus, g.mem_mib, row_number() over (order by g.id) as number,
                   case when t.efa_per_node > 0 and g.efa_domain is not null
                        then dense_rank() over (order by g.efa_domain)::integer else 0 end as domain
              from node_group as g
              join gpu_type as t on t.name = g.gpu_type) as g;
    -- A join would need a sort after it: 10,000 nodes come from their index in order.
    v_before := group_ids[1] - 1;
    v_numbers := array_fill(null::integer, array[coalesce(group_ids[cardinality(group_ids)] - v_before, 0)]);
    for i in 1..coalesce(cardinality(group_ids), 0) loop
        v_numbers[group_ids[i] - v_before] := i;
    end loop;
    select array_agg(f.node_id), array_agg(v_numbers[f.group_id - v_before]), array_agg(f.gpu_mask), array_agg(f.gpus),
           array_agg(f.cpus), array_agg(f.mem_mib), array_agg(f.jobs)
      into node_ids, groups, masks, gpus, cpus, mems, jobs
      from (select f.node_id, f.group_id, f.gpu_mask, f.gpus, f.cpus, f.mem_mib, f.jobs
              from node_free as f where f.up order by f.node_id) as f;
    if p_without is not null then
        -- There are few of them, so each of their nodes is updated by itself.
        for v_use in
            select array_position(node_ids, a.node_id) as node, sum(a.gpu_mask)::bigint as mask, sum(a.gpus)::integer as gpus,
                   sum(a.cpus)::integer as cpus, sum(a.mem_mib)::integer as mem, count(*)::integer as jobs
              from allocation as a where a.job_id = any (p_without) group by a.node_id
        loop
            continue when v_use.node is null;
            masks[v_use.node] := masks[v_use.node] + v_use.mask;  gpus[v_use.node] := gpus[v_use.node] + v_use.gpus;
            cpus[v_use.node] := cpus[v_use.node] + v_use.cpus;  mems[v_use.node] := mems[v_use.node] + v_use.mem;
            jobs[v_use.node] := jobs[v_use.node] - v_use.jobs;
        end loop;
    end if;
    if exists (select from node where topology <> '{}') then
        select array_agg(b.block order by b.ord) into blocks
          from (select u.ord, dense_rank() over (
                           order by n.topology, case when n.topology = '{}' then (n.zone, n.efa_domain)::text end)::integer as block
                  from unnest(node_ids) with ordinality as u (id, ord) join node as n on n.id = u.id) as b;
    end if;
end;
$$;
