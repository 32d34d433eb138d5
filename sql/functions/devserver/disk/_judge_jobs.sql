-- odc._judge_jobs: these jobs were added, left, or wait for something else: check again what they need.
-- Locks      the caller holds the turn; pending rows that change
create or replace function odc._judge_jobs(p_job_ids bigint[], p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_disks constant bigint[] := (select array_agg(distinct v.disk_id) from reservation as v
                                   where v.job_id = any (p_job_ids) and v.disk_id is not null);
begin
    if (v_disks is not null or exists (select from reservation as v where v.job_id = any (p_job_ids) and v.build_id is not null))
       and _judge_needs(coalesce(v_disks, '{}'), p_now, p_job_ids) then
        perform _wake();
    end if;
end;
$$;
