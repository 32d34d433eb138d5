-- odc._allocate_nodes: append the allocations of a job that starts now.
-- A job gets the lowest free GPUs of a node. An exclusive job gets all of the node.
-- Arguments  p_allocs  nine values each: node, GPU mask, GPUs, CPUs, MiB, rank of the node from 1, job, partition, time limit
--            p_free, p_nodes  see _free_lists; number of nodes;  p_picks  the nodes
--            p_gpus … p_exclusive  what the job takes of each
create or replace function odc._allocate_nodes(
    p_allocs bigint[], p_free bigint[], p_nodes integer, p_picks integer[], p_gpus integer, p_cpus integer, p_mem integer,
    p_exclusive boolean, p_job_id bigint, p_partition_id integer, p_limit_s integer)
returns bigint[]
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_at integer := cardinality(p_allocs);
    v_node integer;  v_mask bigint;  v_rest bigint;
begin
    for rank in 1..cardinality(p_picks) loop
        v_node := p_picks[rank];  v_mask := p_free[v_node];
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
        p_allocs[v_at + 4] := p_cpus;  p_allocs[v_at + 5] := p_mem;  p_allocs[v_at + 6] := rank;
        p_allocs[v_at + 7] := p_job_id;  p_allocs[v_at + 8] := p_partition_id;  p_allocs[v_at + 9] := p_limit_s;
        v_at := v_at + 9;
    end loop;
    return p_allocs;
end;
$$;
