-- odc.preview_job: where and when a job would start if it were submitted now. Writes nothing.
-- Arguments  p_ask  a job as odc.submit_jobs takes it, which found nothing to refuse
-- Returns    JSON {node_count, gpus_per_node, cpus_per_node, mem_per_node_mib, time_limit_s, start_at, node_names};
--            start_at is p_now when it starts at once, null when it waits behind others or no end is in sight.
--            What holds it back by itself (hold, dependency, begin time) is not looked at
create or replace function odc.preview_job(p_ask jsonb, p_now timestamptz)
returns text
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_where record;
    v_shape shape;
    v_plan  record;
    v_start integer;
    v_head  integer;
    v_nodes text[];
begin
    select r.partition_ids, r.time_limit_s into v_where
      from _resolve_partitions(array(select jsonb_array_elements_text(p_ask -> 'partitions')),
                               (p_ask ->> 'time_limit_s')::integer) as r;
    v_shape := _resolve_shape(p_ask, v_where.partition_ids);
    select d.* into v_plan
      from decide(p_now, jsonb_build_array(
                      to_jsonb(v_shape) || jsonb_build_object('time_limit_s', v_where.time_limit_s))) as d;
    v_start := array_position(v_plan.start_jobs, -1);
    v_head := array_position(v_plan.head_jobs, -1);
    if v_start is not null then
        select array_agg(n.name order by length(n.name), n.name) into v_nodes
          from (select coalesce(sum(c), 0) as n from unnest(v_plan.start_nodes[:v_start - 1]) as c) as before
          join node as n
            on n.id = any (v_plan.alloc_nodes[before.n + 1 : before.n + v_plan.start_nodes[v_start]]);
    elsif v_head is not null then
        select array_agg(n.name order by length(n.name), n.name) into v_nodes
          from node as n where n.id = any (string_to_array(v_plan.head_nodes[v_head], ',')::integer[]);
    end if;
    return json_build_object(
        'node_count', v_shape.node_count, 'gpus_per_node', v_shape.gpus_per_node,
        'cpus_per_node', v_shape.cpus_per_node, 'mem_per_node_mib', v_shape.mem_per_node_mib,
        'time_limit_s', nullif(v_where.time_limit_s, 2147483647),
        'start_at', _iso(case when v_start is not null then p_now else v_plan.head_ats[v_head] end),
        'node_names', coalesce(v_nodes, '{}'))::text;
end;
$$;
