-- odc._why_new_node: that a pending job waits for a new node of an elastic group; null: it does not.
create or replace function odc._why_new_node(p_job_id bigint)
returns text
language sql stable
begin atomic
    select format('needs a new node: group %s was asked for %s %s, %s %s ready%s', g.name, s.wanted,
                  case when s.wanted = 1 then 'node' else 'nodes' end, s.ready, case when s.ready = 1 then 'is' else 'are' end,
                  coalesce('; ' || g.failure, ''))
      from odc.elastic_need as e
      join odc.elastic_group as g on g.name = e.group_name
     cross join lateral (
           select greatest(g.wanted, g.desired) as wanted,
                  (select count(*) from odc.elastic_instance as i join odc.node as n on n.id = i.node_id
                    where i.group_name = g.name and n.state = 'UP') as ready) as s
     where e.job_id = p_job_id;
end;
