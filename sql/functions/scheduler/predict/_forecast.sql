-- odc._forecast: when the first jobs of the queue are expected to start, with an interval.
-- The plan with predicted run times (_forecast_starts) gives one number per job. The rest comes from past outcomes of
-- plans with a similar wait: p10 and p90 are those quantiles of (wait + 300 s) / (plan + 300 s), widened to include the
-- plan's own number; p50 goes half the way to the median. With fewer than 20 outcomes, those of all plans together are
-- used; with fewer still, 0.2, 1 and 3. A protected job is never predicted later than its planned start.
-- Source     Split conformal prediction on a moving window: Lei, G'Sell, Rinaldo, Tibshirani and Wasserman,
--            Distribution-Free Predictive Inference for Regression (2018)
-- Arguments  p_count    consider this many jobs of the queue
--            p_targets  return only these; null: all
--            p_without  leave these jobs out
-- Returns    times null: no start in sight; plan_s: the plan's wait without calibration
create or replace function odc._forecast(p_now timestamptz, p_count integer, p_targets bigint[], p_without bigint[] default '{}')
returns table (place integer, job_id bigint, plan_s integer, p10 timestamptz, p50 timestamptz, p90 timestamptz, exact boolean)
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_column
begin
    return query
    with band as (
        select c.class,
               c.sorted[greatest(1, (c.n + 1) / 10)] as r10,
               (c.sorted[(c.n + 1) / 2]::bigint + c.sorted[(c.n + 2) / 2]) / 2 as r50,
               c.sorted[least(c.n, (9 * (c.n + 1) + 9) / 10)] as r90
          from (select class, sorted, cardinality(sorted) as n from eta_class) as c
         where c.n >= 20
    ), guess as (
        select w.place::integer as place, w.job_id, w.plan_s,
               greatest(1, (w.plan_s + 300)::bigint * (1000 + coalesce(own.r50, whole.r50, 1000)) / 2000 - 300) as p50_s,
               (w.plan_s + 300)::bigint * coalesce(own.r10, whole.r10, 200) / 1000 - 300 as low_s,
               (w.plan_s + 300)::bigint * coalesce(own.r90, whole.r90, 3000) / 1000 - 300 as high_s,
               d.planned_start_at is not null as exact,
               case when d.planned_start_at is null then 4000000000
                    else greatest(1, extract(epoch from d.planned_start_at - p_now)::bigint) end as bound_s
          from _forecast_starts(p_now, p_count, p_targets, p_without) as f
         cross join lateral unnest(f.job_ids, f.waits_s) with ordinality as w (job_id, plan_s, place)
          left join planned as d on d.job_id = w.job_id
          left join band as own on own.class = _eta_class(w.plan_s)
          left join band as whole on whole.class = 0
         where p_targets is null or w.job_id = any (p_targets)
    )
    select g.place, g.job_id, g.plan_s, p_now + b.p10_s * interval '1 second', p_now + b.p50_s * interval '1 second',
           p_now + b.p90_s * interval '1 second', g.exact
      from guess as g
      left join lateral (
            select least(g.bound_s, greatest(0, least(g.low_s, g.p50_s, g.plan_s))) as p10_s,
                   least(g.bound_s, g.p50_s) as p50_s,
                   least(g.bound_s, greatest(g.high_s, g.p50_s, g.plan_s)) as p90_s
             where g.plan_s is not null) as b on true
     order by g.place;
end;
$$;
