-- odc._time_spoken_for: GPU time counted by limits in GPU-minutes, multiplied by the QOS's usage factor: the usage of
-- ended attempts, decayed; and for running jobs their start to their limit, or to p_now if they have no limit or exceed
-- it.
-- Returns    partition_id: null for ended attempts
create or replace function odc._time_spoken_for(p_now timestamptz)
returns table (account_id integer, uid integer, qos_id integer, partition_id integer, gpu_ms bigint)
language sql stable as $$
    select d.account_id, d.uid, d.qos_id, null, d.used_gpu_ms from odc._decayed_usage(p_now) as d
     union all
    select r.account_id, r.uid, r.qos_id, r.partition_id, (r.gpu_ms * q.usage_factor)::bigint
      from (select r.account_id, r.uid, r.qos_id, r.partition_id,
                   sum(case when s.exclusive or s.components is not null
                            then (select sum(a.gpus) from odc.allocation as a where a.job_id = r.job_id)
                            else r.node_count::bigint * s.gpus_per_node end
                       * case when r.time_limit_s < 2147483647 and r.ends_at > p_now then r.time_limit_s * 1000::bigint
                              else greatest(0, (date_part('epoch', p_now - r.started_at) * 1000)::bigint) end) as gpu_ms
              from odc.running as r
              join odc.shape as s on s.id = r.shape_id
             group by r.account_id, r.uid, r.qos_id, r.partition_id) as r
      join odc.qos as q on q.id = r.qos_id
$$;
