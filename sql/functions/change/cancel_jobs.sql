-- odc.cancel_jobs: cancel pending jobs at once and ask running ones to end; or, with p_signal, only signal running ones.
-- Arguments  p_actor, p_filters  see _find_jobs
--            p_signal            a signal's number: nothing is cancelled; the caller tells the executor
-- Returns    JSON array text of {job_id, array_task_id, outcome, code, message, hint}; outcome is cancelled (it was
--            pending), cancelling (it runs), ended (already), signal (with attempt) or refused
-- Locks      as _lock_jobs; job
create or replace function odc.cancel_jobs(
    p_actor jsonb, p_filters jsonb, p_now timestamptz, p_signal integer default null)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
#variable_conflict use_column
declare
    v_answers jsonb;
    v_more    jsonb;
    v_found   record;
    v_ended   bigint[];
begin
    perform _lock_jobs(p_actor, p_filters);
    select array_agg(f.job_id) as ids, array_agg(f.place) as places, array_agg(f.tasks::text) as tasks into v_found
      from _find_jobs(p_actor, p_filters) as f;

    select coalesce(jsonb_agg(
               case when f.code is not null then _answer(f.job_id, f.array_task_id, 'refused', f.code, f.message, f.hint)
                    when f.place = 'ended' then _answer(f.job_id, f.array_task_id, 'ended')
                    when p_signal is null and f.place = 'pending' then _answer(f.job_id, f.array_task_id, 'cancelled')
                    when p_signal is null then _answer(f.job_id, f.array_task_id, 'cancelling')
                    when f.place = 'running'
                    then _answer(f.job_id, f.array_task_id, 'signal') || jsonb_build_object('attempt', r.attempt)
                    else _answer(f.job_id, f.array_task_id, 'refused', 'OD012',
                                 format('job %s is pending: it has no process to signal', f.job_id),
                                 'Without --signal it is cancelled.') end order by f.job_id), '[]')
      into v_answers
      from _find_jobs(p_actor, p_filters) as f
      left join running as r on r.job_id = f.job_id;
    if p_signal is not null then
        return v_answers::text;
    end if;

    with part as (
        -- Some tasks of a waiting range: they become one row that has ended, the others wait on.
        select f.job_id, f.tasks::int4multirange as tasks, nextval('job_id_seq') as new_id
          from unnest(v_found.ids, v_found.places, v_found.tasks) as f (job_id, place, tasks)
         where f.place = 'pending' and f.tasks is not null
    ), cut as (
        update pending as p
           set tasks = p.tasks - c.tasks, closed_tasks = p.closed_tasks - c.tasks
          from part as c where p.job_id = c.job_id
    ), apart as (
        insert into job (
            id, kind, array_job_id, array_task_id, array_tasks, name, user_name, uid, gid, account_id, qos_id,
            partition_ids, shape_id, nice, submitted_at, begin_at, deadline_at, time_limit_s, dependency,
            array_throttle, requeue, work_dir, stdin, stdout, stderr, open_mode, umask, signal_number,
            signal_before_s, signal_batch, script_digest, environment_digest, args, comment, submit_host, options,
            state, ended_at, ended_by)
        select c.new_id, j.kind, j.id, case when _task_count(c.tasks) = 1 then lower(c.tasks) end,
               case when _task_count(c.tasks) > 1 then _task_text(c.tasks, null) end,
               j.name, j.user_name, j.uid, j.gid, j.account_id, j.qos_id, j.partition_ids, j.shape_id, j.nice,
               j.submitted_at, j.begin_at, j.deadline_at, j.time_limit_s, j.dependency, j.array_throttle, j.requeue,
               j.work_dir, j.stdin, j.stdout, j.stderr, j.open_mode, j.umask, j.signal_number, j.signal_before_s,
               j.signal_batch, j.script_digest, j.environment_digest, j.args, j.comment, j.submit_host, j.options,
               'CANCELLED', p_now, p_actor ->> 'user'
          from part as c join job as j on j.id = c.job_id
        returning id
    ), gone as (
        delete from pending as p
         using unnest(v_found.ids, v_found.places, v_found.tasks) as f (job_id, place, tasks)
         where f.place = 'pending' and f.tasks is null and p.job_id = f.job_id
        returning p.job_id, p.tasks, p.eligible_at, p.attempt
    ), whole as (
        update job as j
           set state = 'CANCELLED', ended_at = p_now, ended_by = p_actor ->> 'user', eligible_at = g.eligible_at,
               array_task_id = case when _task_count(g.tasks) = 1 then lower(g.tasks) else j.array_task_id end,
               array_tasks = case when _task_count(g.tasks) > 1 then _task_text(g.tasks, null) end,
               attempt = nullif(g.attempt - 1, 0)
          from gone as g where j.id = g.job_id
        returning j.id
    ), forgotten as (
        delete from planned where job_id in (select job_id from gone)
    ), ended as (
        select id from apart union all select id from whole
    ), told as (
        insert into event (at, kind, actor, job_id, detail)
        select p_now, 'ended', p_actor ->> 'user', id, '{"state": "CANCELLED"}' from ended
    )
    select array_agg(id order by id) into v_ended from ended;

    with asked as (
        update running as r
           set intent = 'cancel', intent_by = p_actor ->> 'user', intent_at = p_now, state = 'COMPLETING',
               stop_sent_at = case when r.intent is null then r.stop_sent_at end
          from unnest(v_found.ids, v_found.places) as f (job_id, place)
         where f.place = 'running' and r.job_id = f.job_id and r.intent is distinct from 'cancel'
        returning r.job_id
    )
    insert into event (at, kind, actor, job_id)
    select p_now, 'cancelled', p_actor ->> 'user', job_id from asked;

    if v_ended is not null then
        perform _jobs_ended(v_ended, p_now);
    end if;
    notify odc;
    return v_answers::text;
end;
$$;
