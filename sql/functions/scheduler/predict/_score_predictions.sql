-- odc._score_predictions: compare predictions with the actual starts, for jobs that have started or left the queue.
-- Sums go to eta_day. Outcomes of predictions made at submission go to eta_class, in the order of the starts. An
-- outcome is left out if its prediction was made within a minute of the newest one there, because a burst of equal jobs
-- is one experience. It is also left out if the job was held, or waited for another job, after the prediction. Classes
-- keep the last 200.
-- Open predictions are found by index however small the table was when the plan was made: it only grows.
-- Locks      prediction, eta_class, eta_day rows
create or replace function odc._score_predictions(p_now timestamptz)
returns integer
language plpgsql volatile set search_path = odc, pg_temp set enable_seqscan = off as $$
declare
    v_thin constant interval := '60 seconds';
    v_keep constant integer := 200;
    v_scored integer := 0;
    v_prediction record;
begin
    for v_prediction in
        with due as (
            -- No longer waiting for that start; of an array, any task may have started.
            select p.job_id, p.id, p.attempt, p.at, q.job_id is not null as array_waits
              from prediction as p
              left join pending as q on q.job_id = p.job_id and q.attempt = p.attempt
             where p.open and (q.job_id is null or q.tasks is not null)
        ), outcome as materialized (
            select d.job_id, d.id, s.started_at, s.eligible_at
              from due as d
              left join lateral (
                    select z.started_at, z.eligible_at
                      from (select r.started_at, r.eligible_at from running as r
                             where r.job_id = d.job_id and r.attempt = d.attempt
                             union all
                            select a.started_at, j.eligible_at from attempt as a join job as j on j.id = a.job_id
                             where a.job_id = d.job_id and a.attempt = d.attempt
                             union all
                            select r.started_at, r.eligible_at from running as r
                             where r.array_job_id = d.job_id and r.started_at >= d.at
                             union all
                            select j.started_at, j.eligible_at from job as j
                             where j.array_job_id = d.job_id and j.started_at >= d.at) as z
                     order by z.started_at
                     limit 1) as s on true
             where s.started_at is not null or not d.array_waits
        ), scored as (
            update prediction as p
               set open = false, started_at = o.started_at
              from outcome as o
             where p.job_id = o.job_id and p.id = o.id
            returning p.id, p.cause, p.at, p.plan_s, p.p10, p.p50, p.p90, p.started_at, o.eligible_at
        ), start as materialized (
            select s.*, extract(epoch from s.p50 - s.started_at)::bigint as error_s
              from scored as s where s.started_at is not null
        ), day as (
            insert into eta_day as d (day, cause, scored, inside, early, late, abs_error_s, error_s, width_s)
            select (s.started_at at time zone 'UTC')::date, s.cause, count(*),
                   count(*) filter (where s.started_at between s.p10 and s.p90),
                   count(*) filter (where s.started_at < s.p10), count(*) filter (where s.started_at > s.p90),
                   sum(abs(s.error_s)), sum(s.error_s), sum(extract(epoch from s.p90 - s.p10))::bigint
              from start as s
             group by 1, 2
             order by 1, 2
                on conflict (day, cause) do update
                   set scored = d.scored + excluded.scored, inside = d.inside + excluded.inside,
                       early = d.early + excluded.early, late = d.late + excluded.late,
                       abs_error_s = d.abs_error_s + excluded.abs_error_s, error_s = d.error_s + excluded.error_s,
                       width_s = d.width_s + excluded.width_s
        )
        select s.cause = 'submit' and coalesce(s.eligible_at <= s.at, true) as learn, _eta_class(s.plan_s) as class, s.at,
               least(1000000, (greatest(0, extract(epoch from s.started_at - s.at)) + 300) * 1000 / (s.plan_s + 300))::integer
                   as ratio
          from start as s
         order by s.started_at, s.id
    loop
        v_scored := v_scored + 1;
        continue when not v_prediction.learn;
        insert into eta_class as c (class, ratios, sorted, last_at)
        select k.class, array[v_prediction.ratio], array[v_prediction.ratio], v_prediction.at
          from (values (v_prediction.class), (0)) as k (class)
         order by k.class
            on conflict (class) do update
               set ratios = (v_prediction.ratio || c.ratios)[1:v_keep], last_at = v_prediction.at,
                   sorted = (select array_agg(x order by x) from unnest((v_prediction.ratio || c.ratios)[1:v_keep]) as x)
             where c.last_at <= v_prediction.at - v_thin or c.last_at >= v_prediction.at + v_thin;
    end loop;
    return v_scored;
end;
$$;
