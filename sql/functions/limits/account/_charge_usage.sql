-- odc._charge_usage: add the GPU time of attempts to the usage of their account, user and QOS. Time counts in full until
-- the attempt ends, and decays from then on. Called by _end_attempts, while the attempts are still in running.
-- Arguments  p_job_ids  running jobs whose members have all ended, locked by the caller
-- Locks      usage rows, in the order of their key
-- enable_seqscan: PostgreSQL that counted allocation when it was empty would read all of it for each job.
create or replace function odc._charge_usage(p_job_ids bigint[], p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp set enable_seqscan = off as $$
begin
    insert into usage as u (account_id, uid, qos_id, user_name, used_ms, used_gpu_ms, total_gpu_ms, used_at)
    select c.account_id, c.uid, c.qos_id, c.user_name, (c.billed_ms * q.usage_factor)::bigint,
           (c.gpu_ms * q.usage_factor)::bigint, c.gpu_ms, p_now
      from (select r.account_id, r.uid, r.qos_id, max(j.user_name) as user_name, sum(h.gpus * t.ms)::bigint as gpu_ms,
                   sum(greatest(h.gpus * 1000, h.cpus * 1000 / o.cpus_per_gpu) * t.ms / 1000)::bigint as billed_ms
              from running as r
              join job as j on j.id = r.job_id
             cross join account_setting as o
             cross join lateral (select sum(a.gpus) as gpus, sum(a.cpus) as cpus
                                   from allocation as a where a.job_id = r.job_id) as h
             cross join lateral (select _attempt_ms(r.started_at, r.exited_at, p_now)) as t (ms)
             where r.job_id = any (p_job_ids)
             group by r.account_id, r.uid, r.qos_id) as c
      join qos as q on q.id = c.qos_id
     order by c.account_id, c.uid, c.qos_id
        on conflict (account_id, uid, qos_id) do update
       set (used_ms, used_gpu_ms, used_at) = (
               select _decay(u.used_ms, d.halvings, d.rest) + excluded.used_ms,
                      _decay(u.used_gpu_ms, d.halvings, d.rest) + excluded.used_gpu_ms, greatest(u.used_at, p_now)
                 from _half_lives(u.used_at, p_now) as d),
           total_gpu_ms = u.total_gpu_ms + excluded.total_gpu_ms;
end;
$$;
