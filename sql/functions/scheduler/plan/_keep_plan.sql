-- odc._keep_plan: store the planned starts and the refusals of a pass; unchanged rows are not written.
-- Arguments  p_pass_id  null if the pass considered no job: then both tables are emptied
--            the rest   as decide returns them
create or replace function odc._keep_plan(
    p_pass_id bigint, p_head_jobs bigint[], p_head_ats timestamptz[], p_head_nodes text[],
    p_head_fittings integer[], p_head_shapes integer[],
    p_refused_shapes integer[], p_refused_reasons text[], p_refused_heads bigint[],
    p_limited_shapes integer[], p_limited_limits_s integer[], p_limited_uids integer[], p_limited_accounts integer[],
    p_limited_qos integer[], p_limited_reasons text[], p_head_limits text[])
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    delete from planned where not job_id = any (coalesce(p_head_jobs, '{}'));
    if p_limited_shapes is not null or exists (select from limited) then
        with now as (
            select distinct on (u.shape, u.limit_s, u.uid, u.account, u.qos) u.*
              from unnest(p_limited_shapes, p_limited_limits_s, p_limited_uids, p_limited_accounts, p_limited_qos,
                          p_limited_reasons) as u (shape, limit_s, uid, account, qos, reason)
             order by u.shape, u.limit_s, u.uid, u.account, u.qos, u.reason
        ), gone as (
            delete from limited as l
             where not exists (select from now as n
                                where (n.shape, n.limit_s, n.uid, n.account, n.qos)
                                    = (l.shape_id, l.time_limit_s, l.uid, l.account_id, l.qos_id))
        )
        insert into limited as l (shape_id, time_limit_s, uid, account_id, qos_id, reason)
        select n.shape, n.limit_s, n.uid, n.account, n.qos, n.reason from now as n
            on conflict (shape_id, time_limit_s, uid, account_id, qos_id) do update
           set reason = excluded.reason where l.reason <> excluded.reason;
    end if;
    delete from refusal where not shape_id = any (coalesce(p_refused_shapes, '{}'));
    insert into planned (job_id, pass_id, planned_start_at, node_names, fitting, detail, reason)
    select h.job_id, p_pass_id, h.at,
           coalesce((select array_agg(n.name order by length(n.name), n.name)
                       from node as n where n.id = any (string_to_array(h.nodes, ',')::integer[])), '{}'),
           h.fitting,
           case when h.reason is null then _describe_need(s, h.fitting) || _describe_apart(s, h.at)
                else (select _limit_short(h.reason, q.name, a.name, s.licences)
                        from pending as p join qos as q on q.id = p.qos_id join account as a on a.id = p.account_id
                       where p.job_id = h.job_id) end, h.reason
      from unnest(p_head_jobs, p_head_ats, p_head_nodes, p_head_fittings, p_head_shapes, p_head_limits)
           as h (job_id, at, nodes, fitting, shape_id, reason)
      join shape as s on s.id = h.shape_id
     -- A job that was cancelled after the plan was made is not stored.
     where exists (select from pending as p where p.job_id = h.job_id)
        on conflict (job_id) do update
       set pass_id = excluded.pass_id, planned_start_at = excluded.planned_start_at,
           node_names = excluded.node_names, fitting = excluded.fitting, detail = excluded.detail,
           reason = excluded.reason
     where (planned.planned_start_at, planned.node_names, planned.fitting, planned.detail, planned.reason)
           is distinct from (excluded.planned_start_at, excluded.node_names, excluded.fitting, excluded.detail, excluded.reason);
    insert into refusal (shape_id, reason, detail, head_job_id)
    select r.shape_id, r.reason,
           case r.reason
               when 'Priority' then format('behind job %s, which starts first', r.head)
               when 'PartitionDown' then 'its partition is down'
               when 'PartitionInactive' then 'its partition is inactive'
               when 'ReqNodeNotAvail' then 'the nodes that it could run on are down, drained, or allocated without a time limit'
               else _describe_need(s, null)
           end,
           r.head
      from unnest(p_refused_shapes, p_refused_reasons, p_refused_heads) as r (shape_id, reason, head)
      join shape as s on s.id = r.shape_id
     -- Rows with the same shape, reason and job ahead have the same text.
     where not exists (select from refusal as o
                        where o.shape_id = r.shape_id and o.reason = r.reason
                          and o.head_job_id is not distinct from r.head)
        on conflict (shape_id) do update
       set reason = excluded.reason, detail = excluded.detail, head_job_id = excluded.head_job_id
     where (refusal.reason, refusal.detail, refusal.head_job_id)
           is distinct from (excluded.reason, excluded.detail, excluded.head_job_id);
end;
$$;
