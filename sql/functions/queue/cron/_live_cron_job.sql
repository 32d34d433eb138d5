-- odc._live_cron_job: the place of a job that has not ended: pending or running; null: it has ended.
create or replace function odc._live_cron_job(p_job_id bigint)
returns text
language sql stable
begin atomic
    select case when exists (select from odc.pending as p where p.job_id = p_job_id) then 'pending'
                when exists (select from odc.running as r where r.job_id = p_job_id) then 'running' end;
end;
