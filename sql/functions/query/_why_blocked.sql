-- odc._why_blocked: all that keeps one pending job from starting, as the `why` of the API.
-- A job of its own shape's refusal alone is not asked here: odc.pending_job has that at hand.
-- Arguments  p_job_id  a pending job
-- Returns    a JSON array of {cause, text, and what applies of job_id, limit, node, gpus, until}
create or replace function odc._why_blocked(p_job_id bigint)
returns json
language sql stable as $$
    select coalesce(json_agg(json_strip_nulls(json_build_object(
               'cause', w.cause, 'text', w.text, 'job_id', w.other_job_id, 'limit', w.limit_name,
               'node', w.node, 'gpus', w.gpus, 'until', odc._iso(w.until))) order by w.ord, w.until, w.other_job_id), '[]')
      from odc.pending as p
      cross join lateral (
          select 1 as ord, 'hold' as cause,
                 case p.held when 'user' then 'held by its user; `odcctl release ' || p.job_id || '` lets it go'
                      else 'held by an operator' end || coalesce(' (' || p.reason || ')', '') as text,
                 null::bigint as other_job_id, null::text as limit_name, null::text as node,
                 null::integer as gpus, null::timestamptz as until
           where p.held is not null
           union all
          select 2, 'dependency', d.text, d.job_id, null, null, null, d.until
            from odc._why_dependency(p.job_id) as d
           where p.dependency <> 'met'
              or p.open_count = 0 and p.tasks && p.closed_tasks
           union all
          select 3, 'begin', 'may not start before ' || odc._iso(p.begin_at), null, null, null, null, p.begin_at
           where not p.begun
           union all
          select 4, 'limit',
                 format('%s of its tasks run and the array lets %s run at once; %s wait',
                        aj.running, aj.throttle, odc._task_count(p.tasks)),
                 null, 'array_throttle', null, null, null
            from odc.array_job as aj
           where aj.job_id = p.job_id and p.open_count = 0
             and not p.tasks <@ coalesce(p.closed_tasks, '{}')
           union all
          select 5, 'node', pl.detail, null, null, null, null, pl.planned_start_at
            from odc.planned as pl
           where pl.job_id = p.job_id and p.ready
           union all
          select 6, 'running_job', b.text, b.job_id, null, b.node, b.gpus, b.until
            from odc._why_planned(p.job_id) as b
           where p.ready
      ) as w
     where p.job_id = p_job_id
$$;
