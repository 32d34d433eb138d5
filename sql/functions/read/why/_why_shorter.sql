-- odc._why_shorter: the largest time limit with which a pending job would start now. Limits end a job before planned starts
-- and bookings, so only those moments are tried: with decide, as a job that was submitted now, by bisection. If the job does
-- not fit beside the running jobs, one plan with the job alone finds that out.
-- Returns    seconds, a multiple of 60, and the nodes; no row: the next pass starts it, or no shorter limit would help
create or replace function odc._why_shorter(p_job_id bigint, p_now timestamptz)
returns table (time_limit_s integer, node_names text[])
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_column
declare
    v_most  constant integer := 31;     -- moments, the next ones: at most 6 plans
    v_job   pending;
    v_shape shape;
    v_tried jsonb;
    v_plan  record;
    v_start integer;
    v_limits integer[];
    v_low   integer := 0;               -- starts now with the limit at this place; 0: not known
    v_high  integer;                    -- does not start now with the limit at this place
    v_at    integer := 0;
begin
    select * into strict v_job from pending as p where p.job_id = p_job_id;
    select * into strict v_shape from shape as s where s.id = v_job.shape_id;
    v_limits := array(
        select distinct (floor(extract(epoch from m.at - p_now) / 60) * 60)::integer as s
          from (select l.planned_start_at as at from planned as l where l.job_id <> p_job_id
                 union all
                select b.starts_at from booking as b where b.state = 'PLANNED') as m
         where m.at >= p_now + interval '1 minute' and m.at < p_now + make_interval(secs => v_job.time_limit_s)
         order by s limit v_most);
    if v_limits = '{}' then
        return;
    end if;
    v_high := cardinality(v_limits) + 2;
    loop
        v_tried := jsonb_build_array(to_jsonb(v_shape) || jsonb_build_object(
            'time_limit_s', case when v_at = 0 then v_limits[1] when v_at > cardinality(v_limits) then v_job.time_limit_s
                                 else v_limits[v_at] end,
            'uid', v_job.uid, 'nice', v_job.nice, 'account_id', v_job.account_id, 'qos_id', v_job.qos_id));
        select * into v_plan from decide(
            p_now, v_tried, 1000000, p_without => array[p_job_id], p_only => case when v_at = 0 then '{}'::bigint[] end);
        v_start := array_position(v_plan.start_jobs, -1);
        if v_at = 0 then
            exit when v_start is null;
        elsif v_start is null then
            v_high := v_at;
        else
            v_low := v_at;
            node_names := _planned_nodes(v_start, null, v_plan.start_nodes, v_plan.alloc_nodes, v_plan.head_nodes);
        end if;
        exit when v_high - v_low = 1;
        v_at := (v_low + v_high) / 2;
    end loop;
    if v_low between 1 and cardinality(v_limits) then
        time_limit_s := v_limits[v_low];
        return next;
    end if;
end;
$$;
