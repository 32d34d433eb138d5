-- Dev servers that are pending, in preparation or active.
create or replace view odc_report.dev_server as
select v.job_id, j.user_name as "user", a.name as account, j.name, q.state::text as state, q.gpus, q.gpu_type, q.node_count,
       j.submitted_at, q.started_at, v.launched_at, v.expires_at, v.extensions, v.disk_id,
       p.phase, p.at as phase_since
  from odc.reservation as v
  join odc.job as j on j.id = v.job_id and j.state is null
  join odc.queue as q on q.id = v.job_id
  left join odc.account as a on a.id = j.account_id
  left join lateral (select b.phase, b.at from odc.box_phase as b
                      where b.job_id = v.job_id and v.launched_at is null order by b.at desc, b.rank limit 1) as p on true;
