-- odc.preview_jobs: where and when each of these jobs would start if it alone were submitted now, and which jobs it would
-- delay. Writes nothing: decide plans the queue with and without it, to the same depth as a pass. So the delays cover
-- every start that a pass promises.
-- Arguments  p_asks  a JSON array of jobs as odc.submit_jobs takes them, with uid, user and operator of the caller
-- Returns    a JSON array, per job {node_count, gpus_per_node, gpu_type, cpus_per_node, mem_per_node_mib, time_limit_s,
--            start_at, promised, node_names, limit, reason, delays: [{job_id, from, to (null: its planned start is lost)}],
--            victims: [{job_id, user, qos, mode, ran_s, grace_s, lost_gpu_s or lost_cpu_s, text}] that it would preempt,
--            refused: null | {code, message, hint}}; start_at is p_now if it starts at once; null if it is not among the
--            first planned starts, no end is in sight, or a limit (Slurm's name of it) applies: reason is Slurm's,
--            as the queue would show it. promised: a pass would protect that start; beyond the plan depth none is
--            protected. The job's own conditions (hold, dependency, begin time) are ignored
create or replace function odc.preview_jobs(p_asks jsonb, p_now timestamptz)
returns text
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_depth constant integer := 100;    -- the plan depth used to find a start for a job that no pass would protect
    v_base   record;                -- the plan without it
    v_plan   record;
    v_delays jsonb;
    v_promised boolean;
    v_limit  text;
    v_idle   text;                  -- why no node could ever take it
    v_what_if jsonb;
    v_victims jsonb;
    v_ask    jsonb;
    v_where  record;
    v_shape  shape;
    v_uid integer;  v_user text;  v_account integer;  v_qos integer;
    v_start  integer;
    v_head   integer;
    v_nodes  text[];
    v_told   jsonb[] := '{}';
    v_code text;  v_message text;  v_hint text;
begin
    select d.* into v_base from decide(p_now, null, 1000000) as d;
    for v_ask in select * from jsonb_array_elements(p_asks) loop
        begin
            v_uid := coalesce((v_ask ->> 'uid')::integer, -1);
            v_user := coalesce(v_ask ->> 'user', _user_name(v_uid));
            select r.partition_ids, r.time_limit_s into v_where
              from _resolve_partitions(array(select jsonb_array_elements_text(v_ask -> 'partitions')),
                                       (v_ask ->> 'time_limit_s')::integer) as r;
            v_account := _resolve_account(v_uid, v_user, v_ask ->> 'account', v_where.partition_ids);
            v_qos := _resolve_qos(v_uid, v_user, v_account, v_where.partition_ids, v_ask ->> 'qos');
            if not coalesce((v_ask ->> 'operator')::boolean, false)
               and exists (select from booking as b where b.name = v_ask ->> 'booking' and b.state in ('PLANNED', 'ACTIVE')
                              and not _owns_booking(b, v_uid, v_account)) then
                raise exception using errcode = 'OD013',
                    message = format('booking "%s" is not for user %s and account "%s"', v_ask ->> 'booking', v_user,
                                     (select a.name from account as a where a.id = v_account)),
                    hint = 'Leave --reservation out, or ask an operator to add you.';
            end if;
            v_shape := _resolve_shape(v_ask, v_where.partition_ids);
            perform _check_limits(v_shape, v_uid, v_user, v_account, v_qos, v_where.time_limit_s);
            if v_shape.booking_id is not null then
                v_where.time_limit_s := least(
                    v_where.time_limit_s, (select _longest_run_s(b, p_now) from booking as b where b.id = v_shape.booking_id));
            end if;
        exception when others then
            get stacked diagnostics v_code = returned_sqlstate, v_message = message_text, v_hint = pg_exception_hint;
            if v_code not like 'OD%' then
                raise;
            end if;
            v_told := v_told || jsonb_build_object('refused', jsonb_build_object(
                'code', v_code, 'message', v_message, 'hint', v_hint));
            continue;
        end;
        v_what_if := jsonb_build_array(to_jsonb(v_shape) || jsonb_build_object(
                         'time_limit_s', v_where.time_limit_s, 'uid', v_uid,
                         'nice', (v_ask ->> 'nice')::integer, 'account_id', v_account, 'qos_id', v_qos));
        select d.* into v_plan from decide(p_now, v_what_if, 1000000) as d;
        select coalesce(jsonb_agg(jsonb_build_object(
                   'job_id', b.id, 'from', _iso(b.at), 'to', _iso(w.at)) order by b.at, b.id), '[]')
          into v_delays
          from (select * from unnest(v_base.head_jobs, v_base.head_ats) as h (id, at)
                 union all select distinct s, p_now from unnest(v_base.start_jobs) as s) as b
          left join (select * from unnest(v_plan.head_jobs, v_plan.head_ats) as h (id, at)
                 union all select distinct s, p_now from unnest(v_plan.start_jobs) as s) as w on w.id = b.id
         where b.at is not null and (w.at is null or w.at > b.at);
        v_victims := '[]';
        if -1 = any (v_plan.victim_for) then
            v_victims := _render_victims(p_now, v_plan.victim_jobs, v_plan.victim_for, v_plan.victim_costs, -1);
        end if;
        v_limit := case when -1 = any (v_plan.start_jobs) is not true
                        then v_plan.limited_reasons[array_position(v_plan.limited_shapes, -1)] end;
        v_promised := coalesce(-1 = any (v_plan.start_jobs), false)
                      or v_plan.head_ats[array_position(v_plan.head_jobs, -1)] is not null;
        if not v_promised and v_limit is null and -1 = any (v_plan.head_jobs) is not true then
            select d.* into v_plan from decide(p_now, v_what_if, 1000000, null, v_depth) as d;
        end if;
        select s.idle_reasons[array_position(s.ids, -1)] into v_idle
          from _plan_nodes(null) as n cross join lateral _plan_shapes(n.group_ids, '{}', v_what_if, null) as s;
        v_start := array_position(v_plan.start_jobs, -1);
        v_head := array_position(v_plan.head_jobs, -1);
        v_nodes := '{}';
        if v_start is not null then
            select array_agg(n.name order by length(n.name), n.name) into v_nodes
              from (select coalesce(sum(c), 0) as n from unnest(v_plan.start_nodes[:v_start - 1]) as c) as before
              join node as n
                on n.id = any (v_plan.alloc_nodes[before.n + 1 : before.n + v_plan.start_nodes[v_start]]);
        elsif v_head is not null then
            select coalesce(array_agg(n.name order by length(n.name), n.name), '{}') into v_nodes
              from node as n where n.id = any (string_to_array(v_plan.head_nodes[v_head], ',')::integer[]);
        end if;
        v_told := v_told || jsonb_build_object(
            'node_count', coalesce(v_plan.start_nodes[v_start], v_shape.node_count), 'gpus_per_node', v_shape.gpus_per_node, 'gpu_type', v_shape.gpu_type,
            'cpus_per_node', v_shape.cpus_per_node, 'mem_per_node_mib', v_shape.mem_per_node_mib,
            'time_limit_s', nullif(v_where.time_limit_s, 2147483647),
            'start_at', _iso(case when v_start is not null then p_now else v_plan.head_ats[v_head] end),
            'node_names', v_nodes,
            'promised', v_promised,
            'limit', v_limit,
            'reason', case when v_start is not null or v_plan.head_ats[v_head] is not null then null
                           else coalesce(v_limit, v_idle, case when v_head is null then 'Priority'
                                                                when v_shape.switches is not null then 'Resources'
                                                                else 'ReqNodeNotAvail' end) end,
            'delays', v_delays,
            'victims', v_victims, 'refused', null);
    end loop;
    return to_jsonb(v_told)::text;
end;
$$;
