-- odc._jobs_requeued: attempts have ended and their jobs are pending again. Counts the tasks of their arrays.
-- Arguments  p_job_ids  ids of jobs that were running until now
-- Locks      the caller holds the turn; array_job; as _refresh_open_counts
create or replace function odc._jobs_requeued(p_job_ids bigint[], p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_arrays bigint[];
begin
    with back as (
        select p.array_job_id as id, count(*)::integer as n
          from unnest(p_job_ids) as b (id)
          join pending as p on p.job_id = b.id
         where p.array_job_id is not null
         group by p.array_job_id
    ), counted as (
        update array_job as a set running = a.running - b.n from back as b where a.job_id = b.id
    )
    select array_agg(id) into v_arrays from back;
    if v_arrays is not null then
        perform _refresh_open_counts(v_arrays);
    end if;
end;
$$;
