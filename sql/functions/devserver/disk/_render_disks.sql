-- odc._render_disks: disks as the JSON array of the API, by user and name, deleted ones last.
create or replace function odc._render_disks(p_ids bigint[], p_now timestamptz)
returns text
language sql stable as $$
    select coalesce(json_agg(row_to_json(x) order by x.deleted_at is not null, x.user, x.name, x.id), '[]')::text
      from (select d.id, d.name, d.user_name as "user", d.uid, d.size_gib, n.used_bytes,
                   case when d.deleted_at is not null then 'deleted' when d.trouble is not null then 'trouble'
                        when v.over_at is not null or d.holder is null and s.pending > 0 then 'backing-up'
                        when d.holder is not null then 'in-use' else 'available' end as state,
                   d.holder as reservation_id, odc._iso(d.made_at) as created_at, odc._iso(d.used_at) as last_used_at,
                   s.completed as snapshot_count, s.pending as pending_snapshot_count, s.progress as snapshot_progress,
                   odc._iso(n.completed_at) as last_snapshot_at, n.cloud_id as last_snapshot_id, v.cloud_id as volume_id, v.zone,
                   coalesce(d.trouble, v.trouble, s.trouble) as trouble,
                   odc._iso(d.deleted_at) as deleted_at, odc._iso(d.purge_at) as purge_at
              from odc.disk as d
              left join odc.disk_volume as v on v.disk_id = d.id and v.state not in ('deleting', 'deleted', 'lost')
              left join lateral (
                   select l.cloud_id, l.completed_at, l.used_bytes from odc.disk_snapshot as l
                    where l.disk_id = d.id and l.state = 'completed' order by l.id desc limit 1) as n on true
             cross join lateral (
                   select count(*) filter (where l.state = 'completed')::integer as completed,
                          count(*) filter (where l.state in ('wanted', 'pending'))::integer as pending,
                          max(l.progress) filter (where l.state = 'pending') as progress,
                          max(l.trouble) filter (where l.state in ('wanted', 'pending')) as trouble
                     from odc.disk_snapshot as l where l.disk_id = d.id) as s
             where d.id = any (p_ids)) as x
$$;
