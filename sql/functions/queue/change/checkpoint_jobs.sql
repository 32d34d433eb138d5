-- odc.checkpoint_jobs: record that running jobs have written a checkpoint, as reported by their users: ending them now
-- loses only the work after it.
-- Returns    as cancel_jobs, with outcome checkpointed or refused
-- Locks      the turn; running; as _charge_change
-- Raises     OD042 TooMuchStored: each one is an event
create or replace function odc.checkpoint_jobs(p_actor jsonb, p_filters jsonb, p_now timestamptz)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_answers text;
begin
    perform _take_turn(p_now);
    with found as materialized (
        select f.*, r.attempt, r.running_at is not null as runs
          from _find_jobs(p_actor, p_filters, 'running') as f
          left join running as r on r.job_id = f.job_id
    ), done as (
        update running as r set checkpoint_at = p_now
          from found as f
         where r.job_id = f.job_id and f.place = 'running' and f.runs
    ), noted as (
        insert into event (at, kind, actor, job_id, detail)
        select p_now, 'checkpointed', p_actor ->> 'user', job_id, jsonb_build_object('attempt', attempt)
          from found where place = 'running' and runs
         order by job_id
    )
    select coalesce(json_agg(
               case when f.code is not null then _answer(f.job_id, f.array_task_id, 'refused', f.code, f.message, f.hint)
                    when f.place = 'running' and f.runs then _answer(f.job_id, f.array_task_id, 'checkpointed')
                    else _answer(f.job_id, f.array_task_id, 'refused', 'OD012',
                                 format(case f.place when 'running' then 'job %s has not started to run'
                                                     when 'pending' then 'job %s is pending'
                                                     else 'job %s has ended' end, f.job_id),
                                 'Only a running job can have a checkpoint.') end order by f.job_id)::text, '[]')
      into v_answers
      from found as f;
    perform _charge_change(p_actor, _count_outcome(v_answers, 'checkpointed'), null, '{}', p_now);
    return v_answers;
end;
$$;
