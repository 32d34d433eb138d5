-- odc.ready_jobs: the oldest and the newest job that passes consider; null: there is none.
create or replace function odc.ready_jobs(out oldest bigint, out newest bigint)
language sql stable as $$
    select min(p.job_id), max(p.job_id) from odc.pending as p where p.ready
$$;
