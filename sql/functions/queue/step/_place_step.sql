-- odc._place_step: where the tasks of a step, or of its part in one component of a heterogeneous job, would run.
-- Arguments  p_wants  as for create_step, without parts; first_rank, node_count: only on these members; null: on all
-- Returns    {"outcome": "fits", "ranks", "nodes", "tasks", "cpus", "masks", "holds_gpus"}, parallel arrays, or as create_step
create or replace function odc._place_step(p_job_id bigint, p_attempt integer, p_wants jsonb)
returns jsonb
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_cpt     integer := coalesce((p_wants ->> 'cpus_per_task')::integer, 1);
    v_gpt     integer := coalesce((p_wants ->> 'gpus_per_task')::integer, 0);
    v_gpn     integer := (p_wants ->> 'gpus_per_node')::integer;
    v_gpus    integer := (p_wants ->> 'gpus')::integer;
    v_per     integer := (p_wants ->> 'tasks_per_node')::integer;
    v_nodes   integer := (p_wants ->> 'nodes')::integer;
    v_tasks   integer := (p_wants ->> 'tasks')::integer;
    v_mem     integer := (p_wants ->> 'mem_mib')::integer;
    v_overlap boolean := coalesce((p_wants ->> 'overlap')::boolean, false);
    v_exact   boolean := coalesce((p_wants ->> 'exact')::boolean, false);
    v_more    boolean := coalesce((p_wants ->> 'overcommit')::boolean, false);
    v_list    text[] := (select array_agg(t) from jsonb_array_elements_text(nullif(p_wants -> 'node_list', 'null')) as t);
    v_not     text[] := (select array_agg(t) from jsonb_array_elements_text(nullif(p_wants -> 'exclude', 'null')) as t);
    v_first   integer := coalesce((p_wants ->> 'first_rank')::integer, 0);
    v_end     integer := v_first + coalesce((p_wants ->> 'node_count')::integer, 1000000000);
    v_most_tasks constant integer := 10000;
    v_all     integer;
    v_ids     integer[];
    v_names   text[];
    v_room    integer[];
    v_cpus    integer[];
    v_free    integer[];
    v_layout  integer[];
    v_masks   bigint[];
begin
    select count(*) into v_all from allocation as a where a.job_id = p_job_id and a.rank >= v_first and a.rank < v_end;
    select array_agg(n.rank order by n.rank), array_agg(n.node order by n.rank),
           array_agg(case when v_more then 1000000 else _step_room(n.cpus, n.gpu_mask, v_cpt, v_gpt, v_per) end order by n.rank),
           array_agg(case when v_more then 1000000 else _step_room(n.cpus, 0, v_cpt, 0, v_per) end order by n.rank),
           array_agg(case when v_more then 1000000
                          when v_overlap then _step_room(n.cpus, n.gpu_mask, v_cpt, v_gpt, v_per)
                          when not v_exact and n.free_cpus < n.cpus or n.free_mem < v_mem then 0
                          else _step_room(n.free_cpus, n.free_mask, v_cpt, v_gpt, v_per) end order by n.rank)
      into v_ids, v_names, v_room, v_cpus, v_free
      from _step_nodes(p_job_id, p_attempt) as n
     where n.rank >= v_first and n.rank < v_end
       and (v_list is null or n.node = any (v_list)) and not n.node = any (coalesce(v_not, '{}'));
    if exists (select from unnest(v_list) as l where not l = any (coalesce(v_names, '{}'))) or v_names is null then
        return jsonb_build_object('outcome', 'refused', 'why', 'node_list');
    end if;
    if coalesce(v_nodes, 1) > cardinality(v_ids) then
        return jsonb_build_object('outcome', 'refused', 'why', 'nodes', 'allocated', v_all);
    end if;
    v_tasks := coalesce(v_tasks, v_per * coalesce(v_nodes, cardinality(v_ids)), v_nodes, cardinality(v_ids));
    if v_tasks > v_most_tasks then
        return jsonb_build_object('outcome', 'refused', 'why', 'tasks');
    end if;
    v_nodes := least(coalesce(v_nodes, cardinality(v_ids)), v_tasks);
    if exists (select from _step_nodes(p_job_id, p_attempt) as n
                where n.rank >= v_first and n.rank < v_end having max(n.mem_mib) < v_mem) then
        return jsonb_build_object('outcome', 'refused', 'why', 'memory');
    end if;
    v_layout := _lay_out_step(v_room, v_nodes, v_tasks);
    if v_layout is null then
        return jsonb_build_object('outcome', 'refused', 'why', case
            when _lay_out_step(v_cpus, v_nodes, v_tasks) is null then 'processors' else 'gpus' end);
    end if;
    v_layout := _lay_out_step(v_free, v_nodes, v_tasks);
    if v_layout is null then
        return jsonb_build_object('outcome', 'busy');
    end if;

    v_masks := _step_masks(p_job_id, p_attempt, v_ids, v_layout, v_gpt, v_gpn, v_gpus, false);
    if v_masks is null then
        return jsonb_build_object('outcome', 'refused', 'why', 'gpus');
    end if;
    if not v_overlap then
        v_masks := _step_masks(p_job_id, p_attempt, v_ids, v_layout, v_gpt, v_gpn, v_gpus, true);
        if v_masks is null then
            return jsonb_build_object('outcome', 'busy');
        end if;
    end if;
    return (
        select jsonb_build_object(
                   'outcome', 'fits', 'ranks', jsonb_agg(u.rank order by u.rank), 'nodes', jsonb_agg(u.name order by u.rank),
                   'tasks', jsonb_agg(u.tasks order by u.rank), 'masks', jsonb_agg(u.mask order by u.rank),
                   'cpus', jsonb_agg(case when v_exact or v_overlap then least(a.cpus, u.tasks::bigint * v_cpt)::integer
                                          else a.cpus end order by u.rank),
                   'holds_gpus', coalesce(not v_overlap and greatest(v_gpt, v_gpn, v_gpus) > 0, false))
          from unnest(v_ids, v_names, v_layout, v_masks) as u (rank, name, tasks, mask)
          join allocation as a on a.job_id = p_job_id and a.rank = u.rank
         where u.tasks > 0);
end;
$$;
