-- odc._why_waiting: what keeps a ready job from starting. It calls decide as if the jobs named so far were gone, until
-- the job starts: first as if the job were alone in the queue, which finds the running jobs in its way; then with the
-- whole queue; then with only the jobs ahead of it. A last plan with the whole queue proves the named causes. If many
-- jobs are ahead of it, they are counted, and the plan with the job alone proves that it starts without them.
-- Arguments  p_job_id  a pending job that is ready
--            p_actor   as for _booking_label
-- Returns    causes in the order in which they were found: cause, a sentence, and the applicable ones of job, limit,
--            booking, node, GPUs, until
create or replace function odc._why_waiting(p_job_id bigint, p_now timestamptz, p_actor jsonb default null)
returns table (cause text, text text, job_id bigint, "limit" text, booking_id integer, node text, gpus integer, until timestamptz)
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_column
declare
    v_max_looks constant integer := 12;
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
    v_looks  integer := 0;
    v_looked boolean := false;
    v_alone  boolean := true;           -- looking for running jobs in its way
    v_long   boolean := false;          -- many jobs are ahead of it
    v_free   boolean := false;          -- alone in the queue it starts without those named
    v_starts boolean := false;          -- and with the other jobs, too
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
    -- A job that the last pass protected needs no plan: its start and nodes are known.
    select l.planned_start_at, l.node_names into v_at, v_nodes from planned as l where l.job_id = p_job_id and l.node_names <> '{}';

    loop
        if v_looks > 0 or v_nodes is null then
            exit when v_looks = v_max_looks;
            v_looked := true;
            select * into v_plan from decide(p_now, null, 1000000, p_without => nullif(v_gone, '{}'), p_only => v_only);
            if p_job_id = any (v_plan.start_jobs) then
                v_free := true;
                v_starts := v_only is null;
                exit when v_starts;
                v_alone := false;  v_only := null;  v_looks := v_looks + 1;
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
        v_looks := v_looks + 1;
        v_more := '{}';
        if v_alone then
            if v_gone = '{}' and v_looks = 1 then
                cause := 'node';  job_id := null;  node := null;  gpus := null;
                until := case when not v_looked then v_at end;
                select _describe_need(s, null) into text from shape as s where s.id = v_shape;
                return next;
            end if;
            for h in
                -- One line for all nodes of a gang with equal amounts.
                select w.job_id, w.gpus, w.cpus, w.until, count(*) as nodes, _fold_names(array_agg(w.node order by w.place)) as names,
                       min(w.place) as place
                  from _why_holders(p_job_id, v_nodes, v_at, v_gone) with ordinality as w (job_id, node, gpus, cpus, until, place)
                 group by w.job_id, w.gpus, w.cpus, w.until
                 order by place
            loop
                cause := 'running_job';
                text := _holder_text(h.job_id, h.gpus, h.cpus, h.names, h.nodes, h.until, p_job_id, p_now);
                job_id := h.job_id;  node := case when h.nodes = 1 then h.names end;  gpus := h.gpus * h.nodes;  until := h.until;
                v_more := v_more || h.job_id;
                return next;
            end loop;
            v_gone := v_gone || v_more;
            if v_more = '{}' and v_looked then
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
        -- Other jobs are ahead of it: those that would start now, and the protected job it is behind; or, if it is
        -- protected itself and no other job starts, the protected jobs ahead of it.
        for h in
            with other as materialized (
                select distinct on (u.id) u.id, u.at, u.protected, l.time_limit_s, l.shape_id
                  from (select s as id, p_now as at, false as protected from unnest(v_plan.start_jobs) as s
                         union all
                        select r.id, v_plan.head_ats[array_position(v_plan.head_jobs, r.id)], false
                          from unnest(v_plan.refused_shapes, v_plan.refused_heads) as r (shape_id, id)
                         where v_head is null and r.shape_id = v_shape
                         union all
                        select e.id, e.at, true
                          from unnest(v_plan.head_jobs, v_plan.head_ats) with ordinality as e (id, at, place)
                         where e.at is not null
                           and case when v_head is null then e.id = any (v_before) else e.place < v_head end) as u
                  join pending as l on l.job_id = u.id
                 where u.id <> all (v_gone) and u.id <> p_job_id
                 order by u.id, u.at, u.protected
            ), rival as materialized (
                select * from other as o
                 where o.shape_id = any ((select _why_rivals(p_job_id, array_agg(distinct a.shape_id)) from other as a)::integer[])
            )
            -- The start in the stored plan; a plan without the jobs named so far has other times.
            select b.id, d.planned_start_at as at,
                   case when b.time_limit_s < 2147483647
                        then d.planned_start_at + make_interval(secs => b.time_limit_s) end as ends_at
              from rival as b left join planned as d on d.job_id = b.id
             where not b.protected or not exists (select from rival as s where not s.protected)
             order by b.at, d.planned_start_at, b.id
             limit case when v_long then v_first end
        loop
            cause := 'planned_job';  node := null;  gpus := null;  job_id := h.id;
            until := h.ends_at;
            text := format('job %s is ahead of it', h.id)
                    || coalesce(', starts by ' || _iso(h.at) || coalesce(' and ends by ' || _iso(until), ''), '');
            v_more := v_more || h.id;
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
        select count(*) into v_looks from unnest(v_before) as u (id) where u.id <> all (v_gone);
        if v_looks > 0 then
            cause := 'planned_job';  job_id := null;  node := null;  gpus := null;  until := null;
            text := case when v_looks = 1 then '1 more job is ahead of it'
                         else format('%s more jobs are ahead of it',
                                     case when v_looks > v_many then 'more than ' || v_many else v_looks::text end) end;
            return next;
        end if;
    end if;
    if not v_free then
        job_id := null;  gpus := null;  until := null;
        for cause, text, node in select 'node', n.text, n.node from _why_nodes(p_job_id) as n loop
            return next;
        end loop;
        for cause, text, booking_id, node, until in
            select 'booking', b.text, b.booking_id, b.node, b.until from _why_bookings(p_job_id, p_now, p_actor) as b
        loop
            return next;
        end loop;
    end if;
end;
$$;
