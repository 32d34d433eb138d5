-- odc._remove_cron_entries: remove entries, and cancel their jobs that are still pending.
-- Locks      the caller holds the turn; cron_entry; pending, job
create or replace function odc._remove_cron_entries(p_uid integer, p_ids bigint[], p_actor text, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_jobs bigint[];
begin
    with gone as (
        delete from cron_entry where uid = p_uid and id = any (p_ids) returning last_job_id
    )
    select array_agg(p.job_id order by p.job_id) into v_jobs
      from gone as g join pending as p on p.job_id = g.last_job_id;
    if v_jobs is not null then
        perform _end_pending(v_jobs, null, null, 'CANCELLED', p_actor, p_now);
    end if;
end;
$$;
