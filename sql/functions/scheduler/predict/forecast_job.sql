-- odc.forecast_job: when one pending job is expected to start, computed now. Reads only.
-- Returns    no row: the job is not pending, or may not start (held, waiting for a dependency or its begin time), or is
--            behind 10,000 others
create or replace function odc.forecast_job(p_job_id bigint, p_now timestamptz)
returns table (p10 timestamptz, p50 timestamptz, p90 timestamptz, exact boolean)
language sql stable set search_path = odc, pg_temp as $$
    select f.p10, f.p50, f.p90, f.exact from _forecast(p_now, 10000, array[p_job_id]) as f
     union all
    select f.p10, f.p50, f.p90, f.exact from _forecast_lacking(p_now) as f where f.job_id = p_job_id
$$;
