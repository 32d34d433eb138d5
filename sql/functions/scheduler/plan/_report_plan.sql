-- odc._report_plan: a plan in the columns of decision.
-- Arguments  p_allocs … p_points  what _decide_once collected, see ../README.md
--            p_reported  five values per job that was or would be protected: job, its number in p_protected (0: it has no start
--                        in sight), nodes that fit now, shape, a limit that it lacks (0: none)
--            p_victims   four values each: job, for which job, cost, end;  p_node_ids  per node
--            p_shape_ids, p_refused, p_behind  per shape;  p_limit_reasons  per limit;  the others  per class
create or replace function odc._report_plan(
    p_now timestamptz, p_looked integer, p_classes integer, p_more boolean, p_digest bytea, p_allocs bigint[],
    p_reported bigint[], p_protected bigint[], p_points bigint[], p_victims bigint[], p_node_ids integer[],
    p_shape_ids integer[], p_refused text[], p_behind bigint[], p_class_shape_ids integer[],
    p_limits_s integer[], p_uids integer[], p_accounts integer[], p_qos_ids integer[], p_reasons text[],
    p_keepers bigint[], p_limit_reasons text[])
returns odc.decision
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_plan decision;
    v_starts integer := 0;  v_jobs bigint[];  v_partitions integer[];  v_counts integer[];  v_limits_s integer[];
    v_nodes integer := 0;  v_plan_nodes integer[];  v_masks bigint[];  v_gpus integer[];  v_cpus integer[];  v_mems integer[];
begin
    v_plan.looked := p_looked;  v_plan.classes := p_classes;  v_plan.more := p_more;  v_plan.read_digest := p_digest;
    for i in 1..cardinality(p_allocs) by 9 loop
        continue when p_allocs[i + 1] < 0;
        v_nodes := v_nodes + 1;
        v_plan_nodes[v_nodes] := p_node_ids[p_allocs[i]];  v_masks[v_nodes] := p_allocs[i + 1];  v_gpus[v_nodes] := p_allocs[i + 2];
        v_cpus[v_nodes] := p_allocs[i + 3];  v_mems[v_nodes] := p_allocs[i + 4];
        if p_allocs[i + 5] = 1 then
            v_starts := v_starts + 1;
            v_jobs[v_starts] := p_allocs[i + 6];  v_partitions[v_starts] := p_allocs[i + 7];  v_limits_s[v_starts] := p_allocs[i + 8];
        end if;
        v_counts[v_starts] := p_allocs[i + 5];
    end loop;
    v_plan.start_jobs := v_jobs;  v_plan.start_partitions := v_partitions;  v_plan.start_nodes := v_counts;
    v_plan.start_limits_s := v_limits_s;  v_plan.alloc_nodes := v_plan_nodes;  v_plan.alloc_masks := v_masks;
    v_plan.alloc_gpus := v_gpus;  v_plan.alloc_cpus := v_cpus;  v_plan.alloc_mems := v_mems;
    -- Pins may have moved, so the nodes of each protected job are final only now.
    select array_agg(p_reported[u.i] order by u.i), array_agg(p_now + p_protected[10 * h.head - 3] * interval '1 microsecond' order by u.i),
           array_agg(n.nodes order by u.i), array_agg(p_reported[u.i + 2] order by u.i), array_agg(p_reported[u.i + 3] order by u.i),
           array_agg(p_limit_reasons[nullif(p_reported[u.i + 4], 0)] order by u.i)
      into v_plan.head_jobs, v_plan.head_ats, v_plan.head_nodes, v_plan.head_fittings, v_plan.head_shapes, v_plan.head_limits
      from generate_series(1, cardinality(p_reported), 5) as u (i)
     -- A heterogeneous job has one of p_protected for each component: all until that of the next job.
     cross join lateral (
           select nullif(p_reported[u.i + 1], 0) as head,
                  coalesce((select min(p_reported[w.i + 1]) from generate_series(u.i + 5, cardinality(p_reported), 5) as w (i)
                             where p_reported[w.i + 1] > 0) - 1, cardinality(p_protected) / 10) as last) as h
     cross join lateral (
           select string_agg(p_node_ids[p_points[w.point + 1]]::text, ',' order by w.point) as nodes
             from generate_series(p_protected[10 * h.head - 6], p_protected[10 * h.last - 5] - 1, 9) as w (point)
            where p_points[w.point + 8] = 1) as n;
    select array_agg(p_shape_ids[t.o] order by t.o), array_agg(t.reason order by t.o), array_agg(p_behind[t.o] order by t.o)
      into v_plan.refused_shapes, v_plan.refused_reasons, v_plan.refused_heads
      from unnest(p_refused) with ordinality as t (reason, o)
     where t.reason is not null and p_shape_ids[t.o] > 0;
    if array_remove(p_reasons, null) <> '{}' then
    select array_agg(u.shape order by u.o), array_agg(u.limit_s order by u.o), array_agg(u.uid order by u.o),
           array_agg(u.account order by u.o), array_agg(u.qos order by u.o), array_agg(u.reason order by u.o), array_agg(u.keeper order by u.o)
      into v_plan.limited_shapes, v_plan.limited_limits_s, v_plan.limited_uids, v_plan.limited_accounts, v_plan.limited_qos,
           v_plan.limited_reasons, v_plan.limited_heads
      from unnest(p_class_shape_ids, p_limits_s, p_uids, p_accounts, p_qos_ids, p_reasons, p_keepers) with ordinality
           as u (shape, limit_s, uid, account, qos, reason, keeper, o)
     where u.reason is not null and u.shape > -1000000;
    end if;
    if p_victims <> '{}' then
    select array_agg(p_victims[u.i]), array_agg(p_victims[u.i + 1]), array_agg(p_victims[u.i + 2])
      into v_plan.victim_jobs, v_plan.victim_for, v_plan.victim_costs
      from generate_series(1, cardinality(p_victims), 4) as u (i);
    end if;
    return v_plan;
end;
$$;
