-- odc._foreign_use: how much of a node odc may not use: the use by other software, and what the node has lost since jobs
-- use it. A device that fails must not be given to a job.
-- Arguments  p_node, and of the inventory: its size, its foreign use; null: it is not listed
create or replace function odc._foreign_use(
    p_node odc.node, p_gpus integer, p_cpus integer, p_mem_mib integer,
    p_foreign_gpus integer, p_foreign_cpus integer, p_foreign_mem_mib integer,
    out gpus integer, out cpus integer, out mem_mib integer)
language sql immutable
begin atomic
    select coalesce(p_foreign_gpus, 0) + greatest(0, p_node.gpus - coalesce(p_gpus, p_node.gpus)),
           coalesce(p_foreign_cpus, 0) + greatest(0, p_node.cpus - coalesce(p_cpus, p_node.cpus)),
           coalesce(p_foreign_mem_mib, 0) + greatest(0, p_node.mem_mib - coalesce(p_mem_mib, p_node.mem_mib));
end;
