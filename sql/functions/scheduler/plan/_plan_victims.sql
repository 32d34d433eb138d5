-- odc._plan_victims: the running jobs that a job of a QOS may end now: their QOS is one it preempts, the time for which
-- their own QOS exempts them is over, they are not already ending, and they would not end by themselves within their
-- grace.
-- Arguments  p_qos_id   of the preemptor;  p_spare  skip these
-- Returns    in order of cost: microseconds from p_now to the end of the grace (at least one second) and to their own
--            end; cost: GPU-milliseconds since the start or the last checkpoint, CPU-milliseconds for jobs without GPUs
create or replace function odc._plan_victims(p_now timestamptz, p_qos_id integer, p_spare bigint[])
returns table (job_id bigint, cost bigint, grace bigint, own_end bigint)
language sql stable as $$
    select r.job_id,
           (extract(epoch from p_now - least(p_now, greatest(r.started_at, r.checkpoint_at))) * 1000)::bigint
           * (select case when sum(a.gpus) > 0 then sum(a.gpus) else sum(a.cpus) end
                from odc.allocation as a where a.job_id = r.job_id)::bigint as cost,
           greatest(1, v.grace_s) * 1000000::bigint,
           case when r.ends_at = 'infinity' then 8000000000000000000
                else (extract(epoch from r.ends_at - p_now) * 1000000)::bigint end
      from odc.qos as q
      join odc.qos as v on v.id = any (q.preempts)
      join odc.running as r on r.qos_id = v.id
     where q.id = p_qos_id
       and r.intent is null
       and (v.exempt_s = 0 or r.running_at <= p_now - make_interval(secs => v.exempt_s))
       and r.ends_at > p_now + make_interval(secs => greatest(1, v.grace_s))
       and r.job_id <> all (coalesce(p_spare, '{}'))
     order by cost, r.node_count, r.job_id
$$;
