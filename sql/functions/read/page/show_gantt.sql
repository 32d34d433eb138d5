-- odc.show_gantt: the running and planned jobs and the bookings of nodes, as bars in time.
-- Arguments  p_types, p_nodes  only nodes of these GPU types, of these names; null: all
--            p_offset, p_limit the page of nodes, in the order of odc.map_nodes
--            p_from, p_to      the period: bookings within it, and planned starts before p_to
--            p_actor           as for _booking_label
-- Returns    JSON {at, from, to, node_count, next (an offset or null), nodes: [{name, gpu_type, gpus, state, reason, bars: [{kind
--            (running, planned, booking), job_id, array_job_id, array_task_id, array_tasks, name, user, gpus,
--            gpu_indexes (of running jobs), starts_at, likely_end_at (null: unknown), ends_at (its limit; null: it has
--            none)}]}]}: bars by kind and start. An earlier planned start is shown as p_now; a job past its limit is
--            shown to end at p_now
create or replace function odc.show_gantt(
    p_types text[], p_nodes text[], p_offset integer, p_limit integer, p_from timestamptz, p_to timestamptz,
    p_now timestamptz, p_actor jsonb default null)
returns text
language plpgsql stable set search_path = odc, pg_temp set plan_cache_mode = force_custom_plan as $$
-- A generic plan does not know how few nodes are requested and reads all live jobs: ten times slower.
declare
    v_ids   integer[];
    v_names text[];
    v_count integer;
    v_bars  jsonb;
