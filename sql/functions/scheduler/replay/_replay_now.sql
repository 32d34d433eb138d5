-- odc._replay_now: what a plan would write, in the format of odc._replay_then.
-- Arguments  p_plan  a row of decide
create or replace function odc._replay_now(p_plan record)
returns table (kind text, name text, what text)
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    return query
    select 'start', s.job_id::text, s.starts
      from _replay_starts(p_plan.start_jobs, p_plan.start_partitions, p_plan.start_nodes, p_plan.alloc_nodes,
                          p_plan.alloc_masks) as s
     union all
    select 'planned', h.job_id::text,
           concat_ws(' on ', coalesce(_iso(h.at), 'unknown'),
                     (select string_agg(n.name, ',' order by length(n.name), n.name)
                        from node as n where n.id = any (string_to_array(h.nodes, ',')::integer[]))) || coalesce(' for ' || h.reason, '')
      from unnest(p_plan.head_jobs, p_plan.head_ats, p_plan.head_nodes, p_plan.head_limits) as h (job_id, at, nodes, reason)
     union all
    select 'refusal', r.shape_id::text, concat_ws(' behind job ', r.reason, r.head)
      from unnest(p_plan.refused_shapes, p_plan.refused_reasons, p_plan.refused_heads) as r (shape_id, reason, head)
     union all
    (select distinct on (u.shape, u.limit_s, u.uid, u.account, u.qos)
            'limit', concat_ws(' ', u.shape, u.limit_s, u.uid, u.account, u.qos), u.reason
       from unnest(p_plan.limited_shapes, p_plan.limited_limits_s, p_plan.limited_uids, p_plan.limited_accounts,
                   p_plan.limited_qos, p_plan.limited_reasons) as u (shape, limit_s, uid, account, qos, reason)
      order by u.shape, u.limit_s, u.uid, u.account, u.qos, u.reason)
     union all
    select 'preempt', v.job_id::text, 'for job ' || v.by
      from unnest(p_plan.victim_jobs, p_plan.victim_for) as v (job_id, by);
end;
$$;
