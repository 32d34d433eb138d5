-- odc._judge_dependencies: check the dependencies of these pending jobs; jobs that need not wait any longer become ready.
-- Level triggered: it reads the targets' current state, not what just happened to them, so it may be called at any time.
-- Rows are found by index, however small the tables were when the plans were made: see _singleton_verdicts.
-- Arguments  p_job_ids     the jobs that wait; null: none
--            p_target_ids  the targets that may have changed; null: any
-- Locks      the caller holds the turn; dependency and pending rows of these jobs
create or replace function odc._judge_dependencies(
    p_job_ids bigint[], p_now timestamptz, p_target_ids bigint[] default null)
returns void
language plpgsql volatile set search_path = odc, pg_temp set enable_seqscan = off as $$
declare
    v_arrays bigint[];
    v_never  bigint[];
begin
    if p_job_ids is null then
        return;
    end if;
    with verdict as materialized (
        select * from _dependency_verdicts(p_job_ids, p_target_ids, p_now)
    )
    update dependency as d
       set state = v.verdict, due_at = v.due_at
      from verdict as v
     where d.job_id = v.job_id and d.ord = v.ord and (d.state, d.due_at) is distinct from (v.verdict, v.due_at);
    if exists (select from dependency where kind = 'singleton' and state = 'waiting') then
        update dependency as d set state = 'met'
          from _singleton_verdicts(p_job_ids) as v
         where d.job_id = v.job_id and d.ord = v.ord;
    end if;
    -- Task by task: the dependency is over when the target array has ended; tasks still closed then stay closed.
    with over as materialized (
        select d.job_id, d.ord, p.closed_tasks
          from unnest(p_job_ids) as w (id)
         cross join lateral (select * from dependency as x where x.job_id = w.id offset 0) as d
         cross join lateral (select * from pending as x where x.job_id = w.id offset 0) as p
         cross join lateral (select * from array_job as x where x.job_id = d.target_id offset 0) as a
         where d.kind = 'aftercorr' and d.state = 'waiting' and a.ended_ok + a.ended_not_ok >= a.task_count
    )
    update dependency as d
       set state = case when o.closed_tasks <> '{}' then 'never' else 'met' end::dependency_state
      from over as o
     where d.job_id = o.job_id and d.ord = o.ord;

    with verdict as materialized (
        select w.id as job_id, v.state
          from unnest(p_job_ids) as w (id)
         cross join lateral (select * from pending as x where x.job_id = w.id offset 0) as p
         cross join lateral (
               select case when p.dependency_any
                           then case when bool_or(t.state = 'met') then 'met'
                                     when bool_and(t.state = 'never') then 'never' else 'waiting' end
                           else case when bool_or(t.state = 'never') then 'never'
                                     when bool_and(t.state = 'met') then 'met' else 'waiting' end
                      end::dependency_state as state
                 from dependency as d
                cross join lateral (
                      -- Closed tasks wait by themselves; the array as a whole can never start when only closed tasks are left.
                      select case when d.kind <> 'aftercorr' then d.state
                                  when d.state = 'never' and p.tasks <@ p.closed_tasks then 'never'
                                  else 'met' end as state) as t
                where d.job_id = w.id
               having count(*) > 0) as v
    ), changed as (
        update pending as p
           set dependency = v.state,
               eligible_at = case when v.state = 'met' and p.held is null and p.begun and p.lacks is null
                                  then coalesce(p.eligible_at, p_now) else p.eligible_at end
          from verdict as v
         where p.job_id = v.job_id and p.dependency <> v.state
        returning p.job_id, p.array_job_id, p.tasks, p.dependency
    )
    -- A released task with a row of its own is counted before the tasks of the range.
    select array_agg(distinct array_job_id) filter (where tasks is null and array_job_id is not null),
           array_agg(job_id order by job_id) filter (where dependency = 'never')
      into v_arrays, v_never from changed;
    perform _notify_jobs('invalid_depend', v_never, p_now);
    if v_arrays is not null then
        perform _refresh_open_counts(v_arrays);
    end if;
end;
$$;
