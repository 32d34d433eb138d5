-- odc._why_lacking: what a pending job lacks, as a cause of `why`.
-- Arguments  p_lacks  as in pending
create or replace function odc._why_lacking(p_job_id bigint, p_lacks text)
returns table (cause text, text text, job_id bigint)
language sql stable as $$
    select 'disk',
           case when d.trouble is not null then format('disk "%s" cannot be used: %s', d.name, d.trouble)
                when d.holder = p_job_id
                then format('disk "%s" is being saved after attempt %s', d.name, v.attempt) || coalesce(': ' || v.trouble, '')
                when d.holder is not null and v.over_at is not null
                then format('disk "%s" is being saved after reservation %s', d.name, d.holder) || coalesce(': ' || v.trouble, '')
                when d.holder is not null then format('disk "%s" is in use by reservation %s', d.name, d.holder)
                when p_lacks = 'snapshot'
                then format('the snapshot%s of disk "%s" is being created%s', coalesce(' ' || s.cloud_id, ''), d.name,
                            coalesce(': ' || s.progress || ' %', '')) || coalesce(': ' || s.trouble, '')
                else format('another reservation gets disk "%s" first', d.name) end,
           nullif(d.holder, p_job_id)
      from odc.reservation as r
      join odc.disk as d on d.id = r.disk_id
      left join odc.disk_volume as v on v.disk_id = d.id and v.state not in ('deleting', 'deleted', 'lost')
      left join lateral (
           select * from odc.disk_snapshot as n where n.disk_id = d.id and n.state in ('wanted', 'pending') order by n.id desc limit 1) as s on true
     where r.job_id = p_job_id and p_lacks in ('disk', 'snapshot')
     union all
    select 'image', odc._build_text(b.state, b.step), null
      from odc.reservation as r join odc.build as b on b.id = r.build_id
     where r.job_id = p_job_id and p_lacks = 'image'
$$;
