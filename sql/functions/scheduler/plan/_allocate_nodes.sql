-- odc._allocate_nodes: append the allocations of a job that starts now.
-- A job gets the lowest free GPUs of a node. An exclusive job gets all of the node.
-- Arguments  p_allocs  five values each: node, GPU mask, GPUs, CPUs, MiB;  p_free  see _free_lists
--            p_picks   the nodes;  p_gpus … p_exclusive  what the job takes of each
create or replace function odc._allocate_nodes(
    p_allocs bigint[], p_free bigint[], p_nodes integer, p_picks integer[],
    p_gpus integer, p_cpus integer, p_mem integer, p_exclusive boolean)
returns bigint[]
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_at integer := cardinality(p_allocs);
    v_node integer;  v_mask bigint;  v_rest bigint;
begin
    foreach v_node in array p_picks loop
        v_mask := p_free[v_node];
        if p_exclusive then
            p_gpus := p_free[p_nodes + v_node];  p_cpus := p_free[2 * p_nodes + v_node];  p_mem := p_free[3 * p_nodes + v_node];
        elsif p_gpus < p_free[p_nodes + v_node] then
            v_rest := v_mask;
            for bit in 1..p_gpus loop
                v_rest := v_rest & (v_rest - 1);
            end loop;
            v_mask := v_mask - v_rest;
        end if;
        p_allocs[v_at + 1] := v_node;  p_allocs[v_at + 2] := v_mask;  p_allocs[v_at + 3] := p_gpus;
        p_allocs[v_at + 4] := p_cpus;  p_allocs[v_at + 5] := p_mem;
        v_at := v_at + 5;
    end loop;
    return p_allocs;
end;
$$;
