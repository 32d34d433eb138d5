-- odc._write_jobs: write accepted jobs: their rows, their place in the queue, their texts.
-- Arguments  p_heads, p_jobs, p_requests  the requests, their jobs, and per job its request, counted from 0
--            p_ids                        per job its id; null: not accepted
--            p_shape_ids, p_account_ids, p_qos_ids, p_time_limits_s  the resolved values
-- Locks      job_text and usage: waits for a transaction that stores the same text, or the first job of the same user
create or replace function odc._write_jobs(
    p_heads jsonb[], p_jobs jsonb[], p_requests integer[], p_ids bigint[], p_shape_ids integer[],
    p_account_ids integer[], p_qos_ids integer[], p_time_limits_s integer[],
    p_digests text[], p_texts text[], p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    with asked as materialized (
        select u.id, u.shape_id, u.account_id, u.qos_id, u.time_limit_s,
               h.head ->> 'user' as user_name, (h.head ->> 'uid')::integer as uid, (h.head ->> 'gid')::integer as gid,
               j.*, s.partition_ids, j.array -> 'tasks' #>> '{}' as tasks,
               nullif((j.array ->> 'throttle')::integer, 0) as throttle
          from unnest(p_ids, p_jobs, p_requests, p_shape_ids, p_account_ids, p_qos_ids, p_time_limits_s)
               as u (id, job, request, shape_id, account_id, qos_id, time_limit_s)
          join unnest(p_heads) with ordinality as h (head, n) on h.n = u.request + 1
          join shape as s on s.id = u.shape_id
         cross join lateral jsonb_to_record(u.job) as j (
               name text, kind job_kind, nice integer, comment text, hold boolean, begin_at timestamptz,
               deadline_at timestamptz, requeue boolean, work_dir text, umask integer, stdin text, stdout text,
               stderr text, open_mode text, args text[], script_digest text, environment_digest text,
               signal_number integer, signal_before_s integer, signal_batch boolean, submit_host text,
               "array" jsonb, dependency jsonb, options jsonb, reservation jsonb, mail jsonb)
         where u.id is not null
    ), kept as (
        insert into job_text as k (digest, content, used_at)
        select t.digest, t.content, p_now
          from unnest(p_digests, p_texts) as t (digest, content)
         where t.digest in (select script_digest from asked union select environment_digest from asked)
           -- The last use of a text is recorded once a day: see odc.forget_texts.
           and not exists (select from job_text as o where o.digest = t.digest and o.used_at > p_now - interval '1 day')
         order by t.digest
            on conflict (digest) do update set used_at = excluded.used_at where k.used_at < excluded.used_at
    ), written as (
        insert into job (
            id, kind, array_job_id, name, user_name, uid, gid, account_id, qos_id, partition_ids, shape_id,
            nice, submitted_at, begin_at, deadline_at, time_limit_s, dependency, array_throttle, requeue,
            work_dir, stdin, stdout, stderr, open_mode, umask, signal_number, signal_before_s, signal_batch,
            script_digest, environment_digest, args, comment, submit_host, options)
        select id, coalesce(kind, 'batch'), case when tasks is not null then id end, name, user_name, uid, gid,
               account_id, qos_id, partition_ids, shape_id, coalesce(nice, 0), p_now, begin_at, deadline_at,
               time_limit_s, dependency ->> 'text', throttle, coalesce(requeue, true),
               work_dir, stdin, stdout, stderr, coalesce(open_mode, 'truncate'), coalesce(umask, 18),
               signal_number, signal_before_s, coalesce(signal_batch, false), script_digest, environment_digest,
               coalesce(args, '{}'), comment, submit_host, coalesce(options, '{}')
          from asked
    ), queued as (
        insert into pending (
            job_id, shape_id, uid, account_id, qos_id, nice, queued_at, time_limit_s, held, begin_at, begun,
            deadline_at, dependency, dependency_any, eligible_at, array_job_id, tasks, open_count, born_at)
        select id, shape_id, uid, account_id, qos_id, coalesce(nice, 0), p_now, time_limit_s,
               case when hold then 'user'::job_hold end, begin_at, coalesce(begin_at <= p_now, true), deadline_at,
               case when dependency is null then 'met' else 'waiting' end::dependency_state,
               coalesce((dependency ->> 'any')::boolean, false),
               case when hold is not true and dependency is null and coalesce(begin_at <= p_now, true) then p_now end,
               case when tasks is not null then id end, tasks::int4multirange,
               case when tasks is null then 1 else least(("array" -> 'count')::integer, throttle) end, p_now
          from asked
    ), known as (
        insert into usage (account_id, uid, qos_id, user_name, used_at)
        select distinct on (account_id, uid, qos_id) account_id, uid, qos_id, user_name, p_now
          from asked as a
         where not exists (select from usage as u
                            where u.account_id = a.account_id and u.uid = a.uid and u.qos_id = a.qos_id)
         order by account_id, uid, qos_id, user_name
            on conflict do nothing
    ), mailed as (
        insert into job_mail (job_id, kinds, address)
        select id, array(select jsonb_array_elements_text(mail -> 'kinds')), mail ->> 'address' from asked where mail is not null
    ), ranged as (
        insert into array_job (job_id, task_min, task_max, task_count, task_step, throttle)
        select id, ("array" -> 'min')::integer, ("array" -> 'max')::integer, ("array" -> 'count')::integer,
               coalesce(("array" ->> 'step')::integer, 1), throttle
          from asked where tasks is not null
    ), reserved as (
        insert into reservation (job_id, duration_s, ask, disk_id, build_id)
        select a.id, a.time_limit_s, coalesce(a.reservation, '{}') - 'build_id', d.id, (a.reservation ->> 'build_id')::bigint
          from asked as a
          left join disk as d on d.uid = a.uid and d.name = a.reservation ->> 'disk' and d.deleted_at is null
         where a.kind = 'reservation'
    )
    insert into event (at, kind, actor, job_id, detail)
    select p_now, 'submitted', user_name, id,
           case when tasks is null then '{}' else jsonb_build_object('tasks', "array" -> 'count') end
      from asked
     order by id;
end;
$$;
