-- odc._write_dependencies: store the dependencies of jobs just queued; jobs that need not wait are then ready.
-- Arguments  p_ids   ids of the jobs, null for a position without one; their pending rows are in state 'waiting'
--            p_jobs  the jobs as submitted, parallel
-- Locks      the caller holds the turn; the pending rows of these jobs
create or replace function odc._write_dependencies(p_ids bigint[], p_jobs jsonb[], p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp set enable_seqscan = off as $$
declare
    v_ids    bigint[];
    v_closed bigint[];
begin
    with term as (
        insert into dependency (job_id, ord, kind, target_id, target_task, delay_s, name_key)
        select u.id, t.ord,
               -- Task by task only if both are arrays; otherwise it is afterok.
               case when d.kind = 'aftercorr' and (p.tasks is null or a.job_id is null or d.target_task is not null)
                    then 'afterok' else d.kind end::dependency_kind,
               d.target_id, d.target_task, coalesce(d.delay_s, 0),
               case when d.kind = 'singleton' then _name_key(j.uid, j.name) end
          from unnest(p_ids, p_jobs) as u (id, job)
         cross join lateral (select j.uid, j.name from job as j where j.id = u.id offset 0) as j
         cross join lateral (select p.tasks from pending as p where p.job_id = u.id offset 0) as p
         cross join jsonb_array_elements(u.job -> 'dependency' -> 'terms') with ordinality as t (term, ord)
         cross join jsonb_to_record(t.term) as d (kind text, target_id bigint, target_task integer, delay_s integer)
          left join lateral (select a.job_id from array_job as a where a.job_id = d.target_id offset 0) as a on true
        returning job_id, kind
    )
    select array_agg(distinct job_id), array_agg(distinct job_id) filter (where kind = 'aftercorr')
      into v_ids, v_closed from term;
    if v_closed is not null then
        perform _close_tasks(v_closed);
        perform _refresh_open_counts(v_closed);
    end if;
    perform _judge_dependencies(v_ids, p_now);
end;
$$;
