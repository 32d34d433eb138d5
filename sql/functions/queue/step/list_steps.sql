-- odc.list_steps: the steps of jobs, for lists and accounting. Each part of the union has an index, also after years of steps;
-- `offset 0` leaves the planner no other way, whatever size it believes `running` to have.
-- Arguments  p_job_ids  null: all steps of running jobs
--            p_live     only steps that have not ended
-- Returns    is_last_start: the step is not of a start before the job was requeued
create or replace function odc.list_steps(p_job_ids bigint[] default null, p_live boolean default false)
returns table (job_id bigint, attempt integer, step integer, key text, name text, command text, state text, user_name text, uid integer,
               account text, partition text, node_names text[], tasks integer[], cpus integer[], gpus integer[],
               mem_mib integer[], started_at timestamptz, ended_at timestamptz, exit_code integer, statuses jsonb, detail text,
               array_job_id bigint, array_task_id integer, time_limit_s integer,
               is_last_start boolean, used bigint[])
language sql stable set search_path = odc, pg_temp as $$
    with wanted as (
        select s.* from step as s
         where p_live and s.state = 'RUNNING' and (p_job_ids is null or s.job_id = any (p_job_ids))
        union all
        select s.* from step as s where not p_live and s.job_id = any (p_job_ids)
        union all
        select s.*
          from running as r
         cross join lateral (select t.* from step as t where t.job_id = r.job_id and t.attempt = r.attempt offset 0) as s
         where not p_live and p_job_ids is null
    )
    select s.job_id, s.attempt, s.step, s.key, s.name, s.command, s.state::text, j.user_name, j.uid, a.name,
           p.name, s.node_names, s.tasks, s.cpus,
           array(select bit_count(m::bit(64))::integer from unnest(s.gpu_masks) with ordinality as u (m, at) order by at),
           s.mem_mib, s.started_at, s.ended_at, s.exit_code, s.statuses, s.detail, j.array_job_id, j.array_task_id,
           j.time_limit_s,
           s.attempt = coalesce(r.attempt, (select max(t.attempt) from attempt as t where t.job_id = s.job_id), s.attempt),
           s.used
      from wanted as s
     cross join lateral (select t.* from job as t where t.id = s.job_id offset 0) as j
      join account as a on a.id = j.account_id
      left join running as r on r.job_id = s.job_id
      left join partition as p on p.id = coalesce(r.partition_id, j.partition_id)
     where p_job_ids is not null or r.attempt = s.attempt
     order by s.job_id, s.attempt, s.step;
$$;
