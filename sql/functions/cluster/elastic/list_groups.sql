-- odc.list_groups: every elastic group, by name.
-- Returns    a JSON array, with the keys of the API
create or replace function odc.list_groups(p_now timestamptz)
returns text
language sql stable as $$
    select coalesce(json_agg(row_to_json(x)), '[]')::text
      from (
          select g.name, g.gpu_type, g.gpus, g.cpus, g.mem_mib, g.features,
                 case when g.retry_at > p_now then 'waiting' when z.coming > 0 or g.wanted is not null then 'growing'
                      when c.leaving > 0 then 'shrinking' else 'steady' end as state,
                 g.min_nodes, g.max_nodes, greatest(g.desired, g.wanted) as desired_nodes, c.nodes, c.leaving as leaving_nodes,
                 array(select e.job_id from odc.elastic_need as e join odc.pending as p on p.job_id = e.job_id
                        where e.group_name = g.name order by e.job_id limit 100) as jobs,
                 extract(epoch from g.cooldown)::integer as cooldown_s, extract(epoch from g.idle)::integer as idle_s,
                 extract(epoch from g.boot)::integer as boot_s,
                 g.failures, g.failure, case when g.retry_at > p_now then odc._iso(g.retry_at) end as retry_at
            from odc.elastic_group as g
            join odc._group_sizes(p_now) as z on z.name = g.name
           cross join lateral (select count(n.id) filter (where n.state <> 'DOWN') as nodes,
                                      count(*) filter (where i.state <> 'IN') as leaving
                                 from odc.elastic_instance as i left join odc.node as n on n.id = i.node_id
                                where i.group_name = g.name) as c
           order by g.name
      ) as x
$$;
