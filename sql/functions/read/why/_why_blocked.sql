-- odc._why_blocked: everything that keeps one pending job from starting, as the `why` of the API.
-- It does not answer for a job that only its shape's refusal holds back: odc.pending_job has that answer.
-- Arguments  p_job_id  a pending job
-- Returns    a JSON array of {cause, text, and the applicable ones of job_id, limit, node, gpus, until}
create or replace function odc._why_blocked(p_job_id bigint)
returns json
language sql stable as $$
    select coalesce(json_agg(json_strip_nulls(json_build_object(
               'cause', w.cause, 'text', w.text, 'job_id', w.other_job_id, 'limit', w.limit_name,
               'node', w.node, 'gpus', w.gpus, 'until', odc._iso(w.until))) order by w.ord, w.until, w.other_job_id), '[]')
      from odc.pending as p
      left join odc.attempt as f on f.job_id = p.job_id and f.attempt = p.attempt - 1
      cross join lateral (
          select 1 as ord, case when p.reason = 'ReservationDeleted' then 'booking' else 'hold' end as cause,
                 case when p.reason = 'ReservationDeleted'
                      then (select format('its booking "%s" %s at %s; `odcctl update %s --reservation ''''` '
                                          || 'lets it run without a booking', b.name, case b.state when 'DELETED' then 'was deleted' else 'ended' end,
                                          odc._iso(b.state_at), p.job_id)
                              from odc.job as j
                              join odc.shape as s on s.id = j.shape_id
                              join odc.booking as b on b.id = s.booking_id
                             where j.id = p.job_id)
                      when p.reason = 'JobHoldMaxRequeue'
                      then format('held after %s%s; an operator can release it: `odcctl release %s`',
                                  case when f.state = 'NODE_FAIL'
                                       then format('losing its node %s times', odc._count_requeues(p.job_id, 'NODE_FAIL'))
                                       else format('%s failed starts', odc._count_requeues(p.job_id, 'FAILED')) end,
                                  coalesce(', the last with the error: ' || f.reason, ''), p.job_id)
                      when p.reason = 'SystemFailure'
                      then format('held because odc could not plan it%s; an operator can release it: `odcctl release %s`',
                                  (select ': ' || (e.detail ->> 'detail')
                                     from odc.event as e
                                    where e.job_id = p.job_id and e.kind = 'held' and e.detail ? 'detail'
                                    order by e.id desc limit 1), p.job_id)
                      when p.held = 'user' then format('held by its user; `odcctl release %s` releases it', p.job_id)
                      else 'held by an operator' end as text,
                 null::bigint as other_job_id, null::text as limit_name, null::text as node,
                 null::integer as gpus, null::timestamptz as until
           where p.held is not null
           union all
          select 2, 'dependency', d.text, d.job_id, null, null, null, d.until
            from odc._why_dependency(p.job_id) as d
           where p.dependency <> 'met'
              or p.open_count = 0 and p.tasks && p.closed_tasks
           union all
          select 3, 'begin',
                 case when p.reason = 'JobLaunchFailure'
                      then format('its last start failed%s; odc tries again after %s',
                                  coalesce(' (' || f.reason || ')', ''), odc._iso(p.begin_at))
                      else 'may not start before ' || odc._iso(p.begin_at) end,
                 null, null, null, null, p.begin_at
           where not p.begun
           union all
          select 3, case p.lacks when 'image' then 'image' else 'disk' end, p.lacks_text, p.lacks_job, null, null, null, p.lacks_until
           where p.lacks is not null
           union all
          select 4, 'limit',
                 format('%s of its tasks are running, the array allows %s at once, and %s are waiting',
                        aj.running, aj.throttle, odc._task_count(p.tasks)),
                 null, 'array_throttle', null, null, null
            from odc.array_job as aj
           where aj.job_id = p.job_id and p.open_count = 0
             and not p.tasks <@ coalesce(p.closed_tasks, '{}')
           union all
          select 5, case when pl.reason is null then 'node' else 'limit' end, pl.detail, null, pl.reason, null, null, pl.planned_start_at
            from odc.planned as pl
           where pl.job_id = p.job_id and p.ready
           union all
          select 6, 'node', r.detail, null, null, null, null, null
            from odc.planned as pl
            join odc.refusal as r on r.shape_id = p.shape_id
           where pl.job_id = p.job_id and pl.planned_start_at is null and p.ready
           union all
          select 7, 'running_job', b.text, b.job_id, null, b.node, b.gpus, b.until
            from odc._why_planned(p.job_id) as b
           where p.ready and not exists (select from odc.planned as pl where pl.job_id = p.job_id and pl.reason is not null)
           union all
          select 9, 'preempted', odc._preemption_text(f.preemption), (f.preemption ->> 'by')::bigint, null, null, null, null
           where f.preemption is not null
      ) as w
     where p.job_id = p_job_id
$$;
