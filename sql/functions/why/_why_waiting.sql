-- odc._why_waiting: what keeps a ready job from starting. decide is asked as if the jobs named so far were gone, until
-- the job starts: then the list is complete, and true.
-- Arguments  p_job_id  a pending job that is ready
-- Returns    causes in the order in which they were found: cause, a sentence, and what applies of job, limit, booking,
--            node, GPUs, until
create or replace function odc._why_waiting(p_job_id bigint, p_now timestamptz)
returns table (cause text, text text, job_id bigint, "limit" text, booking_id integer, node text, gpus integer, until timestamptz)
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_column
declare
    v_max_looks constant integer := 8;
    v_limit  boolean := false;
    v_shape  integer;
    v_gone   bigint[] := '{}';      -- jobs named so far
    v_plan   record;
    v_head   integer;
    v_at     timestamptz;
    v_nodes  text[];
    v_more   bigint[] := '{}';
    v_looks  integer := 0;
    v_looked boolean := false;
    v_starts boolean := false;      -- without all that was named, it starts
    h        record;
begin
    for cause, text, "limit", job_id, gpus, until in
        select 'limit', l.text, l."limit", l.job_id, l.gpus, l.until from _why_limits(p_job_id, p_now) as l
         union all
        select 'limit', l.text, l.limit_name, l.other_job_id, null, l.until from _why_licences(p_job_id) as l
    loop
        v_limit := true;
        return next;
    end loop;
    if v_limit then
        return;
    end if;
    select p.shape_id into v_shape from pending as p where p.job_id = p_job_id;
    -- A protected job of the last pass need not be looked for: its start and nodes are known.
    select l.planned_start_at, l.node_names into v_at, v_nodes from planned as l where l.job_id = p_job_id;

    loop
        if v_looks > 0 or v_nodes is null then
            exit when v_looks = v_max_looks;
            v_looks := v_looks + 1;  v_looked := true;
            select * into v_plan from decide(p_now, null, 1000000, null, null, nullif(v_gone, '{}'));
            if p_job_id = any (v_plan.start_jobs) then
                v_starts := true;  v_more := '{}';
                exit;
            end if;
            v_head := array_position(v_plan.head_jobs, p_job_id);
            v_at := case when v_head is not null then v_plan.head_ats[v_head] end;
            v_nodes := case when v_head is not null then coalesce(array(
                select n.name from node as n
                 where n.id = any (string_to_array(v_plan.head_nodes[v_head], ',')::integer[]) order by n.id), '{}') end;
        else
            v_looks := 1;
        end if;

        v_more := '{}';
        if v_nodes is not null then
            cause := 'node';  job_id := null;  node := null;  gpus := null;  until := v_at;
            if v_gone = '{}' then
                select _describe_need(s, null) into text from shape as s where s.id = v_shape;
                return next;
            end if;
            for h in select * from _why_holders(p_job_id, v_nodes, v_at, v_gone) loop
                cause := 'running_job';
                text := format('job %s holds %s GPUs and %s CPUs of %s%s', h.job_id, h.gpus, h.cpus, h.node,
                               coalesce(' until ' || _iso(h.until), ', with no time limit'))
                        || case when exists (select from running as r where r.job_id = h.job_id and r.preempted_by = p_job_id)
                                then '; it is preempted for this one' else '' end;
                job_id := h.job_id;  node := h.node;  gpus := h.gpus;  until := h.until;
                v_more := v_more || h.job_id;
                return next;
            end loop;
        end if;
        if v_looked then
            -- Others are before it: those that would start now, and the protected job it stands behind, or, where
            -- it is protected itself and nothing else is in its way, those that are so before it.
            for h in
                select b.id, b.at, l.time_limit_s
                  from (select distinct on (u.id) u.id, u.at
                          from (select s as id, p_now as at from unnest(v_plan.start_jobs) as s
                                 union all
                                select v_plan.refused_heads[array_position(v_plan.refused_shapes, v_shape)],
                                       v_plan.head_ats[array_position(v_plan.head_jobs,
                                           v_plan.refused_heads[array_position(v_plan.refused_shapes, v_shape)])]
                                 where v_nodes is null
                                 union all
                                select e.id, e.at
                                  from unnest(v_plan.head_jobs[:v_head - 1], v_plan.head_ats[:v_head - 1]) as e (id, at)
                                 where v_more = '{}' and v_plan.start_jobs is null and e.at is not null) as u
                         where u.id is not null and u.id <> all (v_gone) and u.id <> p_job_id
                         order by u.id, u.at) as b
                  join pending as l on l.job_id = b.id
                  join shape as mine on mine.id = v_shape
                  join shape as its on its.id = l.shape_id and its.partition_ids && mine.partition_ids
                 order by b.at, b.id
            loop
                cause := 'planned_job';  node := null;  gpus := null;  job_id := h.id;
                until := case when h.time_limit_s < 2147483647 then h.at + make_interval(secs => h.time_limit_s) end;
                text := case when h.at = p_now then format('job %s stands before it and starts first', h.id)
                             when h.at is null then format('job %s stands before it', h.id)
                             else format('job %s stands before it and starts by %s', h.id, _iso(h.at)) end
                        || coalesce(', to end by ' || _iso(until), '');
                v_more := v_more || h.id;
                return next;
            end loop;
        end if;
        exit when v_more = '{}' and v_looked;
        v_gone := v_gone || v_more;
    end loop;
    if v_looks = v_max_looks and v_more <> '{}' then
        cause := 'planned_job';  job_id := null;  node := null;  gpus := null;  until := null;
        text := 'and more jobs that stand before it';
        return next;
    end if;
    if not v_starts then
        job_id := null;  gpus := null;  until := null;
        for cause, text, node in select 'node', n.text, n.node from _why_nodes(p_job_id) as n loop
            return next;
        end loop;
        for cause, text, booking_id, node, until in
            select 'booking', b.text, b.booking_id, b.node, b.until from _why_bookings(p_job_id, p_now) as b
        loop
            return next;
        end loop;
    end if;
end;
$$;
