-- odc._repair_nodes: recompute what is free on each node from its allocations and foreign use, and correct rows that differ.
-- Returns    one sentence per corrected node, and per node with a GPU allocated to two jobs, which cannot be corrected here
-- Locks      the caller holds the turn; node_free rows that differ
-- enable_nestloop: PostgreSQL may have counted these tables when they were empty, and would compare each node with all.
create or replace function odc._repair_nodes()
returns text[]
language sql volatile set search_path = odc, pg_temp set enable_nestloop = off as $$
    with used as (
        select node_id, bit_or(gpu_mask) as mask, sum(bit_count(gpu_mask::bit(64))) as bits, sum(cpus) as cpus,
               sum(mem_mib) as mem_mib, count(*) as jobs
          from allocation
         group by node_id
    ), due as materialized (
        select f.node_id, n.name, u.bits > bit_count(u.mask::bit(64)) as shared,
               ((1::bigint << g.gpus) - 1) & ~coalesce(u.mask, 0) & ~n.foreign_gpu_mask as gpu_mask,
               greatest(0, g.cpus - coalesce(u.cpus, 0) - n.foreign_cpus)::integer as cpus,
               greatest(0, g.mem_mib - coalesce(u.mem_mib, 0) - n.foreign_mem_mib)::integer as mem_mib,
               coalesce(u.jobs, 0)::integer as jobs
          from node_free as f
          join node as n on n.id = f.node_id
          join node_group as g on g.id = f.group_id
          left join used as u on u.node_id = f.node_id
    ), wrong as materialized (
        select d.*, bit_count(d.gpu_mask::bit(64))::integer as gpus,
               format('node %s: %s GPUs, %s CPUs, %s MiB were free and %s jobs ran; corrected to %s, %s, %s and %s',
                      d.name, f.gpus, f.cpus, f.mem_mib, f.jobs, bit_count(d.gpu_mask::bit(64)), d.cpus, d.mem_mib, d.jobs) as difference
          from due as d
          join node_free as f on f.node_id = d.node_id
         where (f.gpu_mask, f.gpus, f.cpus, f.mem_mib, f.jobs)
               is distinct from (d.gpu_mask, bit_count(d.gpu_mask::bit(64))::integer, d.cpus, d.mem_mib, d.jobs)
    ), corrected as (
        update node_free as f
           set gpu_mask = w.gpu_mask, gpus = w.gpus, cpus = w.cpus, mem_mib = w.mem_mib, jobs = w.jobs
          from wrong as w
         where f.node_id = w.node_id
    )
    select array(select w.difference from wrong as w
                  union all
                 select format('node %s: two jobs hold the same GPU; end one of them', d.name) from due as d where d.shared
                  order by 1);
$$;
