-- Allocated GPU hours by day (UTC), for the last 92 days. For earlier days: odcctl usage.
create or replace view odc_report.gpu_hours_by_day as
select d.day, s."user", s.account, s.partition, s.gpu_type, s.kind, count(distinct s.job_id) as jobs,
       round(sum(s.gpus * extract(epoch from least(s.ended_at, d.day + interval '24 hours') - greatest(s.started_at, d.day))) / 3600, 4)
           as gpu_hours
  from odc_report.attempt as s
 cross join lateral generate_series(
           greatest(date_trunc('day', s.started_at, 'UTC'), date_trunc('day', now(), 'UTC') - interval '92 days'),
           s.ended_at, interval '24 hours') as d (day)
 where s.gpus > 0 and d.day < s.ended_at and s.ended_at > date_trunc('day', now(), 'UTC') - interval '92 days'
 group by d.day, s."user", s.account, s.partition, s.gpu_type, s.kind;
