-- odc.refresh_eta: learn from jobs that ended and started, predict the starts of the first pending jobs, and store both.
-- It runs beside the passes, on a connection of its own. A prediction is stored for later scoring if it is the job's
-- first, if the job has become protected, or if p50 has moved by more than 5 minutes and 10 % of the predicted wait.
-- The forecast takes seconds on a large cluster, so the term is locked only afterwards, for the write of at most p_limit
-- rows. A job that left the queue in the meantime is dropped. If the term is over, everything is rolled back,
-- including what was learned before the lock.
-- Arguments  p_limit    consider this many jobs of the queue
--            p_without  leave these jobs out: their forecasts failed
--            p_skipped  leave these parts out: learn, lacking
-- Returns    number of jobs predicted, predictions stored, predictions scored
-- Locks      prediction, run_time, eta_class, eta_day rows; then, for the write, term for share, eta rows. Only the
--            leader's forecaster takes these rows, so their order does not matter
-- Raises     OD020 LeadershipLost
create or replace function odc.refresh_eta(
    p_term bigint, p_now timestamptz, p_limit integer default 1000, p_without bigint[] default '{}',
    p_skipped text[] default '{}', out foreseen integer, out kept integer, out scored integer)
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_told record;
begin
    if not exists (select from term as t where t.term = p_term) then
        perform _hold_term(p_term);
    end if;
    scored := 0;
    if 'learn' <> all (p_skipped) then
        perform _fold_run_times();
        scored := _score_predictions(p_now);
    end if;
    with predicted as materialized (
        select * from _forecast(p_now, p_limit, null, p_without)
         union all
        select l.* from _forecast_lacking(p_now) as l where 'lacking' <> all (p_skipped) and l.job_id <> all (p_without)
    ), last as (
        select p.job_id, p.attempt, bool_or(p.cause = 'exact' or p.exact) as exact,
               (array_agg(p.p50 order by p.id desc))[1] as p50, (array_agg(p.at order by p.id desc))[1] as at
          from prediction as p where p.open
         group by p.job_id, p.attempt
    ), judged as (
        select t.*, q.attempt,
               case when t.p50 is null then null
                    when l.job_id is null then 'submit'
                    when t.exact and not l.exact then 'exact'
                    when greatest(t.p50 - l.p50, l.p50 - t.p50) > greatest(interval '5 minutes', (l.p50 - l.at) / 10)
                         then 'moved' end as cause
          from predicted as t
          join pending as q on q.job_id = t.job_id
          left join last as l on l.job_id = t.job_id and l.attempt = q.attempt
    )
    select array_agg(j.job_id) as job_ids, array_agg(j.attempt) as attempts, array_agg(j.place) as places,
           array_agg(j.plan_s) as plans_s, array_agg(j.p10) as p10s, array_agg(j.p50) as p50s, array_agg(j.p90) as p90s,
           array_agg(j.exact) as exacts, array_agg(j.cause) as causes
      into v_told from judged as j;

    perform _hold_term(p_term);
    with predicted as materialized (
        select u.*
          from unnest(v_told.job_ids, v_told.attempts, v_told.places, v_told.plans_s, v_told.p10s, v_told.p50s, v_told.p90s,
                      v_told.exacts, v_told.causes)
               as u (job_id, attempt, place, plan_s, p10, p50, p90, exact, cause)
         cross join lateral (select from pending as x where x.job_id = u.job_id and x.attempt = u.attempt offset 0) as q
    ), gone as (
        delete from eta as e where not exists (select from predicted as t where t.job_id = e.job_id)
    ), written as (
        insert into eta as e (job_id, at, place, p10, p50, p90, exact)
        select t.job_id, p_now, t.place, t.p10, t.p50, t.p90, t.exact from predicted as t order by t.job_id
            on conflict (job_id) do update
               set at = excluded.at, place = excluded.place, p10 = excluded.p10, p50 = excluded.p50, p90 = excluded.p90,
                   exact = excluded.exact
    ), news as (
        insert into prediction (job_id, attempt, cause, at, plan_s, p10, p50, p90, exact)
        select t.job_id, t.attempt, t.cause, p_now, t.plan_s, t.p10, t.p50, t.p90, t.exact
          from predicted as t where t.cause is not null
         order by t.job_id
        returning job_id
    )
    select (select count(*) from predicted), (select count(*) from news) into foreseen, kept;
end;
$$;
