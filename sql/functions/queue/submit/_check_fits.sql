-- odc._check_fits: refuse a shape that no node, or too few nodes of one partition, could ever run, even if all were
-- idle.
-- Arguments  p_partition_ids, p_types, p_gpus, p_cpus, p_mems, p_domains, p_counts  as _possible_nodes returned them,
--            parallel
-- Raises     OD008 NeverFits
create or replace function odc._check_fits(
    p_shape shape, p_partition_ids integer[], p_types text[], p_gpus integer[], p_cpus integer[], p_mems integer[],
    p_domains text[], p_counts bigint[])
returns void
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_gang    boolean := p_shape.node_count > 1;
    v_fitting bigint;
    v_mixed   bigint;       -- the number without regard to the type
    v_types   text;
    v_asked   text;
    v_biggest text;
    v_booking text;
begin
    -- A gang stays in one partition; with GPUs, on one type; and on whole nodes, in one EFA domain.
    with fit as (
        select n.partition_id, case when v_gang and p_shape.gpus_per_node > 0 then n.type end as type,
               case when v_gang and (p_shape.exclusive or n.gpus > 0 and n.gpus = p_shape.gpus_per_node) then n.domain end as domain,
               n.node_count
          from unnest(p_partition_ids, p_types, p_gpus, p_cpus, p_mems, p_domains, p_counts)
               as n (partition_id, type, gpus, cpus, mem, domain, node_count)
         where n.gpus >= p_shape.gpus_per_node and n.cpus >= p_shape.cpus_per_node
           and n.mem >= p_shape.mem_per_node_mib
    )
    select coalesce(max(t.fitting), 0),
           (select max(u.fitting) from (select sum(f.node_count) as fitting from fit as f group by f.partition_id) as u),
           string_agg(distinct t.type, ', ')
      into v_fitting, v_mixed, v_types
      from (select f.type, sum(f.node_count) as fitting from fit as f group by f.partition_id, f.type, f.domain) as t;
    if v_fitting >= p_shape.node_count then
        return;
    end if;
    if v_mixed >= p_shape.node_count and v_types like '%,%' then
        raise exception using errcode = 'OD008',
            message = format('too few nodes of one type could ever run it: it requests %s nodes, and of %s there are at most %s%s',
                             p_shape.node_count, v_types, v_fitting,
                             case when cardinality(array_remove(p_domains, null)) > 0
                                  then ' together in one EFA domain' else '' end),
            hint = 'The nodes of a job with GPUs have one type. Request fewer nodes, or submit a job for each type.';
    end if;
    -- One CPU beside GPUs was not requested: it is the minimum of a task.
    v_asked := _amounts(p_shape.gpus_per_node,
                        nullif(p_shape.cpus_per_node, case when p_shape.gpus_per_node > 0 then 1 end),
                        p_shape.mem_per_node_mib);
    select _amounts(n.gpus, n.cpus, n.mem) into v_biggest
      from unnest(p_gpus, p_cpus, p_mems) as n (gpus, cpus, mem)
     order by n.gpus desc, n.cpus desc, n.mem desc limit 1;
    v_booking := (select format(' in booking "%s"', b.name) from booking as b where b.id = p_shape.booking_id);
    raise exception using errcode = 'OD008',
        message = case
            when v_fitting = 0 then format('no node%s could ever run it: it requests %s on one node, and the largest node has %s',
                                           v_booking, v_asked, v_biggest)
            else format('too few nodes could ever run it: it requests %s nodes with %s each, and there are %s%s%s',
                        p_shape.node_count, v_asked, v_fitting, v_booking,
                        case when array_position(p_domains, null) is null
                                  or cardinality(array_remove(p_domains, null)) > 0
                             then ' together in one partition and EFA domain' else '' end) end,
        hint = 'Request less; `odcctl nodes` shows what each node has.';
end;
$$;
