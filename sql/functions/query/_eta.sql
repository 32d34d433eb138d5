-- odc._eta: when a job is expected to start. A planned start is exact as far as time limits tell;
-- a job without one has no expectation yet.
-- Arguments  p_planned_at  the planned start, or null
create or replace function odc._eta(p_planned_at timestamptz)
returns json
language sql stable as $$
    select case when p_planned_at is not null then
        json_build_object('p10', null, 'p50', odc._iso(p_planned_at), 'p90', null, 'exact', true) end
$$;
