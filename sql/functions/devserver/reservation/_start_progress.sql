-- odc._start_progress: the progress of an attempt to start a reservation: that of the member furthest behind.
-- Returns    a row; none if nothing was reported. message: of that member, with its number if there are several
create or replace function odc._start_progress(p_job_id bigint, p_attempt integer, p_node_count integer)
returns table (phase text, at timestamptz, message text)
language sql stable as $$
    select n.phase, n.at,
           case when n.rank is not null and p_node_count > 1 then format('pod %s of %s: %s', n.rank + 1, p_node_count, n.message) else n.message end
      from (
          (select distinct on (b.rank) b.rank, b.phase, b.at, coalesce(b.message, replace(b.phase, '_', ' ')) as message
             from odc.box_phase as b
            where b.job_id = p_job_id and b.attempt = p_attempt
            order by b.rank, b.told_at desc, b.at desc,
                     array_position(array['scheduling', 'init', 'image_pull', 'ssh', 'gang_barrier'], b.phase) desc)
           union all
          -- Pods wait for their disk before they are scheduled.
          select null, 'disk', v.made_at,
                 format('disk "%s" is being created%s', d.name, coalesce(' from snapshot ' || s.cloud_id, '')) || coalesce(': ' || v.trouble, '')
            from odc.disk_volume as v
            join odc.disk as d on d.id = v.disk_id
            left join odc.disk_snapshot as s on s.id = v.snapshot_id
           where v.job_id = p_job_id and v.attempt = p_attempt and v.published_at is null and v.over_at is null) as n
     order by array_position(array['disk', 'scheduling', 'init', 'image_pull', 'ssh', 'gang_barrier'], n.phase), n.rank
     limit 1
$$;
