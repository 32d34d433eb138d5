-- odc._check_switches: refuse a request for few topology blocks that never expires and that no nodes could ever
-- satisfy.
-- Raises     OD008 NeverFits
create or replace function odc._check_switches(p_shape shape)
returns void
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_most bigint;
begin
    if not exists (select from node where topology <> '{}') then
        return;
    end if;
    select max(t.fitting) into v_most
      from (select sum(b.n) as fitting
              from (select p.id, k.type, k.domain, count(*) as n,
                           row_number() over (partition by p.id, k.type, k.domain order by count(*) desc) as place
                      from node as n
                      join node_free as f on f.node_id = n.id
                      join node_group as g on g.id = f.group_id
                      join gpu_type as t on t.name = g.gpu_type
                      join unnest(p_shape.partition_ids) as p (id) on p.id = any (g.partition_ids)
                     cross join lateral (
                           select case when p_shape.gpus_per_node > 0 then g.gpu_type end as type,
                                  case when t.efa_per_node > 0 and (p_shape.exclusive or g.gpus > 0 and g.gpus = p_shape.gpus_per_node)
                                       then g.efa_domain end as domain) as k
                     where (p_shape.gpu_type is null or g.gpu_type = p_shape.gpu_type)
                       and g.gpus >= p_shape.gpus_per_node and g.cpus >= p_shape.cpus_per_node
                       and g.mem_mib >= p_shape.mem_per_node_mib and g.tmp_mib >= p_shape.tmp_per_node_mib
                       and (p_shape.constraint_expr is null or _matches_features(p_shape.constraint_expr, g.features))
                       and (p_shape.node_list is null or n.name = any (p_shape.node_list))
                       and (p_shape.exclude_nodes is null or n.name <> all (p_shape.exclude_nodes))
                     group by p.id, k.type, k.domain, n.topology,
                              case when n.topology = '{}' then (n.zone, n.efa_domain)::text end) as b
             where b.place <= p_shape.switches
             group by b.id, b.type, b.domain) as t;
    if v_most < p_shape.node_count then
        raise exception using errcode = 'OD008',
            message = format('no nodes could ever run it in at most %s topology %s: it needs %s nodes, and at most %s are in so few '
                             'blocks', p_shape.switches, case when p_shape.switches = 1 then 'block' else 'blocks' end,
                             p_shape.node_count, v_most),
            hint = 'Limit the time to wait for it (--switches=1@30), or allow more blocks; `odcctl nodes --topology` shows them.';
    end if;
end;
$$;
