-- odc.forecast: when the first jobs of the queue are expected to start, in queue order. Reads only.
-- Returns    p10, p50, p90: in 10, 50, 90 % of such cases the start is earlier than this (null: not in sight);
--            exact: the job is protected, so it starts at its planned start at the latest
create or replace function odc.forecast(p_now timestamptz, p_limit integer default 1000)
returns table (job_id bigint, p10 timestamptz, p50 timestamptz, p90 timestamptz, exact boolean)
language sql stable set search_path = odc, pg_temp as $$
    select f.job_id, f.p10, f.p50, f.p90, f.exact from _forecast(p_now, p_limit, null) as f order by f.place
$$;
