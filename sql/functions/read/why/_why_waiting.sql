-- odc._why_waiting: what keeps a ready job from starting. It calls decide as if the jobs named so far were gone, until
-- the job starts: first as if the job were alone in the queue, which finds the running jobs in its way; then with the
-- whole queue; then with only the jobs ahead of it. A last plan with the whole queue proves the named causes. If many
-- jobs are ahead of it, they are counted, and the plan with the job alone proves that it starts without them.
-- Arguments  p_job_id  a pending job that is ready
--            p_actor   as for _booking_label
-- Returns    causes in the order in which they were found: cause, a sentence, and the applicable ones of job, limit,
--            booking, node, GPUs, until
-- The loop is one function, because each plan leaves out the jobs that the plans before it named.
create or replace function odc._why_waiting(p_job_id bigint, p_now timestamptz, p_actor jsonb default null)
returns table (cause text, text text, job_id bigint, "limit" text, booking_id integer, node text, gpus integer, until timestamptz)
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_column
declare
    v_max_steps constant integer := 12;
    v_few    constant integer := 64;    -- up to this many jobs ahead of it are examined in turn
    v_many   constant integer := 100;   -- up to this many are counted
    v_first  constant integer := 8;     -- and this many of many are named
    v_limit  boolean := false;
    v_shape  integer;
    v_only   bigint[] := array[p_job_id];   -- as if only these were pending; null: the whole queue
    v_gone   bigint[] := '{}';          -- jobs named so far
    v_before bigint[];                  -- jobs ahead of it in the last plan with the whole queue
    v_plan   record;
    v_head   integer;
    v_at     timestamptz;
    v_nodes  text[];
    v_more   bigint[];
    v_steps  integer := 0;
    v_rest   integer;                   -- jobs ahead of it that were not named
    v_has_plan boolean := false;
    v_alone  boolean := true;           -- looking for running jobs in its way
    v_long   boolean := false;          -- many jobs are ahead of it
    v_free   boolean := false;          -- alone in the queue it starts without those named
    v_starts boolean := false;          -- and with the other jobs, too
begin
    for cause, text, "limit", job_id, gpus, until in
        select 'limit', l.text, l."limit", l.job_id, l.gpus, l.until from _why_limited(p_job_id, p_now) as l
    loop
        v_limit := true;
        return next;
    end loop;
    if v_limit then
        return;
    end if;
    select p.shape_id into v_shape from pending as p where p.job_id = p_job_id;
    -- A job that the last pass protected needs no plan: its start and nodes are known.
    select l.planned_start_at, l.node_names into v_at, v_nodes
      from planned as l where l.job_id = p_job_id and l.node_names <> '{}';

    loop
        if v_steps > 0 or v_nodes is null then
            exit when v_steps = v_max_steps;
            v_has_plan := true;
            select * into v_plan from decide(p_now, null, 1000000, p_without => nullif(v_gone, '{}'), p_only => v_only);
            if p_job_id = any (v_plan.start_jobs) then
                v_free := true;
                v_starts := v_only is null;
                exit when v_starts;
                v_alone := false;  v_only := null;  v_steps := v_steps + 1;
                continue;
            end if;
            v_head := array_position(v_plan.head_jobs, p_job_id);
            v_at := v_plan.head_ats[v_head];
            v_nodes := array(select n.name from node as n
                              where n.id = any (string_to_array(v_plan.head_nodes[v_head], ',')::integer[]) order by n.id);
            if v_alone and v_at is null then
                v_nodes := _why_endless(p_job_id);
            end if;
        end if;
        v_steps := v_steps + 1;
        v_more := '{}';
        if not v_alone then
            for cause, text, "limit", job_id, until in
                select 'limit', k.text, k.limit, k.job_id, k.until
                  from _why_kept(p_job_id, v_plan.limited_shapes, v_plan.limited_limits_s, v_plan.limited_uids, v_plan.limited_accounts,
                                 v_plan.limited_qos, v_plan.limited_reasons, v_plan.limited_heads, v_plan.head_jobs, v_plan.head_ats) as k
            loop
                v_more := v_more || job_id;  node := null;  gpus := null;
                return next;
            end loop;
            "limit" := null;  v_gone := v_gone || v_more;
            continue when v_more <> '{}';
        end if;
        if v_alone then
            if v_gone = '{}' and v_steps = 1 then
                cause := 'node';  job_id := null;  node := null;  gpus := null;
                until := case when not v_has_plan then v_at end;
                select _describe_need(s, null) || case when v_head is null then '' else _describe_apart(s, v_at) end
                  into text from shape as s where s.id = v_shape;
                return next;
            end if;
            for cause, text, job_id, node, gpus, until in
                select 'running_job', r.text, r.job_id, r.node, r.gpus, r.until
                  from _why_running(p_job_id, v_nodes, v_at, v_gone, p_now) as r
            loop
                v_more := v_more || job_id;
                return next;
            end loop;
            v_gone := v_gone || v_more;
            if v_more = '{}' and v_has_plan then
                -- No end of a job would help: nodes or bookings are in its way, or jobs that would get there before it.
                exit when v_at is null;
                v_alone := false;  v_only := null;
            end if;
            continue;
        end if;

        if v_only is null then
            v_before := _why_before(p_job_id, p_now, v_gone, v_many + v_first);
            v_long := cardinality(v_before) > v_few;
        end if;
        for cause, text, job_id, node, gpus, until in
            select 'planned_job', a.text, a.job_id, null, null, a.until
              from _why_ahead(p_job_id, v_shape, v_before, v_gone, case when v_long then v_first end, v_plan.start_jobs,
                              v_plan.head_jobs, v_plan.head_ats, v_plan.refused_shapes, v_plan.refused_heads, p_now) as a
        loop
            v_more := v_more || job_id;
            return next;
        end loop;
        v_gone := v_gone || v_more;
        if v_only is null then
            exit when not v_free or v_long;
            if not v_before <@ v_gone then
                v_only := v_before || p_job_id;
                continue;
            end if;
        end if;
        exit when v_more = '{}';
    end loop;

    if not v_starts then
        select count(*) into v_rest from unnest(v_before) as u (id) where u.id <> all (v_gone);
        if v_rest > 0 then
            cause := 'planned_job';  job_id := null;  node := null;  gpus := null;  until := null;
            text := case when v_rest = 1 then '1 more job is ahead of it'
                         else format('%s more jobs are ahead of it',
                                     case when v_rest > v_many then 'more than ' || v_many else v_rest::text end) end;
            return next;
        end if;
    end if;
    if not v_free then
        job_id := null;  gpus := null;
        for cause, text, booking_id, node, until in select * from _why_unavailable(p_job_id, p_now, p_actor) loop
            return next;
        end loop;
    end if;
end;
$$;
