-- odc._replay_then: what a pass wrote, read from the past with its own changes: its starts, planned starts, refusals,
-- classes over a limit, and victims of preemption.
-- Arguments  p_own      the pass's transaction, the same as odc._past_own returns
--            p_waiting  the jobs that were pending when it began: an array task is listed as its array
-- Returns    rows that are compared with those of odc._replay_now
create or replace function odc._replay_then(p_own xid8, p_waiting bigint[])
returns table (kind text, name text, what text)
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    return query
    with start as (
        select case when r.job_id = any (p_waiting) then r.job_id else j.array_job_id end as queue_id,
               r.partition_id || ':' || a.places as places
          from odc_past.running as r
          join job as j on j.id = r.job_id
         cross join lateral (
               select string_agg(n.name || '/' || a.gpu_mask, ',' order by n.name) as places
                 from odc_past.allocation as a join node as n on n.id = a.node_id
                where a.job_id = r.job_id) as a
         where r.born_xid = p_own
    )
    select 'start', s.queue_id::text, string_agg(s.places, ' ' order by s.places collate "C")
      from start as s
     group by s.queue_id
     union all
    select 'planned', p.job_id::text,
           concat_ws(' on ', coalesce(_iso(p.planned_start_at), 'unknown'),
                     nullif(array_to_string(p.node_names, ','), '')) || coalesce(' for ' || p.reason, '')
      from odc_past.planned as p
     union all
    select 'refusal', f.shape_id::text, concat_ws(' behind job ', f.reason, f.head_job_id) from odc_past.refusal as f
     union all
    select 'limit', concat_ws(' ', l.shape_id, l.time_limit_s, l.uid, l.account_id, l.qos_id), l.reason
      from odc_past.limited as l
     union all
    select 'preempt', e.job_id::text,
           'for job ' || case when j.id = any (p_waiting) then j.id else j.array_job_id end
      from event as e join job as j on j.id = (e.detail ->> 'by')::bigint
     where e.xid = p_own and e.kind = 'preempting';
end;
$$;
