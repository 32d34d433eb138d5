-- odc._forecast_lacking: expected starts of jobs that lack something whose arrival is predicted: when it has arrived and
-- nodes are free. A plan with a job of the same shape gives the time of the nodes. The missing thing may come early, if
-- its holder ends early, or late.
-- Returns    as _forecast, after all places of the queue
create or replace function odc._forecast_lacking(p_now timestamptz)
returns table (place integer, job_id bigint, plan_s integer, p10 timestamptz, p50 timestamptz, p90 timestamptz, exact boolean)
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_column
declare
    v_max  constant integer := 20;      -- one plan per job
    v_away constant interval := _snapshot_time();
    v_job  record;
    v_plan record;
    v_at   timestamptz;
begin
    for v_job in
        select p.*, row_number() over (order by p.queued_at, p.job_id)::integer as n, to_jsonb(s) as shape
          from pending as p join shape as s on s.id = p.shape_id
         where p.lacks_until is not null and p.held is null and p.begun and p.dependency = 'met'
         order by p.queued_at, p.job_id
         limit v_max
    loop
        select d.* into v_plan
          from decide(p_now, jsonb_build_array(v_job.shape || jsonb_build_object(
                   'time_limit_s', v_job.time_limit_s, 'uid', v_job.uid, 'nice', v_job.nice,
                   'account_id', v_job.account_id, 'qos_id', v_job.qos_id)), 1000000) as d;
        v_at := case when -1 = any (v_plan.start_jobs) then p_now else v_plan.head_ats[array_position(v_plan.head_jobs, -1)] end;
        continue when v_at is null;
        place := 1000000 + v_job.n;
        job_id := v_job.job_id;
        p10 := greatest(v_at, least(v_job.lacks_until, p_now + v_away));
        p50 := greatest(v_at, v_job.lacks_until);
        p90 := p50 + 2 * v_away;
        plan_s := least(2147483647, extract(epoch from p50 - p_now))::integer;
        exact := false;
        return next;
    end loop;
end;
$$;
