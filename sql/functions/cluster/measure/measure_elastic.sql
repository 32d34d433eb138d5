-- odc.measure_elastic: the nodes of elastic groups; see sql/functions/cluster/measure/README.md for the form.
create or replace function odc.measure_elastic(p_now timestamptz)
returns table (metric text, labels text[], value double precision)
language sql stable as $$
    with size as materialized (
        select g.name, g.desired, g.failures, g.max_nodes,
               (select count(*) from odc.elastic_instance as i join odc.node as n on n.id = i.node_id
                 where i.group_name = g.name and n.state <> 'DOWN') as nodes
          from odc.elastic_group as g
    )
    select 'odcd_elastic_nodes', array[s.name, u.kind], u.value::double precision
      from size as s cross join lateral (values ('desired', s.desired), ('ready', s.nodes), ('maximum', s.max_nodes)) as u (kind, value)
     union all
    select 'odcd_elastic_launch_failures', array[s.name], s.failures::double precision from size as s
     union all
    select 'odcd_jobs_need_node', '{}', count(*)::double precision
      from odc.elastic_need as e join odc.pending as p on p.job_id = e.job_id
$$;
