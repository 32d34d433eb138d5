-- odc._add_possible_nodes: add nodes that elastic groups have requested, and those that they could. The caller undoes it.
-- Returns    their ids, and the group of each
-- Locks      the caller holds the turn; node, node_group, node_free, facts
create or replace function odc._add_possible_nodes(p_now timestamptz, out node_ids integer[], out groups text[])
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    -- So that few nodes are used: jobs are packed.
    update partition set placement = 'pack' where placement <> 'pack';
    with possible as (
        select g.name as group_name, u.number from _group_sizes(p_now) as z join elastic_group as g on g.name = z.name
         cross join lateral generate_series(1, least(z.coming + z.room, 200)) as u (number)
    ), added as (
        insert into node (name, gpu_type, gpus, cpus, mem_mib, zone, efa_domain, topology, features, tmp_mib, state_at)
        select format('%s/new-%s', p.group_name, p.number), g.gpu_type, g.gpus, g.cpus, g.mem_mib, g.zone, g.efa_domain,
               g.topology, g.features, g.tmp_mib, p_now
          from possible as p join elastic_group as g on g.name = p.group_name
         order by p.group_name, p.number
        returning id, name
    )
    select array_agg(a.id order by a.id), array_agg(regexp_replace(a.name, '/new-[0-9]+$', '') order by a.id)
      into node_ids, groups from added as a;
    perform _regroup_nodes();
end;
$$;
