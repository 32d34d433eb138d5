-- odc._count_use: the rows that running_use should have, counted from running jobs. An exclusive or heterogeneous job counts
-- with its allocations; any other job with its request.
create or replace function odc._count_use()
returns setof odc.running_use
language sql stable as $$
    select r.account_id, r.uid, r.qos_id, r.partition_id, r.shape_id, r.node_count, r.node_count * s.gpus_per_node,
           r.node_count * s.cpus_per_node, count(*)::integer, sum(odc._epoch_ms(r.started_at))::bigint
      from odc.running as r
      join odc.shape as s on s.id = r.shape_id and not s.exclusive and s.components is null
     group by r.account_id, r.uid, r.qos_id, r.partition_id, r.shape_id, r.node_count, s.gpus_per_node, s.cpus_per_node
     union all
    select e.account_id, e.uid, e.qos_id, e.partition_id, e.shape_id, e.node_count, e.gpus, e.cpus, count(*)::integer,
           sum(odc._epoch_ms(e.started_at))::bigint
      from (select r.account_id, r.uid, r.qos_id, r.partition_id, r.shape_id, r.node_count, r.started_at,
                   sum(a.gpus)::integer as gpus, sum(a.cpus)::integer as cpus
              from odc.running as r
              join odc.shape as s on s.id = r.shape_id and (s.exclusive or s.components is not null)
              join odc.allocation as a on a.job_id = r.job_id
             group by r.job_id, r.account_id, r.uid, r.qos_id, r.partition_id, r.shape_id, r.node_count, r.started_at) as e
     group by e.account_id, e.uid, e.qos_id, e.partition_id, e.shape_id, e.node_count, e.gpus, e.cpus
$$;
