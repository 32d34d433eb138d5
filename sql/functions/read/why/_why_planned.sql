-- odc._why_planned: the running jobs that must end before a job with a planned start can have its nodes.
-- Returns    per job, and amount on each of its nodes: the node (null: several, which the text names), the GPUs it uses
--            there in total, and when its time limit ends, soonest first; at most 16
create or replace function odc._why_planned(p_job_id bigint)
returns table (text text, job_id bigint, node text, gpus integer, until timestamptz)
language sql stable as $$
    select odc._holder_text(h.job_id, h.gpus, h.cpus, h.names, h.nodes, h.ends_at, p_job_id, null),
           h.job_id, case when h.nodes = 1 then h.names end, (h.gpus * h.nodes)::integer, h.ends_at
      from (select al.job_id, al.gpus, al.cpus, al.ends_at, count(*) as nodes, odc._fold_names(array_agg(n.name)) as names
              from odc.planned as pl
              join odc.node as n on n.name = any (pl.node_names)
              join odc.allocation as al on al.node_id = n.id
             where pl.job_id = p_job_id
               and (pl.planned_start_at is null or al.ends_at <= pl.planned_start_at)
             group by al.job_id, al.gpus, al.cpus, al.ends_at
             order by al.ends_at, al.job_id, min(al.rank)
             limit 16) as h
     order by h.ends_at, h.job_id, h.names
$$;