begin
    select count(*), coalesce((array_agg(n.id order by n.gpu_type, _name_order(n.name), n.name))[p_offset + 1:p_offset + p_limit], '{}')
      into v_count, v_ids
      from node as n
     where (p_types is null or n.gpu_type = any (p_types)) and (p_nodes is null or n.name = any (p_nodes))
       and not _is_gone(n);
    v_names := array(select n.name from node as n where n.id = any (v_ids));

    with live as (
        -- All members of a job that has one here, because they run equally long.
        select r.job_id, r.started_at, r.ends_at, row_number() over (order by r.job_id) as ord, r.uid, r.shape_id,
               r.time_limit_s, j.name, j.user_name, j.array_job_id, j.array_task_id
          from running as r
          join job as j on j.id = r.job_id
         where r.job_id in (select a.job_id from allocation as a where a.node_id = any (v_ids))
    ), live_end as (
        select l.job_id, case when t.level < 8 then l.started_at + make_interval(secs => t.p50_s) end as likely_end_at
          from (select array_agg(uid order by ord) as uids, array_agg(_run_name(name) order by ord) as names,
                       array_agg(shape_id order by ord) as shapes, array_agg(time_limit_s order by ord) as limits,
                       array_agg(greatest(0, extract(epoch from p_now - started_at))::integer order by ord) as elapsed
                  from live) as c
         cross join lateral _predict_run_times(c.uids, c.names, c.shapes, c.limits, c.elapsed) as t
          join live as l on l.ord = t.ord
         where c.uids is not null
    ), ahead as (
        select p.job_id, greatest(p.planned_start_at, p_now) as starts_at, p.node_names, s.gpus_per_node,
               w.time_limit_s, w.uid, w.shape_id, row_number() over (order by p.job_id) as ord,
               j.name, j.user_name, case when w.tasks is null then j.array_job_id else p.job_id end as array_job_id,
               j.array_task_id, case when w.tasks is not null then _short_tasks(w.tasks, j.array_throttle) end as array_tasks
          from planned as p
          join pending as w on w.job_id = p.job_id and w.ready
          join shape as s on s.id = w.shape_id
          join job as j on j.id = p.job_id
         where p.planned_start_at < p_to and p.node_names && v_names
    ), ahead_end as (
        select h.job_id, case when t.level < 8 then h.starts_at + make_interval(secs => t.p50_s) end as likely_end_at
          from (select array_agg(uid order by ord) as uids, array_agg(_run_name(name) order by ord) as names,
                       array_agg(shape_id order by ord) as shapes, array_agg(time_limit_s order by ord) as limits
                  from ahead) as c
         cross join lateral _predict_run_times(c.uids, c.names, c.shapes, c.limits, array_fill(-1, array[cardinality(c.uids)])) as t
          join ahead as h on h.ord = t.ord
         where c.uids is not null
    ), bar as (
        select a.node_id, 0 as kind_ord, l.started_at as starts_at, jsonb_build_object(
                   'kind', 'running', 'job_id', l.job_id, 'array_job_id', l.array_job_id, 'array_task_id', l.array_task_id,
                   'array_tasks', null, 'name', l.name, 'user', l.user_name, 'gpus', a.gpus,
                   'gpu_indexes', array(select g from generate_series(0, 61) as g where a.gpu_mask & (1::bigint << g) <> 0),
                   'starts_at', _iso(l.started_at), 'likely_end_at', case when e.likely_end_at is not null then _iso(greatest(e.likely_end_at, p_now)) end,
                   'ends_at', _iso(greatest(l.ends_at, p_now))) as detail
          from allocation as a
          join live as l on l.job_id = a.job_id
          left join live_end as e on e.job_id = l.job_id
         where a.node_id = any (v_ids)
         union all
        select n.id, 1, h.starts_at, jsonb_build_object(
                   'kind', 'planned', 'job_id', h.job_id, 'array_job_id', h.array_job_id, 'array_task_id', h.array_task_id,
                   'array_tasks', h.array_tasks, 'name', h.name, 'user', h.user_name, 'gpus', h.gpus_per_node,
                   'gpu_indexes', '[]'::jsonb,
                   'starts_at', _iso(h.starts_at), 'likely_end_at', _iso(e.likely_end_at),
                   'ends_at', case when h.time_limit_s < 2147483647
                                   then _iso(h.starts_at + make_interval(secs => h.time_limit_s)) end)
          from ahead as h
          join node as n on n.name = any (h.node_names) and n.id = any (v_ids)
          left join ahead_end as e on e.job_id = h.job_id
         union all
        select m.node_id, 2, o.starts_at, jsonb_build_object(
                   'kind', 'booking', 'job_id', null, 'array_job_id', null, 'array_task_id', null, 'array_tasks', null,
                   'name', b.label, 'user', null, 'gpus', 0, 'gpu_indexes', '[]'::jsonb,
                   'starts_at', _iso(o.starts_at), 'likely_end_at', null, 'ends_at', _iso(o.ends_at))
          from (select k.*, _booking_label(k, p_actor) as label from booking as k where k.state in ('PLANNED', 'ACTIVE')) as b
          join booking_node as m on m.booking_id = b.id and m.node_id = any (v_ids)
         cross join lateral _occurrences(b.starts_at, b.duration_s, b.repeats, b.repeats_until, b.zone, p_from, p_to) as o
    )
    select coalesce(jsonb_object_agg(x.node_id, x.bars), '{}') into v_bars
      from (select b.node_id, jsonb_agg(b.detail order by b.kind_ord, b.starts_at, (b.detail ->> 'job_id')::bigint, b.detail ->> 'name') as bars
              from bar as b
             group by b.node_id) as x;

    return json_build_object(
        'at', _iso(p_now), 'from', _iso(p_from), 'to', _iso(p_to), 'node_count', v_count,
        'next', case when p_offset + p_limit < v_count then p_offset + p_limit end,
        'nodes', (select coalesce(json_agg(json_build_object(
                             'name', n.name, 'gpu_type', n.gpu_type, 'gpus', n.gpus, 'state', n.state, 'reason', n.reason,
                             'bars', coalesce(v_bars -> n.id::text, '[]'))
                         order by array_position(v_ids, n.id)), '[]')
                    from node as n
                   where n.id = any (v_ids)))::text;
end;
$$;
