-- odc.cancel_jobs: cancel pending jobs at once and request the end of running ones; or, with p_signal, only signal
-- running jobs.
-- Arguments  p_actor, p_filters  see _find_jobs
--            p_signal            the number of a signal: no job is cancelled, and the caller passes the signal on
-- Returns    JSON array text of {job_id, array_task_id, outcome, code, message, hint}. outcome is cancelled (it was
--            pending; for an array with array_tasks: the cancelled tasks), cancelling (it runs), ended (already), signal
--            (with attempt) or refused
-- Locks      the turn; pending, running, job
-- Raises     OD010 BadRequest: no jobs are named; OD017 TooLarge: see _check_pieces
create or replace function odc.cancel_jobs(
    p_actor jsonb, p_filters jsonb, p_now timestamptz, p_signal integer default null)
returns text
language plpgsql volatile set search_path = odc, pg_temp set enable_seqscan = off as $$
declare
    v_actor   text := p_actor ->> 'user';
    v_found   record;
    v_answers text;
begin
    perform _take_turn(p_now);
    select array_agg(f.job_id) as ids, array_agg(f.array_task_id) as tasks, array_agg(f.place) as places,
           array_agg(f.tasks::text) as parts, array_agg(f.code) as codes, array_agg(f.message) as messages,
           array_agg(f.hint) as hints
      into v_found
      from _find_jobs(p_actor, p_filters) as f;
    select json_agg(
               case when f.code is not null then _answer(f.id, f.task, 'refused', f.code, f.message, f.hint)
                    when f.place = 'ended' then _answer(f.id, f.task, 'ended')
                    when p_signal is null and f.place = 'pending' and p.tasks is not null
                    then json_build_object('job_id', f.id, 'array_task_id', f.task, 'outcome', 'cancelled',
                                           'array_tasks', _task_text(coalesce(f.part::int4multirange, p.tasks), null),
                                           'code', null, 'message', null, 'hint', null)
                    when p_signal is null and f.place = 'pending' then _answer(f.id, f.task, 'cancelled')
                    when p_signal is null then _answer(f.id, f.task, 'cancelling')
                    when f.place = 'running'
                    then json_build_object('job_id', f.id, 'array_task_id', f.task, 'outcome', 'signal',
                                           'attempt', r.attempt, 'code', null, 'message', null, 'hint', null)
                    else _answer(f.id, f.task, 'refused', 'OD012',
                                 format('job %s is pending: it has no process to signal', f.id),
                                 'Leave --signal out to cancel it.') end order by f.id)::text
      into v_answers
      from unnest(v_found.ids, v_found.tasks, v_found.places, v_found.parts, v_found.codes, v_found.messages,
                  v_found.hints) as f (id, task, place, part, code, message, hint)
      left join lateral (select p.tasks from pending as p where p.job_id = f.id offset 0) as p on true
      left join lateral (select r.attempt from running as r where r.job_id = f.id and p_signal is not null offset 0) as r on true;
    if p_signal is not null or v_answers is null then
        return coalesce(v_answers, '[]');
    end if;

    perform _check_pieces(f.id, f.part::int4multirange, false)
       from unnest(v_found.ids, v_found.places, v_found.parts) as f (id, place, part)
      where f.place = 'pending' and f.part is not null;
    perform _end_pending(
        array_agg(f.id) filter (where f.part is null), array_agg(f.id) filter (where f.part is not null),
        array_agg(f.part::int4multirange) filter (where f.part is not null), 'CANCELLED', v_actor, p_now)
       from unnest(v_found.ids, v_found.places, v_found.parts) as f (id, place, part)
      where f.place = 'pending';
    with asked as (
        update running as r
           set intent = 'cancel', intent_by = v_actor, intent_at = p_now, state = 'COMPLETING',
               stop_sent_at = case when r.intent is null then r.stop_sent_at end
         where r.job_id = any (array(select f.id from unnest(v_found.ids, v_found.places) as f (id, place)
                                      where f.place = 'running'))
           and r.intent is distinct from 'cancel'
        returning r.job_id
    )
    insert into event (at, kind, actor, job_id)
    select p_now, 'cancelled', v_actor, job_id from asked order by job_id;
    perform _wake();
    return v_answers;
end;
$$;
