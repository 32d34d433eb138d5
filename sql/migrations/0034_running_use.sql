-- What running jobs use, counted by equal jobs, so that a pass does not add up every running job. Starts and ends keep it
-- under the turn; the sweep recounts it. Locks running and allocation against writes while it counts: 0.3 s for 100,000
-- running jobs.
create table running_use (
    account_id   integer not null,
    uid          integer not null,
    qos_id       integer not null,
    partition_id integer not null,
    shape_id     integer not null,
    nodes        integer not null,      -- of each job, like the next two; of an exclusive job, what it was given
    gpus         integer not null,
    cpus         integer not null,
    jobs         integer not null check (jobs >= 0),
    started_ms   bigint not null,       -- the sum of their started_at, in milliseconds since 1970
    primary key (account_id, uid, qos_id, partition_id, shape_id, nodes, gpus, cpus)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

lock table running, allocation in share mode;
insert into running_use
select r.account_id, r.uid, r.qos_id, r.partition_id, r.shape_id, r.node_count,
       case when s.exclusive then coalesce(a.gpus, 0) else r.node_count * s.gpus_per_node end,
       case when s.exclusive then coalesce(a.cpus, 0) else r.node_count * s.cpus_per_node end,
       count(*), sum((date_part('epoch', r.started_at) * 1000)::bigint)
  from running as r
  join shape as s on s.id = r.shape_id
  left join (select job_id, sum(gpus) as gpus, sum(cpus) as cpus from allocation group by job_id) as a on a.job_id = r.job_id
 group by 1, 2, 3, 4, 5, 6, 7, 8;
