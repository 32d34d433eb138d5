-- odc._count_foreign: subtract the foreign use of nodes from their free amounts, as far as allocations leave room for it.
-- A node that has become smaller keeps its size while jobs use it: the missing part counts as foreign use.
-- Arguments  p_nodes  the inventory, as in register_nodes
-- Locks      the caller holds the turn; node and node_free rows that change
create or replace function odc._count_foreign(p_nodes jsonb)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_node record;
    v_mask bigint;
    v_left integer;
    v_bit  bigint;
begin
    for v_node in
        select n.id, n.name, n.foreign_gpu_mask, n.foreign_cpus, n.foreign_mem_mib,
               f.gpu_mask | n.foreign_gpu_mask as free_mask, f.cpus + n.foreign_cpus as free_cpus,
               f.mem_mib + n.foreign_mem_mib as free_mem,
               o.gpus, o.cpus, o.mem_mib
          from node as n
          join node_free as f on f.node_id = n.id
          left join _seen_nodes(p_nodes) as s on s.name = n.name
         cross join lateral _foreign_use(n, s.gpus, s.cpus, s.mem_mib, s.foreign_gpus, s.foreign_cpus, s.foreign_mem_mib) as o
         where (bit_count(n.foreign_gpu_mask::bit(64)), n.foreign_cpus, n.foreign_mem_mib)
               is distinct from (o.gpus::bigint, o.cpus, o.mem_mib)
         order by n.name
    loop
        -- The highest GPUs, because jobs get the lowest.
        v_mask := 0;  v_left := v_node.gpus;
        for i in reverse 61 .. 0 loop
            exit when v_left = 0;
            v_bit := 1::bigint << i;
            if v_node.free_mask & v_bit <> 0 then
                v_mask := v_mask | v_bit;  v_left := v_left - 1;
            end if;
        end loop;
        update node as n
           set foreign_gpu_mask = v_mask, foreign_cpus = least(v_node.cpus, v_node.free_cpus),
               foreign_mem_mib = least(v_node.mem_mib, v_node.free_mem)
         where n.id = v_node.id
           and (n.foreign_gpu_mask, n.foreign_cpus, n.foreign_mem_mib) is distinct from
               (v_mask, least(v_node.cpus, v_node.free_cpus), least(v_node.mem_mib, v_node.free_mem));
        if found then
            update node_free as f
               set gpu_mask = v_node.free_mask & ~v_mask, gpus = bit_count((v_node.free_mask & ~v_mask)::bit(64)),
                   cpus = v_node.free_cpus - least(v_node.cpus, v_node.free_cpus),
                   mem_mib = v_node.free_mem - least(v_node.mem_mib, v_node.free_mem)
             where f.node_id = v_node.id;
        end if;
    end loop;
end;
$$;
