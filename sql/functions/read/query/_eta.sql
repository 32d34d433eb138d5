-- odc._eta: when a job is expected to start, as the API returns it. No value is in the past, or after the planned
-- start, which may have moved since the prediction was made.
-- Arguments  p_p10, p_p50, p_p90  from odc.eta, as of the last refresh, or null
--            p_planned_at         the planned start, or null
create or replace function odc._eta(
    p_p10 timestamptz, p_p50 timestamptz, p_p90 timestamptz, p_planned_at timestamptz, p_now timestamptz)
returns json
language sql stable as $$
    select case when p_p50 is not null or p_planned_at is not null then
        json_build_object(
            'p10', odc._iso(case when p_p10 is not null then greatest(p_now, least(p_p10, p_planned_at)) end),
            'p50', odc._iso(greatest(p_now, least(p_p50, p_planned_at))),
            'p90', odc._iso(case when p_p90 is not null then greatest(p_now, least(p_p90, p_planned_at)) end),
            'exact', p_planned_at is not null) end
$$;
