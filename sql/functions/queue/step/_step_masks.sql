-- odc._step_masks: the GPUs of a step on each node, as masks: the lowest ones that no step holds (p_free) or that the job has. A
-- step that asks for no number of GPUs sees all of the job's GPUs.
-- Arguments  p_ranks, p_tasks  the nodes, and how many tasks each gets
-- Returns    null: a node has fewer GPUs than that
create or replace function odc._step_masks(
    p_job_id bigint, p_attempt integer, p_ranks integer[], p_tasks integer[], p_per_task integer, p_per_node integer,
    p_total integer, p_free boolean)
returns bigint[]
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_masks bigint[] := '{}';
    v_nodes integer := (select count(*) from unnest(p_tasks) as t where t > 0);
    v_left  integer := p_total;
    v_wants integer;
    v_node  record;
begin
    for v_node in
        select u.tasks, n.gpu_mask, n.free_mask
          from unnest(p_ranks, p_tasks) as u (rank, tasks)
          join _step_nodes(p_job_id, p_attempt) as n on n.rank = u.rank
         order by u.rank
    loop
        if v_node.tasks = 0 then
            v_masks := v_masks || 0::bigint;
            continue;
        end if;
        v_wants := case when p_per_task > 0 then least(v_node.tasks::bigint * p_per_task, 1000000)::integer
                        when p_per_node is not null then p_per_node
                        when p_total is not null then ceil(v_left / v_nodes::numeric)::integer end;
        v_left := v_left - v_wants;
        v_nodes := v_nodes - 1;
        v_masks := v_masks || case when v_wants is null then v_node.gpu_mask
            else _lowest_gpus(case when p_free then v_node.free_mask else v_node.gpu_mask end, v_wants) end;
        if v_masks[cardinality(v_masks)] is null then
            return null;
        end if;
    end loop;
    return v_masks;
end;
$$;
