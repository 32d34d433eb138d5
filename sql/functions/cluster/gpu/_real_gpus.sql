-- odc._real_gpus: number of GPUs allocated to a live job, without those of nodes that are declared for accounting only.
create or replace function odc._real_gpus(p_job_id bigint)
returns integer
language sql stable as $$
    select coalesce(sum(a.gpus), 0)::integer
      from odc.allocation as a
      join odc.node as n on n.id = a.node_id and not n.declared
     where a.job_id = p_job_id
$$;
