-- odc._count_use: the rows that running_use should have, counted from running jobs. An exclusive job counts with its
-- allocations; any other job with its request.
create or replace function odc._count_use()
returns setof odc.running_use
language sql stable as $$
    select r.account_id, r.uid, r.qos_id, r.partition_id, r.shape_id, r.node_count, u.gpus, u.cpus, count(*)::integer,
           sum((extract(epoch from r.started_at) * 1000)::bigint)::bigint
      from odc.running as r
      join odc.shape as s on s.id = r.shape_id
      left join (select a.job_id, sum(a.gpus) as gpus, sum(a.cpus) as cpus
                   from odc.allocation as a
                   join odc.running as e on e.job_id = a.job_id
                   join odc.shape as x on x.id = e.shape_id and x.exclusive
                  group by a.job_id) as a on a.job_id = r.job_id
     cross join lateral (select case when s.exclusive then coalesce(a.gpus, 0) else r.node_count * s.gpus_per_node end::integer,
                                case when s.exclusive then coalesce(a.cpus, 0) else r.node_count * s.cpus_per_node end::integer)
                     as u (gpus, cpus)
     group by r.account_id, r.uid, r.qos_id, r.partition_id, r.shape_id, r.node_count, u.gpus, u.cpus
$$;
