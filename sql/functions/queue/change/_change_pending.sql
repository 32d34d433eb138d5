-- odc._change_pending: hold or release jobs; both apply only to pending jobs.
-- Arguments  p_actor    as for _charge_change
--            p_outcome  held or released: the change to make, and the outcome in the answers
-- Locks      the turn; as _charge_change; pending
-- Raises     as _charge_change
create or replace function odc._change_pending(p_actor jsonb, p_filters jsonb, p_now timestamptz, p_outcome text)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_operator boolean := coalesce((p_actor ->> 'operator')::boolean, false);
    v_found    record;
    v_part     record;
    v_split    bigint[];
    v_answers  json[];
    v_done     bigint[];
    v_arrays   bigint[];
begin
    perform _take_turn(p_now);
    -- Find all refusals before a range is split, so that a refused range stays unchanged.
    with verdict as materialized (
        select f.job_id as id, f.array_task_id as task, f.tasks::text as part,
               p_outcome = 'released' and p.held is null as free,
               coalesce(f.code, r.code) as code, coalesce(f.message, r.message) as message, coalesce(f.hint, r.hint) as hint
          from _find_jobs(p_actor, p_filters, 'pending') as f
          left join pending as p on p.job_id = f.job_id and f.place = 'pending'
          left join lateral (
               select 'OD012' as code,
                      format('job %s cannot be %s: it %s', f.job_id, p_outcome,
                             case f.place when 'running' then 'is running' else 'has ended' end) as message,
                      format('Only pending jobs can be %s.', p_outcome) as hint
                where f.place <> 'pending'
                union all
               select 'OD012', format('the booking of job %s is over', f.job_id),
                      format('`odcctl update %s --reservation NAME` gives the job another booking; with '''' it needs none.', f.job_id)
                where p_outcome = 'released' and p.reason = 'ReservationDeleted'
                union all
               select 'OD013', format('job %s is held by an operator', f.job_id), 'Ask an operator to release it.'
                where p_outcome = 'released' and p.held = 'admin' and not v_operator
                limit 1) as r on true
    )
    select array_agg(v.id) filter (where v.code is null and not v.free and v.part is null) as done,
           array_agg(v.id) filter (where v.code is null and not v.free and v.part is not null) as ranges,
           array_agg(v.part) filter (where v.code is null and not v.free and v.part is not null) as parts,
           array_agg(case when v.code is not null then _answer(v.id, v.task, 'refused', v.code, v.message, v.hint)
                         else _answer(v.id, v.task, case when v.free then 'not_held' else p_outcome end) end order by v.id)
               filter (where v.code is not null or v.free or v.part is null) as answers
      into v_found
      from verdict as v;
    perform _charge_change(
        p_actor, cardinality(coalesce(v_found.done, '{}')) + coalesce(sum(_task_count(f.part::int4multirange)), 0)::bigint,
        v_found.done || v_found.ranges, '{}', p_now)
       from unnest(v_found.parts) as f (part);
    v_done := v_found.done;
    v_answers := v_found.answers;
    for v_part in
        select f.id, f.tasks::int4multirange as tasks from unnest(v_found.ranges, v_found.parts) as f (id, tasks) order by f.id
    loop
        v_split := _split_tasks(v_part.id, v_part.tasks, p_now);
        v_done := v_done || v_split;
        v_answers := v_answers || array(
            select _answer(j.id, j.array_task_id, p_outcome)
              from unnest(v_split) as s (id) join job as j on j.id = s.id order by j.id);
    end loop;

    update pending as p
       set held = case when p_outcome = 'released' then null
                       when v_operator and (p_actor ->> 'uid')::integer <> p.uid then 'admin'
                       else coalesce(p.held, 'user') end::job_hold,
           reason = case when p_outcome = 'released' then null else p.reason end,
           eligible_at = case when p_outcome = 'released' and p.begun and p.dependency = 'met' and p.lacks is null
                              then coalesce(p.eligible_at, p_now) else p.eligible_at end
      from unnest(v_done) as d (id)
     where p.job_id = d.id;
    insert into event (at, kind, actor, job_id)
    select p_now, p_outcome, p_actor ->> 'user', id from unnest(v_done) as id order by id;
    select array_agg(distinct p.array_job_id) into v_arrays
      from unnest(v_done) as d (id) join pending as p on p.job_id = d.id where p.array_job_id is not null;
    if v_arrays is not null then
        perform _refresh_open_counts(v_arrays);
    end if;
    perform _judge_jobs(v_done, p_now);
    perform _wake();
    return coalesce(array_to_json(v_answers)::text, '[]');
end;
$$;
