-- odc._read_node: a node with the properties that an operator gives, and with those of p_node for the others.
-- Arguments  p_ask  {name, gpu_type, gpus, cpus, mem_mib, zone, efa_domain, topology, features}
-- Raises     OD010 BadRequest: the sizes are impossible, or its GPUs do not suit its type
create or replace function odc._read_node(p_node node, p_ask jsonb)
returns node
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_ask constant jsonb := (
        select jsonb_object_agg(key, value) from jsonb_each(p_ask)
         where key in ('name', 'gpu_type', 'gpus', 'cpus', 'mem_mib', 'zone', 'efa_domain', 'topology', 'features'));
    n     node;
begin
    n := jsonb_populate_record(p_node, coalesce(v_ask, '{}'));
    n.topology := coalesce(n.topology, '{}');
    n.features := coalesce(n.features, '{}');
    if n.gpu_type is null or n.gpus is null or n.cpus is null or n.mem_mib is null
       or n.gpus not between 0 and 62 or n.cpus not between 1 and 100000 or n.mem_mib < 1 then
        raise exception using errcode = 'OD010',
            message = format('node %s cannot have %s GPUs, %s CPUs and %s MiB', n.name, coalesce(n.gpus::text, 'no'),
                             coalesce(n.cpus::text, 'no'), coalesce(n.mem_mib::text, 'no')),
            hint = 'A node has 0 to 62 GPUs, 1 to 100000 CPUs and at least 1 MiB of memory.';
    end if;
    if n.gpus > 0 and n.gpu_type in ('cpu-x86', 'cpu-arm') and v_ask ?| array['gpus', 'gpu_type'] then
        raise exception using errcode = 'OD010',
            message = format('node %s of type %s cannot have GPUs', n.name, n.gpu_type),
            hint = format('GPU types: %s. Or give it 0 GPUs.',
                          (select string_agg(t.name, ', ' order by t.name) from gpu_type as t where t.gpus_per_node > 0));
    elsif n.gpus = 0 and v_ask ?| array['gpus', 'gpu_type']
          and exists (select from gpu_type as t where t.name = n.gpu_type and t.gpus_per_node > 0) then
        raise exception using errcode = 'OD010',
            message = format('node %s of type %s cannot have 0 GPUs', n.name, n.gpu_type),
            hint = 'The types of nodes without GPUs are cpu-x86 and cpu-arm.';
    end if;
    return n;
end;
$$;
