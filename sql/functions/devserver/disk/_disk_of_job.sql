-- odc._disk_of_job: the state of a reservation's disk.
-- Arguments  p_disk_id  null: it has none
--            p_waits    it is pending
--            p_lacks    as in pending
-- Returns    busy: it waits for the disk; free: it has not taken it yet; creating, in-use, backing-up; saved; unused:
--            nothing was written on it; trouble: an operator must check it; lost
create or replace function odc._disk_of_job(p_job_id bigint, p_disk_id bigint, p_waits boolean, p_lacks text)
returns text
language sql stable as $$
    select case when p_disk_id is null then null
                when p_waits then case when d.trouble is not null then 'trouble' when p_lacks in ('disk', 'snapshot') then 'busy' else 'free' end
                when v.id is null then 'unused'
                when v.state in ('deleting', 'deleted')
                then case when exists (select from odc.disk_snapshot as s where s.volume_id = v.id) then 'saved' else 'unused' end
                when d.trouble is not null then 'trouble'
                when v.state = 'lost' then 'lost'
                when v.over_at is not null then 'backing-up'
                when v.published_at is null then 'creating' else 'in-use' end
      from (select 1) as one
      left join odc.disk as d on d.id = p_disk_id
      left join lateral (
           select m.* from odc.disk_volume as m
            where m.job_id = p_job_id and not p_waits
            order by m.attempt desc limit 1) as v on p_disk_id is not null
$$;
