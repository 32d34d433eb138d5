-- odc._plan_moves: how planned starts moved between two passes, step by step, and what moved them. For a later start, the
-- cause comes from the event `slipped`. For an earlier or first planned start, it is the job's own change, otherwise the
-- last change between the two passes that released something, preferably on the nodes it is planned for.
-- Arguments  p_from, p_to  passes;  p_ats  the starts that p_to plans for jobs p_jobs
-- Returns    pass_id: null if no pass moved it (a job cancelled). cause: the kind of an event, started, or as in
--            `slipped`: overtaken, preemption, overrun, order (nothing changed but the time)
create or replace function odc._plan_moves(
    p_from odc.pass, p_to odc.pass, p_jobs bigint[], p_ats timestamptz[])
returns table (job_id bigint, ord bigint, pass_id bigint, at timestamptz, was timestamptz, becomes timestamptz, cause text,
               event_id bigint, by_job_id bigint, text text)
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_column
begin
    return query
    with pass as materialized (
        select s.id, s.xid, s.last_event_id, lag(s.last_event_id) over (order by s.id) as before
          from odc.pass as s where s.id between p_from.id and p_to.id
    ), step as materialized (
        select q.job_id, q.past_id, q.past_at, q.past_xid, case when not q.past_absent then q.planned_start_at end as was,
               lead(case when not q.past_absent then q.planned_start_at end, 1, n.at)
                   over (partition by q.job_id order by q.past_id) as becomes
          from planned_past as q
          left join unnest(p_jobs, p_ats) as n (job_id, at) on n.job_id = q.job_id
         where q.past_at between p_from.at - interval '1 hour' and p_to.at + interval '1 hour'
           and q.past_xid <> p_from.xid and not pg_visible_in_snapshot(q.past_xid, p_from.snapshot)
           and (q.past_xid = p_to.xid or pg_visible_in_snapshot(q.past_xid, p_to.snapshot))
    )
    select m.job_id, m.past_id, s.id, m.past_at, m.was, m.becomes,
           case when c.started then 'started' else coalesce(c.cause, 'order') end, c.id, c.by_job_id,
           case when c.started then 'it started'
                when c.cause = 'overtaken' then format('job %s went ahead of it', c.by_job_id)
                when c.cause = 'preemption' then format('job %s preempts others', c.by_job_id)
                when c.cause = 'overrun' then format('job %s runs longer than its limit', c.by_job_id)
                when (c.event).id is not null then _change_text(c.event, m.job_id)
                else 'nothing changed but the time' end
      from step as m
      left join pass as s on s.xid = m.past_xid
      left join lateral (
           -- The event of its own transaction has the cause, or refers to the event that has it.
           (select e.kind = 'started' as started, case when e.kind = 'slipped' then e.detail ->> 'cause' else e.kind end as cause,
                   case when e.kind = 'slipped' then (e.detail ->> 'event_id')::bigint else e.id end as id,
                   case when e.kind = 'slipped' then (e.detail ->> 'job_id')::bigint else e.job_id end as by_job_id,
                   coalesce(o, case when e.kind <> 'slipped' then e end) as event
              from event as e
              left join event as o on e.kind = 'slipped' and o.id = (e.detail ->> 'event_id')::bigint
             where e.xid = m.past_xid
               and (e.job_id = m.job_id or exists (select from job as t where t.id = e.job_id and t.array_job_id = m.job_id))
               and (e.kind = 'slipped' or e.kind = 'started' and m.becomes is null or s.id is null)
             order by e.kind = 'slipped' desc, e.id desc
             limit 1)
             union all
           (select false, e.kind, e.id, e.job_id, e
              from event as e
              left join attempt as t on t.job_id = e.job_id and e.detail ? 'attempt' and t.attempt = (e.detail ->> 'attempt')::integer
              left join planned_past as q on q.past_id = m.past_id
             where e.id > s.before and e.id <= s.last_event_id and e.xid <> m.past_xid
               and e.kind not in ('slipped', 'started', 'preempting', 'preempts', 'leader', 'restored', 'checkpointed')
               and (e.kind <> 'submitted' or e.job_id = m.job_id)
             order by e.job_id is not distinct from m.job_id desc, coalesce(t.node_names && q.node_names, false) desc,
                      coalesce((select n.name from node as n where n.id = e.node_id) = any (q.node_names), false) desc, e.kind in ('ended', 'requeued') desc, e.id desc
             limit 1)
             limit 1) as c on true
     where m.was is distinct from m.becomes;
end;
$$;
