-- Every attempt with its allocation in time, running ones until now: the source of GPU hours.
create or replace view odc_report.attempt as
select s.job_id, s.attempt, j.user_name as "user", a.name as account, q.name as qos, t.name as partition, j.kind::text as kind,
       coalesce(h.gpu_type, n.gpu_type) as gpu_type, s.gpus, s.cpus, s.state, s.requeued, s.started_at, s.ended_at, s.live
  from (select x.job_id, x.attempt, x.state::text as state, x.requeued, coalesce(x.gpus, 0) as gpus, coalesce(x.cpus, 0) as cpus,
               x.started_at, x.ended_at, x.node_names[1] as node, false as live
          from odc.attempt as x
         union all
        select r.job_id, r.attempt, r.state::text, false, h.gpus, h.cpus, r.started_at,
               greatest(r.started_at, coalesce(r.exited_at, now())), h.node, true
          from odc.running as r
         cross join lateral (select min(o.name) as node, sum(l.gpus)::integer as gpus, sum(l.cpus)::integer as cpus
                               from odc.allocation as l join odc.node as o on o.id = l.node_id where l.job_id = r.job_id) as h) as s
  join odc.job as j on j.id = s.job_id
  join odc.shape as h on h.id = j.shape_id
  left join odc.account as a on a.id = j.account_id
  left join odc.qos as q on q.id = j.qos_id
  left join odc.running as u on u.job_id = s.job_id
  left join odc.partition as t on t.id = coalesce(u.partition_id, j.partition_id)
  left join odc.node as n on n.name = s.node;
