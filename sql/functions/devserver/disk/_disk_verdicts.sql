-- odc._disk_verdicts: what pending jobs that need these disks lack.
-- If several need the same disk, one of them gets it next: the first in the queue that no condition of its own holds
-- back.
-- Returns    per job: lacks, null if its disk is available; until: when it is expected to be, null: not known
create or replace function odc._disk_verdicts(p_disk_ids bigint[], p_now timestamptz)
returns table (job_id bigint, lacks text, until timestamptz)
language sql stable as $$
    select w.job_id,
           case when d.trouble is not null or d.holder is not null then 'disk'
                when s.asked_at is not null then 'snapshot'
                when w.place > 1 then 'disk' end,
           case when d.trouble is not null or w.place > 1 then null
                -- When the holder has ended, only the snapshot is left to do.
                when d.holder is not null
                then nullif(greatest(p_now, case when r.intent is null then r.ends_at end) + odc._snapshot_time(), 'infinity')
                when s.asked_at is not null then greatest(p_now, s.asked_at + odc._snapshot_time()) end
      from (select p.job_id, v.disk_id,
                   row_number() over (partition by v.disk_id
                                      order by p.held is null and p.begun and odc._lacks_image(v.build_id) is not true desc, p.queued_at, p.job_id) as place
              from odc.reservation as v
              join odc.pending as p on p.job_id = v.job_id
             where v.disk_id = any (p_disk_ids)) as w
      join odc.disk as d on d.id = w.disk_id
      left join odc.running as r on r.job_id = d.holder
      left join lateral (
           select n.asked_at from odc.disk_snapshot as n
            where n.disk_id = d.id and n.state in ('wanted', 'pending') order by n.id desc limit 1) as s on true
$$;
