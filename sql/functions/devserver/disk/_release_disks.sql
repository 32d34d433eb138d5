-- odc._release_disks: attempts are over: the data on their disks is saved, however they ended.
-- A volume that pods could never mount has no data; a volume that the cloud has not confirmed waits for the answer.
-- Locks      the caller holds the turn; disk_volume, disk
create or replace function odc._release_disks(p_job_ids bigint[], p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_disks bigint[];
begin
    with over as (
        update disk_volume as v
           set over_at = p_now, state_at = p_now, due_at = p_now, tries = 0, trouble = null,
               end_kind = case when r.intent = 'cancel' then 'cancellation' else 'shutdown' end,
               state = case v.state when 'published' then 'releasing' when 'available' then 'deleting' else v.state end
          from running as r
         where v.job_id = any (p_job_ids) and r.job_id = v.job_id and v.attempt = r.attempt and v.over_at is null
           and v.state in ('creating', 'available', 'published')
        returning v.disk_id, v.job_id, v.state
    ), free as (
        update disk as d set holder = null
          from over as o
         where o.state = 'deleting' and d.id = o.disk_id and d.holder = o.job_id
    )
    select array_agg(disk_id) into v_disks from over;
    if v_disks is not null then
        perform _judge_needs(v_disks, p_now);
    end if;
end;
$$;
