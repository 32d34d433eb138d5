-- odc._why_reserved: the GPUs that are free now and that a pending job could use, but that are kept for planned jobs.
-- Returns    per planned job, and amount on each of its nodes: a sentence, the job, the nodes (folded), the GPUs in total, and
--            its planned start, soonest first; at most 8
create or replace function odc._why_reserved(p_job_id bigint, p_now timestamptz)
returns table (text text, job_id bigint, nodes text, gpus integer, until timestamptz)
language sql stable as $$
    select format('%s free %s %s %s %s kept for job %s, which is planned for %s', k.gpus,
                  case when k.gpus = 1 then 'GPU' else 'GPUs' end, case when k.nodes = 1 then 'of' else 'on each of' end, k.names,
                  case when k.gpus = 1 and k.nodes = 1 then 'is' else 'are' end, k.job_id, odc._iso(k.at)),
           k.job_id, k.names, (k.gpus * k.nodes)::integer, k.at
      from (select h.job_id, h.planned_start_at as at, u.gpus, count(*) as nodes, odc._fold_names(array_agg(n.name)) as names
              from odc.pending as p
              join odc.shape as s on s.id = p.shape_id
              left join odc.planned as mine on mine.job_id = p.job_id
              join odc.planned as h
                on h.job_id <> p.job_id and h.planned_start_at > p_now
                   and h.planned_start_at <= coalesce(mine.planned_start_at, h.planned_start_at)
              join odc.pending as w on w.job_id = h.job_id
              join odc.shape as theirs on theirs.id = w.shape_id
              join odc.node as n on n.name = any (h.node_names)
              join odc.node_free as f on f.node_id = n.id and f.up
              join odc.node_group as g
                on g.id = f.group_id and g.partition_ids && s.partition_ids and (s.gpu_type is null or g.gpu_type = s.gpu_type)
             cross join lateral (select least(f.gpus, case when theirs.exclusive then n.gpus else theirs.gpus_per_node end) as gpus) as u
             where p.job_id = p_job_id and s.gpus_per_node > 0 and f.gpus >= s.gpus_per_node and u.gpus > 0
             group by h.job_id, h.planned_start_at, u.gpus
             order by h.planned_start_at, h.job_id, min(n.id)
             limit 8) as k
     order by k.at, k.job_id, k.names
$$;
