-- The GPU usage of ended attempts, where it is known: busy_ratio is of the measured time; see odc.gpu_use.
create or replace view odc_report.efficiency as
select u.job_id, u.attempt, j.user_name as "user", a.name as account, j.name, u.gpus, u.ended_at, u.held_s, u.covered_s,
       u.gpus * u.held_s / 3600 as gpu_hours, u.busy_gpu_s / nullif(u.gpus * u.covered_s, 0) as busy_ratio, u.mem_peak_mib, u.energy_j,
       u.source, u.gave_up
  from odc.gpu_use as u
  join odc.job as j on j.id = u.job_id
  left join odc.account as a on a.id = j.account_id
 where u.stored_at is not null and u.ended_at is not null;
