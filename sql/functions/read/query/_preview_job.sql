-- odc._preview_job: where and when one job would start if it alone were submitted now, and which jobs it would delay.
-- Arguments  p_shape ... p_time_limit_s  the job, as _resolve_preview returns it
--            p_base_heads, p_base_head_ats, p_base_starts  of the plan without it, as decide returns them
-- Returns    as one element of preview_jobs
create or replace function odc._preview_job(
    p_shape odc.shape, p_uid integer, p_account_id integer, p_qos_id integer, p_nice integer, p_time_limit_s integer,
    p_base_heads bigint[], p_base_head_ats timestamptz[], p_base_starts bigint[], p_now timestamptz)
returns jsonb
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_depth    constant integer := 100;   -- the plan depth used to find a start for a job that no pass would protect
    v_what_if  constant jsonb := jsonb_build_array(to_jsonb(p_shape) || jsonb_build_object(
        'time_limit_s', p_time_limit_s, 'uid', p_uid, 'nice', p_nice, 'account_id', p_account_id, 'qos_id', p_qos_id));
    v_plan     record;
    v_delays   jsonb;
    v_victims  jsonb := '[]';
    v_promised boolean;
    v_limit    text;
    v_idle     text;                -- why no node could ever take it
    v_start    integer;
    v_head     integer;
begin
    select d.* into v_plan from decide(p_now, v_what_if, 1000000) as d;
    select coalesce(jsonb_agg(jsonb_build_object(
               'job_id', b.id, 'from', _iso(b.at), 'to', _iso(w.at)) order by b.at, b.id), '[]')
      into v_delays
      from (select * from unnest(p_base_heads, p_base_head_ats) as h (id, at)
             union all select distinct s, p_now from unnest(p_base_starts) as s) as b
      left join (select * from unnest(v_plan.head_jobs, v_plan.head_ats) as h (id, at)
             union all select distinct s, p_now from unnest(v_plan.start_jobs) as s) as w on w.id = b.id
     where b.at is not null and (w.at is null or w.at > b.at);
    if -1 = any (v_plan.victim_for) then
        v_victims := _render_victims(p_now, v_plan.victim_jobs, v_plan.victim_for, v_plan.victim_costs, -1);
    end if;
    v_limit := case when -1 = any (v_plan.start_jobs) is not true
                    then coalesce(v_plan.limited_reasons[array_position(v_plan.limited_shapes, -1)],
                                  v_plan.head_limits[array_position(v_plan.head_jobs, -1)]) end;
    v_promised := coalesce(-1 = any (v_plan.start_jobs), false)
                  or v_plan.head_ats[array_position(v_plan.head_jobs, -1)] is not null;
    if not v_promised and -1 = any (v_plan.head_jobs) is not true then
        select d.* into v_plan from decide(p_now, v_what_if, 1000000, null, v_depth) as d;
    end if;
    select s.idle_reasons[array_position(s.ids, -1)] into v_idle
      from _plan_nodes(null) as n cross join lateral _plan_shapes(n.group_ids, '{}', v_what_if, null) as s;
    v_start := array_position(v_plan.start_jobs, -1);
    v_head := array_position(v_plan.head_jobs, -1);
    return jsonb_build_object(
        'node_count', coalesce(v_plan.start_nodes[v_start], p_shape.node_count), 'gpus_per_node', p_shape.gpus_per_node,
        'gpu_type', p_shape.gpu_type, 'cpus_per_node', p_shape.cpus_per_node, 'mem_per_node_mib', p_shape.mem_per_node_mib,
        'components', case when p_shape.components is not null then _component_rows(p_shape.components, null) end,
        'time_limit_s', nullif(p_time_limit_s, 2147483647),
        'start_at', _iso(case when v_start is not null then p_now else v_plan.head_ats[v_head] end),
        'node_names', _planned_nodes(v_start, v_head, v_plan.start_nodes, v_plan.alloc_nodes, v_plan.head_nodes),
        'promised', v_promised,
        'limit', v_limit,
        'reason', case when v_start is not null or v_plan.head_ats[v_head] is not null then null
                       else coalesce(v_limit, v_idle, case when v_head is null then 'Priority'
                                                            when p_shape.switches is not null or p_shape.components is not null then 'Resources'
                                                            else 'ReqNodeNotAvail' end) end,
        'delays', v_delays,
        'victims', v_victims, 'refused', null);
end;
$$;
