-- The starts planned by the last passes, with the nodes reserved for them; planned_start_at null: no end is in sight.
create or replace view odc_report.plan as
select p.job_id, j.user_name as "user", a.name as account, j.name, t.name as partition, s.node_count, s.gpus_per_node, s.gpu_type,
       p.planned_start_at, p.node_names, e.p10 as eta_p10, e.p50 as eta_p50, e.p90 as eta_p90, p.detail, p.pass_id as moved_by_pass
  from odc.planned as p
  join odc.pending as w on w.job_id = p.job_id and w.ready
  join odc.job as j on j.id = p.job_id
  join odc.shape as s on s.id = w.shape_id
  left join odc.account as a on a.id = j.account_id
  left join odc.partition as t on t.id = j.partition_ids[1]
  left join odc.eta as e on e.job_id = p.job_id;
