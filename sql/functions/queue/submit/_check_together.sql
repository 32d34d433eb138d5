-- odc._check_together: refuse a heterogeneous job whose components fit, each by itself, but together ask for more GPUs, CPUs,
-- memory or whole nodes than all nodes have that it could use. Other reasons why they never fit together remain unnoticed: such
-- a job waits.
-- Raises     OD008 NeverFits
create or replace function odc._check_together(p_shape shape)
returns void
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_need record;
    v_have record;
    v_lack text;
begin
    select sum(c.node_count * c.gpus_per_node::bigint) as gpus, sum(c.node_count * c.cpus_per_node::bigint) as cpus,
           sum(c.node_count * c.mem_per_node_mib::bigint) as mem, coalesce(sum(c.node_count) filter (where c.exclusive), 0) as nodes
      into v_need from jsonb_populate_recordset(null::shape, p_shape.components) as c;
    select coalesce(sum(n.node_count * n.gpus), 0) as gpus, coalesce(sum(n.node_count * n.cpus), 0) as cpus,
           coalesce(sum(n.node_count * n.mem_mib), 0) as mem,
           -- Components that take no whole nodes need at least one beside these.
           coalesce(sum(n.node_count), 0)
               - (exists (select from jsonb_populate_recordset(null::shape, p_shape.components) as c
                           where not c.exclusive))::integer
               as nodes
      into v_have
      from _possible_nodes(p_shape.partition_ids, null, null, _listed_nodes(p_shape), null, 0) as n;
    v_lack := case when v_need.gpus > v_have.gpus then format('%s GPUs, and there are %s', v_need.gpus, v_have.gpus)
                   when v_need.nodes > v_have.nodes
                   then format('%s nodes without other jobs on them, and there are %s', v_need.nodes, greatest(0, v_have.nodes))
                   when v_need.cpus > v_have.cpus then format('%s CPUs, and there are %s', v_need.cpus, v_have.cpus)
                   when v_need.mem > v_have.mem then format('%s of memory, and there are %s', _mib(v_need.mem::bigint), _mib(v_have.mem::bigint)) end;
    if v_lack is not null then
        raise exception using errcode = 'OD008',
            message = format('its components could never run at the same time: together they request %s', v_lack),
            hint = 'Request less; `odcctl nodes` shows what each node has.';
    end if;
end;
$$;
