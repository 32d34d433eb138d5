-- odc.refresh_eta: learn from what ended and started, foresee the starts of the first pending jobs, and keep both.
-- Off the pass's path, on a connection of its own. A prediction is kept for later scoring when it is the job's first,
-- when the job has become protected, and when p50 has moved by more than 5 minutes and 10 % of what was to wait.
-- Returns    jobs foreseen, predictions kept, predictions scored
-- Locks      term for share; eta, prediction, run_time, eta_class, eta_day rows
-- Raises     OD020 LeadershipLost
create or replace function odc.refresh_eta(
    p_term bigint, p_now timestamptz, p_limit integer default 1000, out foreseen integer, out kept integer, out scored integer)
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _hold_term(p_term);
    perform _fold_run_times();
    scored := _score_predictions(p_now);
    with told as materialized (
        select * from _forecast(p_now, p_limit, null)
         union all
        select * from _forecast_lacking(p_now)
    ), gone as (
        delete from eta as e where not exists (select from told as t where t.job_id = e.job_id)
    ), written as (
        insert into eta as e (job_id, at, place, p10, p50, p90, exact)
        select t.job_id, p_now, t.place, t.p10, t.p50, t.p90, t.exact from told as t order by t.job_id
            on conflict (job_id) do update
               set at = excluded.at, place = excluded.place, p10 = excluded.p10, p50 = excluded.p50, p90 = excluded.p90,
                   exact = excluded.exact
    ), last as (
        select p.job_id, p.attempt, bool_or(p.cause = 'exact' or p.exact) as exact,
               (array_agg(p.p50 order by p.id desc))[1] as p50, (array_agg(p.at order by p.id desc))[1] as at
          from prediction as p where p.open
         group by p.job_id, p.attempt
    ), news as (
        insert into prediction (job_id, attempt, cause, at, plan_s, p10, p50, p90, exact)
        select t.job_id, q.attempt,
               case when l.job_id is null then 'submit' when t.exact and not l.exact then 'exact' else 'moved' end,
               p_now, t.plan_s, t.p10, t.p50, t.p90, t.exact
          from told as t
          join pending as q on q.job_id = t.job_id
          left join last as l on l.job_id = t.job_id and l.attempt = q.attempt
         where t.p50 is not null
           and (l.job_id is null or t.exact and not l.exact
                or greatest(t.p50 - l.p50, l.p50 - t.p50) > greatest(interval '5 minutes', (l.p50 - l.at) / 10))
         order by t.job_id
        returning job_id
    )
    select (select count(*) from told), (select count(*) from news) into foreseen, kept;
end;
$$;
