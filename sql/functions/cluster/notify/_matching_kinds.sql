-- odc._matching_kinds: the notifications, of those that a user asked for, that follow from an event of a job.
-- As in Slurm, a job that failed is reported once: as failed, or as ended if only ends were asked for.
-- Arguments  p_event  as in _notify_jobs
--            p_kinds  what the user asked for
--            p_state  of the ended job
--            p_array  the array that is reported as a whole; null: the job itself
create or replace function odc._matching_kinds(p_event text, p_kinds text[], p_state job_state, p_array bigint)
returns setof text
language sql stable as $$
    select p_event where p_event <> 'end' and p_event = any (p_kinds)
     union all
    select case when 'fail' = any (p_kinds) and f.failed then 'fail' else 'end' end
      from (select case when p_array is null then p_state in ('FAILED', 'TIMEOUT', 'OUT_OF_MEMORY', 'NODE_FAIL', 'DEADLINE')
                        else exists (select from odc.job as j
                                      where j.array_job_id = p_array
                                        and j.state in ('FAILED', 'TIMEOUT', 'OUT_OF_MEMORY', 'NODE_FAIL', 'DEADLINE')) end as failed) as f
     where p_event = 'end' and ('end' = any (p_kinds) or 'fail' = any (p_kinds) and f.failed)
     union all
    select 'time_limit' where p_event = 'end' and p_array is null and p_state = 'TIMEOUT' and 'time_limit' = any (p_kinds)
$$;
