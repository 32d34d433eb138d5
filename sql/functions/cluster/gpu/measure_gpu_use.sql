-- odc.measure_gpu_use: the gauges of this folder's tables.
-- Returns    one row per series; labels: their values
create or replace function odc.measure_gpu_use(p_now timestamptz)
returns table (metric text, labels text[], value double precision)
language sql stable as $$
    with idle as materialized (
        select i.*, j.kind, j.user_name,
               (select min(n.gpu_type) from odc.allocation as a join odc.node as n on n.id = a.node_id where a.job_id = i.job_id) as gpu_type
          from odc._idle_jobs(p_now) as i
          join odc.job as j on j.id = i.job_id
    )
    select 'odcd_gpus_held_idle', array[t.gpu_type], coalesce(sum(i.idle_gpus), 0)::double precision
      from (select distinct n.gpu_type from odc.node as n where n.gpus > 0) as t
      left join idle as i on i.gpu_type = t.gpu_type
     group by t.gpu_type
     union all
    select 'odcd_jobs_held_idle', array[k.kind::text], count(i.job_id)
      from unnest(enum_range(null::odc.job_kind)) as k (kind)
      left join idle as i on i.kind = k.kind
     group by k.kind
     union all
    select 'odcd_reservation_idle_seconds', array[i.user_name],
           max(extract(epoch from p_now - i.idle_since))::double precision
      from idle as i
     where i.kind = 'reservation'
     group by i.user_name
     union all
    select m.metric, '{}'::text[], m.value
      from (select count(*)::double precision as owed, coalesce(greatest(0, extract(epoch from p_now - min(u.ended_at))), 0)::double precision as oldest_s
              from odc.gpu_use as u where u.stored_at is null and u.ended_at is not null) as d
     cross join lateral (values ('odcd_gpu_use_pending', d.owed), ('odcd_gpu_use_pending_seconds', d.oldest_s)) as m (metric, value)
$$;
