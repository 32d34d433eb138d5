-- The current queue: running jobs, then pending ones, with the reason in Slurm's word and the expected start.
create or replace view odc_report.queue as
select q.id as job_id, j.array_job_id, j.array_task_id, q.array_tasks, q."user", a.name as account, q.name, q.partition, q.qos,
       j.kind::text as kind, q.state::text as state, q.reason, q.gpus, q.gpu_type, q.node_count, q.submitted_at, q.started_at,
       r.ends_at, q.planned_start_at, e.p10 as eta_p10, e.p50 as eta_p50, e.p90 as eta_p90, q.time_limit_s
  from odc.queue as q
  join odc.job as j on j.id = q.id
  left join odc.account as a on a.id = j.account_id
  left join odc.running as r on r.job_id = q.id
  left join odc.eta as e on e.job_id = q.id;
