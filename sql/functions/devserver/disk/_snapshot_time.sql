-- odc._snapshot_time: how long a snapshot takes to complete: the median of the last 20; before there are any, 5 minutes.
create or replace function odc._snapshot_time()
returns interval
language sql stable as $$
    select coalesce(percentile_disc(0.5) within group (order by l.took), interval '5 minutes')
      from (select s.completed_at - s.asked_at as took
              from odc.disk_snapshot as s where s.completed_at is not null and not s.adopted order by s.id desc limit 20) as l
$$;
