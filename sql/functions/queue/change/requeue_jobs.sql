-- odc.requeue_jobs: end running jobs and return them to the queue, with p_hold as held; id and queue time stay.
-- Returns    as cancel_jobs, with outcome requeueing or refused
-- Locks      the turn; running; as _charge_change
-- Raises     OD042 TooMuchStored: each start is kept
create or replace function odc.requeue_jobs(
    p_actor jsonb, p_filters jsonb, p_now timestamptz, p_hold boolean default false)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_answers text;
begin
    perform _take_turn(p_now);
    with found as materialized (
        select f.*, j.requeue and j.kind = 'batch' as may, j.kind, r.intent
          from _find_jobs(p_actor, p_filters, 'running') as f
          left join job as j on j.id = f.job_id
          left join running as r on r.job_id = f.job_id
    ), asked as (
        update running as r
           set intent = case when p_hold then 'requeue_hold' else 'requeue' end::end_intent,
               intent_by = p_actor ->> 'user', intent_at = p_now, state = 'COMPLETING'
          from found as f
         where r.job_id = f.job_id and f.place = 'running' and f.may and f.intent is null
    ), noted as (
        insert into event (at, kind, actor, job_id, detail)
        select p_now, 'requeue_asked', p_actor ->> 'user', job_id, jsonb_build_object('hold', p_hold)
          from found where place = 'running' and may and intent is null
         order by job_id
    )
    select coalesce(json_agg(
               case when f.code is not null then _answer(f.job_id, f.array_task_id, 'refused', f.code, f.message, f.hint)
                    when f.place = 'pending'
                    then _answer(f.job_id, f.array_task_id, 'refused', 'OD012',
                                 format('job %s is already pending', f.job_id), 'Only running jobs can be requeued.')
                    when f.place = 'ended'
                    then _answer(f.job_id, f.array_task_id, 'refused', 'OD012',
                                 format('job %s has ended', f.job_id), 'To run it again, submit it again: odcctl requeue --force.')
                    when f.kind = 'reservation'
                    then _answer(f.job_id, f.array_task_id, 'refused', 'OD012',
                                 format('job %s is a reservation: its running processes would be lost', f.job_id),
                                 'Cancel it and reserve again.')
                    when not f.may
                    then _answer(f.job_id, f.array_task_id, 'refused', 'OD012',
                                 format('job %s was submitted with --no-requeue', f.job_id),
                                 'Cancel it and submit it again.')
                    when f.intent is not null
                    then _answer(f.job_id, f.array_task_id, 'refused', 'OD012',
                                 format('job %s is already ending', f.job_id), null)
                    else _answer(f.job_id, f.array_task_id, 'requeueing') end order by f.job_id)::text, '[]')
      into v_answers
      from found as f;
    perform _charge_change(p_actor, 2 * _count_outcome(v_answers, 'requeueing'), null, '{}', p_now);
    perform _wake();
    return v_answers;
end;
$$;
