-- odc._jobs_requeued: attempts have ended and their jobs wait again. Counts the tasks of their arrays.
-- Locks      the caller holds the turn; as _recount_arrays
create or replace function odc._jobs_requeued(p_job_ids bigint[], p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _recount_arrays(array_agg(distinct p.array_job_id))
       from unnest(p_job_ids) as b (id) join pending as p on p.job_id = b.id
      where p.array_job_id is not null
     having count(*) > 0;
end;
$$;
