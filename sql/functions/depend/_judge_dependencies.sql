-- odc._judge_dependencies: look again at what these pending jobs wait for; those that need wait no more are ready.
-- Level triggered: it asks how the targets stand, not what just happened to them, so it may be called at any time.
-- Locks      pending and dependency rows of these jobs
create or replace function odc._judge_dependencies(p_job_ids bigint[], p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    if p_job_ids is null then
        return;
    end if;
    perform from pending where job_id = any (p_job_ids) order by job_id for update;
    update dependency as d
       set state = v.verdict, due_at = v.due_at
      from _dependency_verdicts(p_job_ids, p_now) as v
     where d.job_id = v.job_id and d.ord = v.ord and (d.state, d.due_at) is distinct from (v.verdict, v.due_at);
    perform _open_tasks(p_job_ids);
    with verdict as (
        select d.job_id,
               case when p.dependency_any
                    then case when bool_or(d.state = 'met' or d.kind = 'aftercorr') then 'met'
                              when bool_and(d.state = 'never') then 'never' else 'waiting' end
                    else case when bool_or(d.state = 'never') then 'never'
                              when bool_and(d.state = 'met' or d.kind = 'aftercorr') then 'met' else 'waiting' end
               end::dependency_state as state
          from dependency as d
          join pending as p on p.job_id = d.job_id
         where d.job_id = any (p_job_ids)
         group by d.job_id, p.dependency_any
    )
    update pending as p
       set dependency = v.state,
           eligible_at = case when v.state = 'met' and p.held is null and p.begun
                              then coalesce(p.eligible_at, p_now) else p.eligible_at end
      from verdict as v
     where p.job_id = v.job_id and p.dependency <> v.state;
end;
$$;
