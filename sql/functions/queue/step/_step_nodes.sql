-- odc._step_nodes: the nodes of a running job, with what the job has there and what of it no step holds.
-- Arguments  p_job_id, p_attempt  a running attempt
create or replace function odc._step_nodes(p_job_id bigint, p_attempt integer)
returns table (rank integer, node text, cpus integer, gpu_mask bigint, mem_mib integer,
               free_cpus integer, free_mask bigint, free_mem integer)
language sql stable set search_path = odc, pg_temp as $$
    with held as (
        select u.rank, sum(case when s.holds_cpus then u.cpus else 0 end)::integer as cpus,
               bit_or(case when s.holds_gpus then u.gpu_mask else 0 end) as gpu_mask,
               sum(coalesce(s.mem_mib[u.at], 0))::integer as mem_mib
          from step as s
         cross join lateral unnest(s.ranks, s.cpus, s.gpu_masks) with ordinality as u (rank, cpus, gpu_mask, at)
         where s.job_id = p_job_id and s.attempt = p_attempt and s.state = 'RUNNING'
         group by u.rank
    )
    select a.rank, n.name, a.cpus, a.gpu_mask, a.mem_mib, a.cpus - coalesce(h.cpus, 0),
           a.gpu_mask & ~coalesce(h.gpu_mask, 0), a.mem_mib - coalesce(h.mem_mib, 0)
      from allocation as a
      join node as n on n.id = a.node_id
      left join held as h on h.rank = a.rank
     where a.job_id = p_job_id
     order by a.rank;
$$;
