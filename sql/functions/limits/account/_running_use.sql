-- odc._running_use: the resources of running jobs and their usage so far, per account, user, QOS and partition.
-- An exclusive job counts with its allocations; any other job with its request. CPUs are billed as GPUs if that is
-- more: account_setting.cpus_per_gpu CPUs count as one GPU.
-- Returns    used_ms: GPU-milliseconds as billed, not yet multiplied by the QOS's usage factor
create or replace function odc._running_use(p_now timestamptz)
returns table (account_id integer, uid integer, qos_id integer, partition_id integer,
               jobs bigint, nodes bigint, gpus bigint, cpus bigint, used_ms bigint)
language sql stable as $$
    select r.account_id, r.uid, r.qos_id, r.partition_id, count(*), sum(r.node_count),
           sum(r.node_count * s.gpus_per_node), sum(r.node_count * s.cpus_per_node),
           (sum(r.node_count * greatest(s.gpus_per_node * 1000::bigint, s.cpus_per_node * 1000::bigint / o.cpus_per_gpu)
                * greatest(0, (date_part('epoch', p_now - r.started_at) * 1000)::bigint)) / 1000)::bigint
      from odc.running as r
      join odc.shape as s on s.id = r.shape_id
     cross join odc.account_setting as o
     where not s.exclusive
     group by r.account_id, r.uid, r.qos_id, r.partition_id
     union all
    select r.account_id, r.uid, r.qos_id, r.partition_id, 1, r.node_count, a.gpus, a.cpus,
           greatest(a.gpus * 1000, a.cpus * 1000 / o.cpus_per_gpu)
           * greatest(0, (date_part('epoch', p_now - r.started_at) * 1000)::bigint) / 1000
      from odc.running as r
      join odc.shape as s on s.id = r.shape_id and s.exclusive
     cross join odc.account_setting as o
     cross join lateral (select sum(gpus) as gpus, sum(cpus) as cpus
                           from odc.allocation where job_id = r.job_id) as a
$$;
