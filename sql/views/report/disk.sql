-- Disks of dev servers: their owners, and how well their data is backed up. Names are left out: only owners and
-- operators may see them.
create or replace view odc_report.disk as
select d.id as disk_id, d.user_name as "user", d.size_gib,
       case when d.deleted_at is not null then 'deleted' when d.trouble is not null then 'trouble'
            when v.over_at is not null or d.holder is null and s.pending > 0 then 'backing-up'
            when d.holder is not null then 'in-use' else 'available' end as state,
       d.holder as held_by_job, d.made_at, d.used_at, v.zone, s.completed as snapshots, s.pending as snapshots_pending,
       s.last_at as last_snapshot_at, s.pending_since, d.deleted_at, d.purge_at
  from odc.disk as d
  left join odc.disk_volume as v on v.disk_id = d.id and v.state not in ('deleting', 'deleted', 'lost')
 cross join lateral (
       select count(*) filter (where l.state = 'completed')::integer as completed,
              count(*) filter (where l.state in ('wanted', 'pending'))::integer as pending,
              max(l.completed_at) filter (where l.state = 'completed') as last_at,
              min(l.asked_at) filter (where l.state in ('wanted', 'pending')) as pending_since
         from odc.disk_snapshot as l where l.disk_id = d.id) as s;
