-- odc._plan_moved: whether anything but the plan's pending jobs has changed since the plan was made. It checks the
-- version of the facts, and that each node of the plan still accepts jobs and has enough free.
-- Arguments  p_facts    facts.version when the plan was made
--            p_alloc_*  the plan's allocations, as decide returns them
-- Locks      the caller holds the turn; facts, for share: this waits for an edit that did not take the turn
create or replace function odc._plan_moved(
    p_facts bigint, p_alloc_nodes integer[], p_alloc_masks bigint[], p_alloc_gpus integer[], p_alloc_cpus integer[],
    p_alloc_mems integer[])
returns boolean
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_facts bigint;
begin
    select version into strict v_facts from facts for share;
    return v_facts <> p_facts or exists (
        select from (select a.node_id, bit_or(a.mask) as mask, sum(a.gpus) as gpus, sum(a.cpus) as cpus, sum(a.mem) as mem
                       from unnest(p_alloc_nodes, p_alloc_masks, p_alloc_gpus, p_alloc_cpus, p_alloc_mems)
                            as a (node_id, mask, gpus, cpus, mem)
                      group by a.node_id) as t
          left join node_free as f on f.node_id = t.node_id
         where f.node_id is null or not f.up or f.gpu_mask & t.mask <> t.mask
            or f.gpus < t.gpus or f.cpus < t.cpus or f.mem_mib < t.mem);
end;
$$;
