-- odc._array_notification: what a notification says about an array as a whole.
-- Returns    JSON as _job_notification, with tasks, completed, not_completed. state: of all tasks if they ended alike, else
--            MIXED; exit_code: the highest
create or replace function odc._array_notification(p_job_id bigint, p_now timestamptz)
returns jsonb
language sql stable as $$
    select jsonb_strip_nulls(jsonb_build_object(
               'job', j.id::text, 'name', j.name, 'user', j.user_name, 'account', a.name,
               'state', case when e.states = 1 then e.state when e.states > 1 then 'MIXED' end,
               'exit_code', e.exit_code,
               'queued_s', floor(extract(epoch from coalesce(e.started_at, p_now) - j.submitted_at)),
               'run_s', floor(extract(epoch from coalesce(e.ended_at, p_now) - e.started_at)),
               'tasks', r.task_count, 'completed', r.ended_ok, 'not_completed', r.ended_not_ok,
               'at', odc._iso(p_now)))
      from odc.job as j
      join odc.array_job as r on r.job_id = j.id
      left join odc.account as a on a.id = j.account_id
     cross join lateral (
           select count(distinct t.state) as states, min(t.state::text) as state, max(t.exit_code) as exit_code,
                  min(t.started_at) as started_at, max(t.ended_at) as ended_at
             from odc.job as t
            where t.array_job_id = j.id and r.ended_ok + r.ended_not_ok >= r.task_count) as e
     where j.id = p_job_id
$$;
