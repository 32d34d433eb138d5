-- The queue for people: running jobs, then pending ones, each with its reason.
create or replace view odc.queue as
select id, "user", name, partition, qos, gpus, gpu_type, node_count, state, reason,
       submitted_at, started_at, planned_start_at, time_limit_s, node_names, array_tasks
  from odc.running_job
 union all
select id, "user", name, partition, qos, gpus, gpu_type, node_count, state, reason,
       submitted_at, started_at, planned_start_at, time_limit_s, node_names, array_tasks
  from odc.pending_job;
