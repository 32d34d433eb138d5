-- odc._facts_of_jobs: _job_facts of pending jobs, one after the other.
-- PostgreSQL may have counted pending when it was empty. The settings leave no plan that compares each with all pending jobs.
create or replace function odc._facts_of_jobs(p_job_ids bigint[])
returns bigint[]
language plpgsql stable set search_path = odc, pg_temp set enable_seqscan = off set enable_nestloop = off as $$
begin
    return coalesce((
        select array_agg(_job_facts(q) order by s.ord)
          from unnest(p_job_ids) with ordinality as s (job_id, ord)
          join pending as q on q.job_id = s.job_id and q.job_id = any (p_job_ids)), '{}');
end;
$$;
