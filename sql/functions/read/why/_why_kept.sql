-- odc._why_kept: the protected job for which a plan keeps what is left of a limit or licence that a pending job needs.
-- Arguments  p_limited_*, p_head_*  of the plan, as decide returns them
-- Returns    limit: Slurm's name of it;  until: when the protected job ends at the latest. No row: there is none
create or replace function odc._why_kept(
    p_job_id bigint, p_limited_shapes integer[], p_limited_limits_s integer[], p_limited_uids integer[], p_limited_accounts integer[],
    p_limited_qos integer[], p_limited_reasons text[], p_limited_heads bigint[], p_head_jobs bigint[], p_head_ats timestamptz[])
returns table (text text, "limit" text, job_id bigint, until timestamptz)
language sql stable as $$
    select format('%s is kept for job %s, which is ahead of it, starts by %s%s',
                  case l.reason when 'Licenses' then 'the licence that it needs' else 'what is left of the limit ' || l.reason end,
                  l.head, odc._iso(w.at), coalesce(' and ends by ' || odc._iso(w.ends_at), '')),
           l.reason, l.head, w.ends_at
      from odc.pending as p
      join unnest(p_limited_shapes, p_limited_limits_s, p_limited_uids, p_limited_accounts, p_limited_qos, p_limited_reasons,
                  p_limited_heads) as l (shape_id, limit_s, uid, account_id, qos_id, reason, head)
        on (l.shape_id, l.limit_s, l.uid, l.account_id, l.qos_id) = (p.shape_id, p.time_limit_s, p.uid, p.account_id, p.qos_id)
      join odc.pending as h on h.job_id = l.head
     cross join lateral (select p_head_ats[array_position(p_head_jobs, l.head)] as at) as s
     cross join lateral (
           select s.at, case when h.time_limit_s < 2147483647 then s.at + make_interval(secs => h.time_limit_s) end as ends_at) as w
     where p.job_id = p_job_id
     limit 1
$$;
