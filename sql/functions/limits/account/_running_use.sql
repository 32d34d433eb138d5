-- odc._running_use: the resources of running jobs and their usage so far, per account, user, QOS and partition.
-- An exclusive or heterogeneous job counts with its allocations; any other job with its request. CPUs are billed as GPUs if that is
-- more: account_setting.cpus_per_gpu CPUs count as one GPU.
-- Returns    used_ms: GPU-milliseconds as billed, not yet multiplied by the QOS's usage factor
create or replace function odc._running_use(p_now timestamptz)
returns table (account_id integer, uid integer, qos_id integer, partition_id integer,
               jobs bigint, nodes bigint, gpus bigint, cpus bigint, used_ms bigint)
language sql stable as $$
    select u.account_id, u.uid, u.qos_id, u.partition_id, sum(u.jobs), sum(u.jobs::bigint * u.nodes)::bigint,
           sum(u.jobs::bigint * u.gpus)::bigint, sum(u.jobs::bigint * u.cpus)::bigint,
           (sum(case when s.exclusive or s.components is not null
                     then greatest(u.gpus * 1000::bigint, u.cpus * 1000::bigint / o.cpus_per_gpu)
                     else u.nodes * greatest(s.gpus_per_node * 1000::bigint, s.cpus_per_node * 1000::bigint / o.cpus_per_gpu) end::numeric
                * greatest(0, u.jobs * n.ms - u.started_ms)) / 1000)::bigint
      from odc.running_use as u
      join odc.shape as s on s.id = u.shape_id
     cross join odc.account_setting as o
     cross join (select odc._epoch_ms(p_now) as ms) as n
     where u.jobs > 0
     group by u.account_id, u.uid, u.qos_id, u.partition_id
$$;
