-- odc._why_dependency: the dependencies that one job still waits for, or can never meet. Lists show it for each of their
-- jobs, so it names ten: first those that can never be met.
-- Returns    a sentence each, with the target job and its latest end, if known; and one about the others
create or replace function odc._why_dependency(p_job_id bigint)
returns table (text text, job_id bigint, until timestamptz)
language sql stable as $$
    with unmet as materialized (
        select d.*, row_number() over (order by d.state = 'never' desc, d.ord) as place
          from odc.dependency as d
         where d.job_id = p_job_id and d.state <> 'met'
    )
    select case when d.state <> 'never' then 'waits for '
                when p.dependency = 'never' then 'can never start: it needed '
                -- Another one of its dependencies, or of its tasks, can still be met.
                else 'one of its dependencies can no longer be met: it needed ' end
           || case when d.kind = 'singleton' then 'its user''s earlier jobs of the same name to end'
                   else case when d.target_task is null then format('job %s', d.target_id)
                             else format('task %s_%s', d.target_id, d.target_task) end
                        || case d.kind
                            when 'after' then ' to start' || case when d.delay_s > 0 then format(' and %s min more', d.delay_s / 60) else '' end
                            when 'afterany' then ' to end'
                            when 'afterok' then ' to end successfully'
                            when 'afternotok' then ' to end unsuccessfully'
                            when 'aftercorr' then '''s tasks with the same index to end successfully' end
              end
           || format(' (%s)', d.kind)
           || case when s.state is not null then format('; its %s %s', s.tasks, s.state)
                   when a.job_id is not null then format('; %s of its tasks %s running, %s wait', a.running,
                                                         case when a.running = 1 then 'is' else 'are' end, a.waiting)
                   when t.state is not null then format('; that job is %s', t.state) else '' end,
           d.target_id,
           coalesce(d.due_at, t.ends_at)
      from unmet as d
      join odc.pending as p on p.job_id = p_job_id
      left join lateral (
          select coalesce(r.state, j.state, case when w.job_id is not null then 'PENDING'::odc.job_state end) as state,
                 r.ends_at
            from odc.job as j
            left join odc.running as r on r.job_id = j.id
            left join odc.pending as w on w.job_id = j.id
           where case when d.target_task is null then j.id = d.target_id
                      else j.array_job_id = d.target_id and j.array_task_id = d.target_task end
           limit 1
      ) as t on true
      -- While tasks of an array wait, its id is that of the waiting ones.
      left join lateral (
          select aj.job_id, aj.running, odc._task_count(w.tasks) as waiting
            from odc.array_job as aj
            join odc.pending as w on w.job_id = aj.job_id
           where aj.job_id = d.target_id and d.target_task is null
      ) as a on true
      -- For an array that made success impossible, the first task that failed: its other tasks may still wait or run.
      left join lateral (
          select e.state, coalesce('task ' || e.array_task_id || ' is', 'tasks ' || odc._cut_tasks(e.array_tasks, 60) || ' are') as tasks
            from odc.job as e
           where d.state = 'never' and d.kind = 'afterok' and d.target_task is null
             and e.array_job_id = d.target_id and e.state <> 'COMPLETED'
           order by e.ended_at, e.id
           limit 1
      ) as s on true
     where d.place <= 10
     union all
    select format('has %s more dependencies that are not met', count(*) - 10), null, null from unmet having count(*) > 10
$$;
