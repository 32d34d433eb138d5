-- odc.predict_jobs: predict when jobs just submitted will start, and store the predictions.
-- First learns from everything that ended or started until now. One call for all jobs submitted at the same moment.
-- Arguments  p_job_ids  jobs that the pass after their submission left pending
-- Returns    as odc.forecast, for those of them that may start
-- Locks      as _fold_run_times and _score_predictions
create or replace function odc.predict_jobs(p_job_ids bigint[], p_now timestamptz)
returns table (job_id bigint, p10 timestamptz, p50 timestamptz, p90 timestamptz, exact boolean)
language plpgsql volatile set search_path = odc, pg_temp as $$
#variable_conflict use_column
begin
    perform _fold_run_times();
    perform _score_predictions(p_now);
    return query
        with predicted as materialized (
            select * from _forecast(p_now, 10000, p_job_ids)
        ), kept as (
            insert into prediction (job_id, attempt, cause, at, plan_s, p10, p50, p90, exact)
            select t.job_id, q.attempt, 'submit', p_now, t.plan_s, t.p10, t.p50, t.p90, t.exact
              from predicted as t join pending as q on q.job_id = t.job_id
             where t.p50 is not null
             order by t.job_id
        )
        select t.job_id, t.p10, t.p50, t.p90, t.exact from predicted as t order by t.place;
end;
$$;
