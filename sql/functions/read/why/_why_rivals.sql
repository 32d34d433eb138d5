-- odc._why_rivals: the shapes that could be in the way of a pending job: those that can use one of its nodes, in the same
-- booking or both outside any, or that share its limits or licences. If one of two jobs is heterogeneous, each could be in
-- the way of the other.
create or replace function odc._why_rivals(p_job_id bigint, p_shape_ids integer[])
returns integer[]
language sql stable as $$
    select array_agg(s.id)
      from odc.pending as p
      join odc.shape as mine on mine.id = p.shape_id
      join odc.shape as s on s.id = any (p_shape_ids)
     where p.job_id = p_job_id
       and (exists (select from odc.resource_limit)
            or mine.components is not null or s.components is not null
            or (mine.licences is not null and s.licences is not null)
            or (mine.booking_id is not distinct from s.booking_id
                and exists (select from odc.node_group as g
                             where g.partition_ids && mine.partition_ids and g.partition_ids && s.partition_ids
                               and (mine.gpu_type is null or g.gpu_type = mine.gpu_type)
                               and (s.gpu_type is null or g.gpu_type = s.gpu_type)
                               and g.gpus >= greatest(mine.gpus_per_node, s.gpus_per_node)
                               and g.cpus >= greatest(mine.cpus_per_node, s.cpus_per_node)
                               and g.mem_mib >= greatest(mine.mem_per_node_mib, s.mem_per_node_mib)
                               and odc._matches_features(mine.constraint_expr, g.features)
                               and odc._matches_features(s.constraint_expr, g.features))))
$$;
