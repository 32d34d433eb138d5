-- odc._change_pending: hold or release jobs; both are about pending jobs only.
-- Arguments  p_outcome  held or released: what is done, and what the answers say
-- Locks      the turn; pending
create or replace function odc._change_pending(p_actor jsonb, p_filters jsonb, p_now timestamptz, p_outcome text)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_operator boolean := coalesce((p_actor ->> 'operator')::boolean, false);
    v_found    record;
    v_part     record;
    v_answers  text;
    v_done     bigint[];
    v_arrays   bigint[];
begin
    perform _take_turn(p_now);
    select array_agg(f.job_id) as ids, array_agg(f.array_task_id) as tasks, array_agg(f.place) as places,
           array_agg(f.tasks::text) as parts, array_agg(f.code) as codes, array_agg(f.message) as messages,
           array_agg(f.hint) as hints
      into v_found
      from _find_jobs(p_actor, p_filters, 'pending') as f;
    for v_part in
        select f.id, f.tasks::int4multirange as tasks, f.n
          from unnest(v_found.ids, v_found.parts) with ordinality as f (id, tasks, n)
         where f.tasks is not null
    loop
        v_done := _split_tasks(v_part.id, v_part.tasks, p_now);
        v_found.places[v_part.n] := 'split';
        v_found.ids := v_found.ids || v_done;
        v_found.tasks := v_found.tasks || array(
            select j.array_task_id from unnest(v_done) with ordinality as s (id, n) join job as j on j.id = s.id order by s.n);
        v_found.places := v_found.places || array_fill('pending'::text, array[cardinality(v_done)]);
        v_found.codes := v_found.codes || array_fill(null::text, array[cardinality(v_done)]);
        v_found.messages := v_found.messages || array_fill(null::text, array[cardinality(v_done)]);
        v_found.hints := v_found.hints || array_fill(null::text, array[cardinality(v_done)]);
    end loop;

    with verdict as materialized (
        select f.*, p.reason, p_outcome = 'released' and p.held is null and p.job_id is not null as free, p.job_id is not null and (
                   p_outcome = 'released' and (p.held = 'admin' and not v_operator or p.reason = 'ReservationDeleted')) is not true as may
          from unnest(v_found.ids, v_found.tasks, v_found.places, v_found.codes, v_found.messages, v_found.hints)
               as f (id, task, place, code, message, hint)
          left join pending as p on p.job_id = f.id and f.place = 'pending'
         where f.place is distinct from 'split'
    )
    select array_agg(v.id) filter (where v.may and not v.free),
           json_agg(case
               when v.code is not null then _answer(v.id, v.task, 'refused', v.code, v.message, v.hint)
               when v.may then _answer(v.id, v.task, case when v.free then 'not_held' else p_outcome end)
               when v.place = 'pending' and v.reason = 'ReservationDeleted'
               then _answer(v.id, v.task, 'refused', 'OD012', format('job %s names a booking that is over', v.id),
                            format('`odcctl update %s --reservation NAME` gives it another, with '''' none.', v.id))
               when v.place = 'pending'
               then _answer(v.id, v.task, 'refused', 'OD013', format('job %s is held by an operator', v.id),
                            'Ask an operator to release it.')
               else _answer(v.id, v.task, 'refused', 'OD012',
                            format('job %s cannot be %s: it %s', v.id, p_outcome,
                                   case v.place when 'running' then 'runs' else 'has ended' end),
                            format('Only pending jobs can be %s.', p_outcome)) end order by v.id)::text
      into v_done, v_answers
      from verdict as v;

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
    notify odc;
    return coalesce(v_answers, '[]');
end;
$$;
