-- odc._plan_digest: a digest of everything decide returns, in the binary form that PostgreSQL sends over the wire.
-- Arguments  p_plan  a row of decide
create or replace function odc._plan_digest(p_plan record)
returns bytea
language plpgsql stable set search_path = odc, pg_temp as $$
begin
    return sha256(record_send(row(
        p_plan.looked, p_plan.classes, p_plan.more, p_plan.start_jobs, p_plan.start_partitions, p_plan.start_nodes,
        p_plan.start_limits_s, p_plan.alloc_nodes, p_plan.alloc_masks, p_plan.alloc_gpus, p_plan.alloc_cpus,
        p_plan.alloc_mems, p_plan.head_jobs, p_plan.head_ats, p_plan.head_nodes, p_plan.head_fittings, p_plan.head_shapes,
        p_plan.refused_shapes, p_plan.refused_reasons, p_plan.refused_heads, p_plan.limited_shapes,
        p_plan.limited_limits_s, p_plan.limited_uids, p_plan.limited_accounts, p_plan.limited_qos, p_plan.limited_reasons,
        p_plan.victim_jobs, p_plan.victim_for, p_plan.victim_costs, p_plan.head_limits, p_plan.limited_heads)));
end;
$$;
