-- odc._why_endless: where a pending job would start soonest if the running jobs without a time limit ended: as many
-- nodes as it needs, of one type and EFA domain, with the fewest such jobs. For a job that has no start in sight.
-- Returns    null: there are too few nodes
create or replace function odc._why_endless(p_job_id bigint)
returns text[]
language sql stable as $$
    with node_of as (
        select n.name, n.gpu_type, n.efa_domain, s.node_count, l.jobs,
               row_number() over (partition by n.gpu_type, n.efa_domain order by l.jobs, f.jobs, n.id) as place
          from odc.pending as p
          join odc.shape as s on s.id = p.shape_id
          join odc.node_free as f on f.up
          join odc.node as n on n.id = f.node_id
          join odc.node_group as g on g.id = f.group_id
         cross join lateral (select count(*) as jobs from odc.allocation as a
                              where a.node_id = n.id and a.ends_at = 'infinity') as l
         where p.job_id = p_job_id
           and g.partition_ids && s.partition_ids
           and (s.gpu_type is null or n.gpu_type = s.gpu_type)
           and n.gpus >= s.gpus_per_node and n.cpus >= s.cpus_per_node and n.mem_mib >= s.mem_per_node_mib
           and odc._matches_features(s.constraint_expr, n.features)
           and (s.node_list is null or n.name = any (s.node_list))
           and (s.exclude_nodes is null or n.name <> all (s.exclude_nodes))
    )
    select array_agg(c.name order by c.place)
      from node_of as c
     where c.place <= c.node_count
     group by c.gpu_type, c.efa_domain, c.node_count
    having count(*) = c.node_count
     order by sum(c.jobs), min(c.name)
     limit 1
$$;
