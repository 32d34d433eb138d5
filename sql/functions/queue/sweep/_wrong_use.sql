-- odc._wrong_use: rows of running_use that differ from what running jobs use.
-- Returns    one sentence per row
create or replace function odc._wrong_use()
returns setof text
language sql stable as $$
    select format('use of account %s, user %s, QOS %s, partition %s, shape %s on %s nodes: %s jobs with %s GPUs and %s CPUs '
                  'each were counted, but %s run (start times differ by %s ms)',
                  coalesce(u.account_id, c.account_id), coalesce(u.uid, c.uid), coalesce(u.qos_id, c.qos_id),
                  coalesce(u.partition_id, c.partition_id), coalesce(u.shape_id, c.shape_id), coalesce(u.nodes, c.nodes),
                  coalesce(u.jobs, 0), coalesce(u.gpus, c.gpus), coalesce(u.cpus, c.cpus), coalesce(c.jobs, 0),
                  coalesce(u.started_ms, 0) - coalesce(c.started_ms, 0))
      from odc.running_use as u
      full join odc._count_use() as c
        on (c.account_id, c.uid, c.qos_id, c.partition_id, c.shape_id, c.nodes, c.gpus, c.cpus)
         = (u.account_id, u.uid, u.qos_id, u.partition_id, u.shape_id, u.nodes, u.gpus, u.cpus)
     where (coalesce(u.jobs, 0), coalesce(u.started_ms, 0)) <> (coalesce(c.jobs, 0), coalesce(c.started_ms, 0))
$$;
