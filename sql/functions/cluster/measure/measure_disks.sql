-- odc.measure_disks: disks, their snapshots, and orphans in the cloud; see sql/functions/cluster/measure/README.md for
-- the form.
create or replace function odc.measure_disks(p_now timestamptz)
returns table (metric text, labels text[], value double precision)
language sql stable as $$
    with disk as materialized (
        -- The same states as in odc._render_disks.
        select d.id, d.holder,
               case when d.deleted_at is not null then 'deleted' when d.trouble is not null then 'trouble'
                    when v.over_at is not null or d.holder is null and s.disk_id is not null then 'backing-up'
                    when d.holder is not null then 'in-use' else 'available' end as state
          from odc.disk as d
          left join odc.disk_volume as v on v.disk_id = d.id and v.state not in ('deleting', 'deleted', 'lost')
          left join (select distinct l.disk_id from odc.disk_snapshot as l where l.state in ('wanted', 'pending')) as s on s.disk_id = d.id
    ), last_volume as (
        select distinct on (v.disk_id) v.id, v.disk_id, v.over_at
          from odc.disk_volume as v where v.published_at is not null order by v.disk_id, v.id desc
    )
    select 'odcd_disks', array[s], count(d.id)::double precision
      from unnest('{available,in-use,backing-up,trouble,deleted}'::text[]) as s
      left join disk as d on d.state = s
     group by s
     union all
    select 'odcd_disk_lock_stale_seconds', '{}', coalesce(greatest(0, date_part('epoch', p_now - min(j.ended_at))), 0)
      from disk as d join odc.job as j on j.id = d.holder and j.state is not null
     union all
    select 'odcd_snapshots', array[s], count(l.id)::double precision
      from unnest('{wanted,pending,completed,error,deleting}'::text[]) as s
      left join odc.disk_snapshot as l on l.state = s
     group by s
     union all
    select 'odcd_snapshot_pending_seconds', '{}', coalesce(greatest(0, date_part('epoch', p_now - min(l.asked_at))), 0)
      from odc.disk_snapshot as l where l.state in ('wanted', 'pending')
     union all
    select 'odcd_disk_unsaved_seconds', '{}', coalesce(greatest(0, date_part('epoch', p_now - min(v.over_at))), 0)
      from last_volume as v
      join disk as d on d.id = v.disk_id and d.holder is null and d.state <> 'deleted'
     where not exists (select from odc.disk_snapshot as l where l.volume_id = v.id and l.state in ('completed', 'deleting', 'deleted'))
     union all
    select 'odcd_orphans', array[k.kind],
           (select count(distinct coalesce(e.detail ->> 'name', e.id::text))
              from (select f.* from odc.event as f order by f.id desc limit 1000) as e
             where k.kind = 'pod' and e.kind = 'orphan' and e.at > p_now - interval '5 minutes')
           + (select count(*) from odc.disk_stray as t where t.kind = k.kind)
      from (values ('pod'), ('volume'), ('snapshot')) as k (kind)
$$;
