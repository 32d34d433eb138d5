-- odc._step_answer: a step as create_step returns it.
create or replace function odc._step_answer(p_outcome text, p_step odc.step)
returns jsonb
language sql stable set search_path = odc, pg_temp as $$
    select jsonb_build_object(
        'outcome', p_outcome, 'attempt', (p_step).attempt, 'step', (p_step).step, 'state', (p_step).state,
        'exit_code', (p_step).exit_code,
        'nodes', (select jsonb_agg(jsonb_build_object(
                             'rank', u.rank, 'node', u.node, 'tasks', u.tasks, 'cpus', u.cpus,
                             'gpus', _mask_indexes(u.mask)) order by u.rank)
                    from unnest((p_step).ranks, (p_step).node_names, (p_step).tasks, (p_step).cpus, (p_step).gpu_masks)
                      as u (rank, node, tasks, cpus, mask)));
$$;
