-- odc._need_verdicts: what pending jobs that need these disks, and these jobs, lack: the image comes before the disk.
-- Returns    as _disk_verdicts
create or replace function odc._need_verdicts(p_disk_ids bigint[], p_job_ids bigint[], p_now timestamptz)
returns table (job_id bigint, lacks text, until timestamptz)
language sql stable as $$
    with disk as materialized (
        select n.job_id, n.lacks, n.until
          from odc._disk_verdicts(p_disk_ids || array(
                   select v.disk_id from odc.reservation as v where v.job_id = any (p_job_ids) and v.disk_id is not null), p_now) as n
    )
    select v.job_id, case when b.id is not null then 'image' else n.lacks end,
           case when b.id is null then n.until
                when b.state <> 'failed' then greatest(p_now, coalesce(b.started_at, p_now) + odc._build_span()) end
      from (select d.job_id from disk as d union select unnest(p_job_ids)) as j
      join odc.reservation as v on v.job_id = j.job_id
      left join disk as n on n.job_id = j.job_id
      left join odc.build as b on b.id = v.build_id and b.state <> 'completed'
$$;
